/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cases are made of. A file NAME.cases holds cases as text, read and run by
 * tests/support/cases.py:
 *
 *	# notes
 *	== name of the case
 *	its body
 *
 * The body holds inputs and outputs. It is written again with the answers of the program, and the
 * case has passed if that is the same text. CASES_REWRITE=1 in the environment puts the new text
 * into the file instead: look at the difference before you commit it.
 */
#ifndef TESTS_SUPPORT_CASES_H
#define TESTS_SUPPORT_CASES_H

#include <stddef.h>
#include <stdio.h>

#include <frag/error.h>

/* "byte 12: message", with the exit status if that is not 3. */
void cases_error(FILE *out, const struct frag_err *err);
/* Bytes with C's escapes; `length` of what *out (the caller's, free) holds. */
char *cases_unescape(const char *text, size_t *length);
/* The next word of *at, cut off in place; NULL at the end. "quoted words" may hold spaces. */
char *cases_word(char **at);

#endif
