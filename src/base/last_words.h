/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that failed said of it: of its last Python traceback the line of the exception, past the frames and before
 * notes, further lines of the message and what a launcher (torchrun, accelerate) reports of it; the first rank's, if
 * lines name ranks. Without a traceback, the last line that says something.
 */
#ifndef FRAG_BASE_LAST_WORDS_H
#define FRAG_BASE_LAST_WORDS_H

#include <stddef.h>

/* Of a log; only its end is read. One line without control characters; "" = there is none. */
void frag_last_words(const char *path, char *out, size_t cap);
/* The same of text, which is cut into lines. */
void frag_last_words_of(char *text, char *out, size_t cap);

#endif
