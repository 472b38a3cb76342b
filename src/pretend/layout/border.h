/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the layouts to run, so that the answer for all of them is known. Points lie in groups.
 * Within a group memory is assumed to be monotonic along each rising axis, so bisection finds the
 * border between points that fit and points that do not. Each point has an answer for each of up to
 * 64 cards.
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
	size_t group; /* points of a group are side by side */
	uint16_t level
		[FRAG_BORDER_AXES]; /* along the rising axes; a higher level needs more memory */
	/* a bit for each card, from here on */
	uint64_t elsewhere; /* cards of other classes */
	uint64_t decided, fits;
	bool ran, running;
	bool due;      /* runs next or now */
	bool alone;    /* it failed for another reason than memory: no answer carries over */
	bool checking; /* runs although its answer was assumed */
};

struct frag_border {
	struct frag_border_point *points;
	size_t count;
	unsigned axes;
	unsigned at_once; /* points of a group; 0 = 1 */
	uint64_t cards;	  /* a bit for each */
	uint64_t assumed, checked,
		wrong; /* counts: never run; run as a check; checks that contradict */
};

/* The next point to run: from the group with the fewest running points, on a tie the most undecided
 * ones. SIZE_MAX = wait for a running point. */
size_t frag_border_next(struct frag_border *b);
/* Records the result of point i: the cards that it fits. */
void frag_border_decide(struct frag_border *b, size_t i, uint64_t fits);
/* Point i failed for another reason than memory. */
void frag_border_fail(struct frag_border *b, size_t i);
/* A random assumed point to run as a check, once everything is decided: one for every 20 assumed
 * points, at most `most`. SIZE_MAX = enough. */
size_t frag_border_check(struct frag_border *b, uint64_t most, uint64_t seed);
/* Records the answer of a check. If it contradicts, all points of its group that did not run are undecided again. */
void frag_border_checked(struct frag_border *b, size_t i, uint64_t fits);
/* Updates b->assumed. */
void frag_border_count(struct frag_border *b);

#endif
