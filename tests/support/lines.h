/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that Python drives by lines (tests/drivers): each line of the standard input is a call,
 * with tabs between its words, and each is answered by lines of which the last begins with "=".
 */
#ifndef TESTS_SUPPORT_LINES_H
#define TESTS_SUPPORT_LINES_H

#include <stdint.h>

#define LINE_WORDS 32

extern char *line_words[LINE_WORDS + 1]; /* of the call; NULL behind the last */
/* 0 where there is no such word */
uint64_t line_number(unsigned i);
/* Reads calls up to the end; answer() prints. */
void lines_run(void (*answer)(void));

#endif
