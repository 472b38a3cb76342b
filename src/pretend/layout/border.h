/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the layouts that must run to know the answers for all. Points lie in groups. Within a
 * group, along names that were declared to rise, what fits with a value is assumed to fit with
 * every smaller one, so the border is found by bisection in several dimensions. Along names that
 * are only expected to rise, just clear answers count for others, and none after two runs
 * contradict the order. Each point has an answer for each of up to 64 cards.
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
	size_t group;			  /* points of a group are contiguous */
	uint16_t level[FRAG_BORDER_AXES]; /* along the rising names; memory rises with the level */
	/* a bit for each card, from here on */
	uint64_t elsewhere; /* cards that this point is not about */
	uint64_t decided, fits;
	uint64_t clear; /* it ran, with an answer far from the border */
	bool ran, running;
	bool due;      /* running, or to run next */
	bool alone;    /* failed for a reason of its own, which says nothing about others */
	bool checking; /* runs although its answer was assumed */
};

struct frag_border {
	struct frag_border_point *points;
	size_t count;
	unsigned axes;
	unsigned expected; /* a bit for each axis along which memory is only expected to rise */
	bool withdrawn;	   /* the expected order was contradicted */
	unsigned at_once;  /* points of a group; 0 = 1 */
	uint64_t cards;	   /* a bit for each */
	uint64_t assumed, checked,
		wrong; /* counts: never run; run as a check; checks that contradict */
};

/* The next point to run, from the group with the fewest running points, then with the most
 * undecided ones, so that no group is left alone at the end. SIZE_MAX = none before a running point
 * has answered. */
size_t frag_border_next(struct frag_border *b);
/* Records the result of point i: cards that fit, and cards whose answer is clear. */
void frag_border_decide(struct frag_border *b, size_t i, uint64_t fits, uint64_t clear);
/* Drops the monotonicity assumption for the expected axes. */
void frag_border_expect_nothing(struct frag_border *b);
/* Do i and k only differ along expected axes, with i below k? */
bool frag_border_expected_below(const struct frag_border *b, size_t i, size_t k);
/* Point i failed for another reason than memory. */
void frag_border_fail(struct frag_border *b, size_t i);
/* Once all is decided: an assumed point to run as a check, one in 20 of the assumed and at most
 * `most`, drawn by seed; SIZE_MAX = enough. */
size_t frag_border_check(struct frag_border *b, uint64_t most, uint64_t seed);
/* Records the answer of a check. false: it contradicts the assumption; the rest of its group is
 * undecided again. */
bool frag_border_checked(struct frag_border *b, size_t i, uint64_t fits);
/* Counts the assumed points. */
void frag_border_count(struct frag_border *b);

#endif
