/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases as text. A file NAME.cases holds cases that are read and run one after another, each as a
 * cmocka test of its own:
 *
 *	# notes
 *	== name of the case
 *	its body
 *
 * The body holds inputs and outputs. Whoever runs it writes it again, with the answers
 * that it got; the case has passed if that is the same text. CASES_REWRITE=1 in the environment
 * puts the new text into the file instead: look at the difference before you commit it. Failures
 * fail the cmocka test.
 */
#ifndef TESTS_SUPPORT_CASES_H
#define TESTS_SUPPORT_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <frag/error.h>

/* Writes the body again. */
typedef void (*cases_fn)(const char *body, FILE *out);

/* Runs the cases of a file (from the top of the tree). Returns how many failed. */
int cases_run(const char *file, cases_fn run);

/* Input, and the answer in lines begun with "> ": writes both, the answer by `answer`. */
void cases_two_parts(const char *body, FILE *out, void (*answer)(const char *input, FILE *out));

/* A body of lines "call -> answer": `answer` gets the call, and writes the answer; nothing written:
 * the line has no arrow. Empty lines and those that begin with '#' stay as they are. */
void cases_plain_lines(const char *body, FILE *out, void (*answer)(char *call, FILE *out));

/* ---- what bodies are made of ---- */

/* "byte 12: message", with the exit status if that is not 3. */
void cases_error(FILE *out, const struct frag_err *err);
/* Bytes with C's escapes; `length` of what *out (the caller's, free) holds. */
char *cases_unescape(const char *text, size_t *length);
/* The next word of *at, cut off in place; NULL at the end. "quoted words" may hold spaces. */
char *cases_word(char **at);

/* Numbers: 12, 0x1f, 4K, 10ms, 3*a, and sums like a+2M-512 with names of a list (NULL: none). Units: K M
 * G T, us ms s. False if the text is none. */
struct cases_name {
	const char *name;
	uint64_t value;
};
bool cases_number(const char *text, const struct cases_name *names, size_t names_count,
		  uint64_t *out);
/* The same, and the test fails if the text is none. */
uint64_t cases_must_number(const char *text, const struct cases_name *names, size_t names_count);

#endif
