/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the placement search: one attempt to place all buffers below a ceiling. */
#ifndef FRAG_PLAN_PLACE_TREE_H
#define FRAG_PLAN_PLACE_TREE_H

#include <frag/plan.h>

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
