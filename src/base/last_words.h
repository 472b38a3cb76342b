/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a program failed, in its own words: the line of the exception in its last Python traceback,
 * without the frames above it, and without notes, more lines of the message and the report of a
 * launcher (torchrun, accelerate) below it. If lines name ranks, that of the first rank. Without a
 * traceback, the last line that says something.
 */
#ifndef FRAG_BASE_LAST_WORDS_H
#define FRAG_BASE_LAST_WORDS_H

#include <stddef.h>

/* Of a log; only its end is read. One line without control characters; "" = there is none. */
void frag_last_words(const char *path, char *out, size_t cap);
/* The same of text, which is cut into lines. */
void frag_last_words_of(char *text, char *out, size_t cap);

#endif
