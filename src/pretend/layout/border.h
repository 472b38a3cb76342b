/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layouts have to be run to know about all of them. Points lie in groups; within a group, along names that were declared
 * to rise, what fits with a value is assumed to fit with every smaller one, so the border is found by bisection, in as
 * many directions as there are such names. Along names of which that is only expected, an answer counts for others if it is clear; and
 * not at all once two that ran say otherwise. Each point has an answer for each of up to 64 cards.
 *
 * Ownership: the caller's arrays; init by zeroing, then frag_border_open.
 */
#ifndef FRAG_LAYOUT_BORDER_H
#define FRAG_LAYOUT_BORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>

#define FRAG_BORDER_AXES 8u
#define FRAG_BORDER_AT_ONCE 64u

struct frag_border_point {
	size_t group;			  /* points of a group are side by side */
	uint16_t level[FRAG_BORDER_AXES]; /* along the rising names: more memory the higher */
	/* a bit for each card, from here on */
	uint64_t elsewhere; /* this point is not about them */
	uint64_t decided, fits;
	uint64_t clear; /* it ran, and far from the border */
	bool ran, running;
	bool due;      /* runs next or now */
	bool alone;    /* it failed for a reason of its own: it says nothing about others */
	bool checking; /* runs although its answer was assumed */
};

struct frag_border {
	struct frag_border_point *points;
	size_t count;
	unsigned axes;
	unsigned expected; /* a bit for each axis along which memory is only expected to rise */
	bool withdrawn;	   /* that is expected no longer */
	unsigned at_once;  /* points of a group; 0 = 1 */
	uint64_t cards;	   /* a bit for each */
	uint64_t assumed, checked,
		wrong; /* counts: never run; run as a check; of these, other than assumed */
};

/* The next to run, of the group with the fewest running; of these, of the one with the most undecided, so that none is left alone at the
 * end. SIZE_MAX = none before one of those that run has answered. */
size_t frag_border_next(struct frag_border *b);
/* It ran: these cards have room for it; of these answers, those far from the border. */
void frag_border_decide(struct frag_border *b, size_t i, uint64_t fits, uint64_t clear);
/* Memory does not rise as expected: along those axes nothing is assumed any more. */
void frag_border_expect_nothing(struct frag_border *b);
/* Do i and k differ along expected axes only, and i has less there? */
bool frag_border_expected_below(const struct frag_border *b, size_t i, size_t k);
/* It failed for another reason than memory. */
void frag_border_fail(struct frag_border *b, size_t i);
/* After all is decided: an assumed point to run as a check, one for every 20 that are assumed and at most `most`; SIZE_MAX = enough.
 * seed: which. */
size_t frag_border_check(struct frag_border *b, uint64_t most, uint64_t seed);
/* The answer of a check. false: it contradicts, and its group is undecided again where it did not run. */
bool frag_border_checked(struct frag_border *b, size_t i, uint64_t fits);
/* Counts what is assumed. */
void frag_border_count(struct frag_border *b);

#endif
