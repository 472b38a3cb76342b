/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The title of a chart: a sentence that says what the chart shows, and the numbers in it, which
 * JSON has beside the sentence. What is printed and what is noted cannot differ.
 *
 * Ownership: init by zeroing; frag_answer_take_title or frag_title_release.
 */
#ifndef FRAG_ANSWER_TITLE_H
#define FRAG_ANSWER_TITLE_H

#include "answer/textbuf.h"

#define FRAG_TITLE_NUMBERS 8u

struct frag_answer_number {
	const char *name; /* ends with its unit, as those of fields */
	double value;
};

struct frag_title {
	struct frag_text text;
	struct frag_answer_number numbers[FRAG_TITLE_NUMBERS];
	char shown[FRAG_TITLE_NUMBERS][32];
	size_t count;
};

void frag_title_release(struct frag_title *t);
/* A number of the title, and its text: "9.65 GiB", "45.2 ms". The sentence goes to t->text. */
const char *frag_title_bytes(struct frag_title *t, const char *name, uint64_t bytes);
const char *frag_title_ns(struct frag_title *t, const char *name, uint64_t ns);
const char *frag_title_count(struct frag_title *t, const char *name, uint64_t count);
/* 0.334 as "33 %", with `digits` behind the point. */
const char *frag_title_percent(struct frag_title *t, const char *name, double ratio, int digits);

#endif
