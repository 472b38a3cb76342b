/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greatest number with which a program completes on a card: bisection, each probe a recording
 * of the whole program on the pretended card, which refuses memory as the card would.
 *
 * What completes with a number is assumed to complete with every smaller one.
 */
#ifndef FRAG_PLAN_FIT_VARY_H
#define FRAG_PLAN_FIT_VARY_H

#include "answer/answer.h"

#define FRAG_VARY_PROBES 64u

struct frag_vary_probe {
	uint64_t value;
	bool completes; /* the program ended with status 0, and no request was refused, even if caught */
	uint64_t peak_reserved_bytes;
	int64_t exit_status;
};

/* Records the program with the number p->value, and fills in the rest. */
typedef int (*frag_vary_fn)(void *ctx, struct frag_vary_probe *p, struct frag_err *err);

struct frag_vary {
	const char *name;     /* "{batch}" */
	uint64_t first, last; /* the range, below 2^32 */
	frag_vary_fn record;
	void *ctx;
	/* found */
	struct frag_vary_probe probes[FRAG_VARY_PROBES];
	size_t probes_count;
	bool any; /* the first completes */
	uint64_t best;
};

/* Errors: those of recording. */
int frag_vary_search(struct frag_vary *v, struct frag_err *err);
/* card: as sentences name it. */
int frag_vary_answer(const struct frag_vary *v, const char *card, struct frag_answer *a,
		     struct frag_err *err);

#endif
