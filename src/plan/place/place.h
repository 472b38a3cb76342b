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

/* All buffers in the given order: out[count], their numbers. random: a state, with which they are
 * put into an order nearby; NULL = none. Errors: FRAG_ENOMEM. */
int frag_place_order(const struct frag_buffers *b, enum frag_order order, uint64_t *random,
		     uint32_t *out, struct frag_err *err);

/* ---- moments (buffers.c) ---------------------------------------------------------- */

/* A buffer begins or ends. */
struct frag_edge {
	uint64_t when, bytes;
	bool begins;
};

/* edges[2 * b->count] belongs to the caller. At the same moment, ends come before beginnings. */
void frag_edges_sort(const struct frag_buffers *b, struct frag_edge *edges);

/* ---- one attempt to place all buffers below a ceiling (place_tree.c) --------------- */

struct tree_item {
	uint64_t bytes;
	uint32_t from, to; /* sections [from, to): moments; two buffers overlap in time if and only
			    * if they share one */
};

/* Shared by all attempts, read-only. */
struct tree_problem {
	const struct frag_buffers *b;
	struct tree_item *items; /* indexed by buffer */
	uint32_t sections_count;
	uint64_t *totals;      /* per section: sizes in it */
	uint32_t *within, *at; /* items of section c: within[at[c] .. at[c + 1]) */
};

/* Errors: FRAG_ENOMEM. */
int tree_problem_init(struct tree_problem *p, const struct frag_buffers *b, struct frag_err *err);
void tree_problem_release(struct tree_problem *p);

#define TREE_STATIC 3u /* orders */

enum tree_outcome { TREE_GAVE_UP, TREE_SOLVED, TREE_IMPOSSIBLE };

struct tree_attempt {
	uint64_t ceiling;
	uint64_t order, seed; /* in which items are tried: the first are static, others vary them at
			       * random */
	uint64_t nodes_max, deadline_ns;
	const struct frag_watch *watch;
	/* found */
	enum tree_outcome outcome;
	uint64_t nodes;
	uint64_t *offsets; /* [count], if solved: the caller's */
};

/* Errors: FRAG_ENOMEM. */
int tree_attempt(const struct tree_problem *p, struct tree_attempt *a, struct frag_err *err);

#endif
