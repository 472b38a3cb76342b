/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placed buffers, for placing another one: which of them are live at the same time, and the
 * lowest or smallest gap between these.
 *
 * Structure: buffers sorted by lower (a position each); a max-tree over positions holds `upper` of
 * placed buffers and 0 for others. Buffers that overlap [l, u) are, among the positions with lower
 * < u (a prefix), those with upper > l, found by descending where the maximum allows: O(log n)
 * each.
 */
#ifndef FRAG_PLAN_PLACE_H
#define FRAG_PLAN_PLACE_H

#include <frag/plan.h>

struct frag_span {
	uint64_t from, to; /* offsets */
};

struct frag_placer {
	const struct frag_buffers *b;
	uint64_t *offsets;  /* borrowed, by buffer */
	uint32_t *by_lower; /* position -> buffer */
	uint32_t *position; /* buffer -> position */
	uint64_t *tree;	    /* 1-based implicit max-tree, `leaves` leaves */
	size_t leaves;
	struct frag_span *met; /* scratch */
	size_t met_cap;
};

int frag_placer_init(struct frag_placer *p, const struct frag_buffers *b, uint64_t *offsets,
		     struct frag_err *err);
void frag_placer_release(struct frag_placer *p);
/* Removes all placed buffers. */
void frag_placer_clear(struct frag_placer *p);
/* Places buffer i with its twin, unless it is placed. Errors: FRAG_ENOMEM. */
int frag_placer_put(struct frag_placer *p, uint32_t i, enum frag_gap_rule rule,
		    struct frag_err *err);

/* The largest offset + size. */
uint64_t frag_place_height(const struct frag_buffers *b, const uint64_t *offsets);

/* All buffers in the given order: out[count], their numbers. random: a state, with which they are put
 * into an order nearby; NULL = none. Errors: FRAG_ENOMEM. */
int frag_place_order(const struct frag_buffers *b, enum frag_order order, uint64_t *random,
		     uint32_t *out, struct frag_err *err);

#endif
