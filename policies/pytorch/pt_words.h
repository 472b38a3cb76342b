/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of the settings text. White space is ignored; tokens end at ',' ':' '[' ']' (and at
 * '=', so that "key=value" works too). Parsed integers follow strtoull: "21.7" is 21, a leading
 * minus wraps around.
 */
#ifndef FRAG_PT_WORDS_H
#define FRAG_PT_WORDS_H

#include <frag/error.h>
#include <frag/opt.h>

struct pt_words {
	const char *at;
	char word[FRAG_OPT_STRING_MAX];
};

/* Is it one of the marks that stand for themselves? */
bool pt_is_mark(char c);
/* Next token (a word, or one of the marks as a word of its own); false at the end. */
bool pt_next_word(struct pt_words *t);
/* The value of `key`, whose first word has just been read, as text: that word, or a list in
 * brackets with what stands between them. Errors: FRAG_EUSAGE, as of all that follow. */
int pt_list_text(struct pt_words *t, const char *key, char *out, size_t cap, struct frag_err *err);
int pt_want_uint(const char *key, const char *word, uint64_t *out, struct frag_err *err);
int pt_want_double(const char *key, const char *word, double *out, struct frag_err *err);
int pt_want_bool(const char *key, const char *word, bool *out, struct frag_err *err);

#endif
