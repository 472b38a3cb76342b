/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: equal texts share one index. Index 0 is "". Texts never move, so pointers stay
 * valid as long as the table exists.
 */
#ifndef FRAG_TRACE_STRINGS_H
#define FRAG_TRACE_STRINGS_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_strings;

int frag_strings_create(struct frag_strings **out, struct frag_err *err);
void frag_strings_destroy(struct frag_strings *s); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_strings *, frag_strings_destroy)

/* Index of the text, added if new. O(len). Errors: FRAG_ENOMEM, FRAG_EINPUT (too many). */
int frag_strings_intern(struct frag_strings *s, const char *text, size_t len, uint32_t *index,
			struct frag_err *err);
/* NUL-terminated; "" if i is out of range. */
const char *frag_strings_get(const struct frag_strings *s, uint32_t i);
size_t frag_strings_len(const struct frag_strings *s, uint32_t i);
uint32_t frag_strings_count(const struct frag_strings *s); /* with index 0 */

#endif
