/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: equal texts share one index. Index 0 is "". Texts never move, so pointers stay
 * valid as long as the table exists.
 */
#ifndef FRAG_TRACE_STRINGS_H
#define FRAG_TRACE_STRINGS_H

#include <frag/trace.h>

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

/* ---- a struct frag_stacks: equal frames and equal stacks become one. The caller
 * releases what it took (frag_stacks_release, also after an error). ---- */

struct frag_stack_table;

int frag_stack_table_create(struct frag_stack_table **out, struct frag_err *err);
void frag_stack_table_destroy(struct frag_stack_table *t); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_stack_table *, frag_stack_table_destroy)
/* Number of the frame. Errors: FRAG_ENOMEM. */
int frag_stack_table_frame(struct frag_stack_table *t, struct frag_frame frame, uint32_t *number,
			   struct frag_err *err);
/* Index of the stack of n frames, innermost first; 0 for n = 0, or if there are too many. */
int frag_stack_table_stack(struct frag_stack_table *t, const uint32_t *frames, size_t n,
			   uint32_t *stack, struct frag_err *err);
/* All so far. Errors: FRAG_ENOMEM. */
int frag_stack_table_take(const struct frag_stack_table *t, struct frag_stacks *out,
			  struct frag_err *err);
void frag_stacks_release(struct frag_stacks *s);

#endif
