/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fit --no-gpu -- PROGRAM`: the program is recorded once for each compute capability among the cards, because it chooses its
 * kernels, and so its memory, by that; and at the end on the very card that is about to be advised.
 *
 * The card of a class is its largest. If the program runs out of memory there, it is recorded with enough, to see what it needs.
 * Two recordings run at a time, if host memory allows; a program that fails beside another run of it (a port, a
 * file) is recorded again, alone.
 *
 *	struct frag_fit_classes c = { .program = program, … .first = &first };		first: searched, of the first recording
 *	frag_fit_classes_record(&c, &best, err) ?: frag_fit_cards_answer(best, …); frag_fit_classes_release(&c);
 */
#ifndef FRAG_PROGRAM_FIT_CLASSES_H
#define FRAG_PROGRAM_FIT_CLASSES_H

#include "plan/fit/fit_cards.h"
#include "pretend/start/program.h"

#define FRAG_FIT_CLASSES 24u /* recordings at most */

struct frag_fit_classes {
	struct frag_program program;
	const struct frag_policy_texts *policies;
	struct frag_headroom headroom;
	unsigned threads;
	struct frag_fit_cards *first;
	/* made, by recording: its search, the card, its memory */
	struct frag_fit_cards list[FRAG_FIT_CLASSES];
	const struct frag_gpu *gpus[FRAG_FIT_CLASSES];
	uint64_t capacities[FRAG_FIT_CLASSES];
	size_t count;
	const struct frag_fit_cards *judges[FRAG_CARDS_MAX];
	char *folder;
};

/* *out: what to answer from. An interruption leaves cards to the first recording. Errors: those of the search. */
int frag_fit_classes_record(struct frag_fit_classes *c, struct frag_fit_cards **out,
			    struct frag_err *err);
void frag_fit_classes_release(struct frag_fit_classes *c);

#endif
