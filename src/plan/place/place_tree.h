/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the placement search: one attempt to place all buffers below a ceiling.
 *
 * Words. section: a moment; two buffers overlap in time if and only if they share a section. floor
 * of a section: everything placed in it lies below, everything unplaced goes above. left: total
 * size of its unplaced items. slack: ceiling - floor - left, which may still be wasted. ground of
 * an item: the highest floor in its sections, its lowest possible offset. An item is level if all
 * its floors are equal. decision: an item placed on its ground, or a floor raised because nothing
 * begins on it.
 *
 * Reason of a floor: the set of decisions without which it could be lower. A failure yields the set
 * of decisions that cause it; decisions outside the set need no other choice.
 */
#ifndef FRAG_PLAN_PLACE_TREE_H
#define FRAG_PLAN_PLACE_TREE_H

#include <frag/plan.h>

/* ---- the problem: shared by all attempts, read-only --------------------- */

struct tree_item {
	uint64_t bytes;
	uint32_t from, to; /* sections [from, to) */
};

struct tree_problem {
	const struct frag_buffers *b;
	struct tree_item *items; /* indexed by buffer */
	size_t count;
	uint32_t sections_count;
	uint64_t *totals;	  /* per section: sizes in it */
	uint32_t *within, *at;	  /* items of section c: within[at[c] .. at[c + 1]) */
	uint32_t *pairs, *met_at; /* items that overlap item i in time: pairs[met_at[i] .. met_at[i
				   * + 1]) */
	size_t words;		  /* words in a set of decisions */
};

/* *fits false: the sets would take too much memory; nothing was created. */
int tree_problem_init(struct tree_problem *p, const struct frag_buffers *b, bool *fits,
		      struct frag_err *err);
void tree_problem_release(struct tree_problem *p);
/* The order in which items are tried: 0, 1, 2 are static; higher numbers are random variations.
 * rank[count]: place of each item. Errors: FRAG_ENOMEM. */
int tree_rank(const struct tree_problem *p, uint64_t order, uint64_t seed, uint32_t *rank,
	      struct frag_err *err);

/* ---- the state of one attempt ------------------------------------------------------ */

struct tree_spot {
	uint64_t ground, lowest; /* highest and lowest floor in its sections; if placed: MAX and
				  * 0 */
	bool placed;
};

struct tree_floor {
	uint64_t floor, left;
	uint32_t ready; /* unplaced items that are level on this floor */
	bool skewed;	/* an unplaced item has its ground here, but a lower floor elsewhere */
};

struct tree {
	const struct tree_problem *p;
	uint64_t ceiling;
	const uint32_t *rank;
	struct tree_spot *spots;
	struct tree_floor *floors;
	uint64_t *reasons; /* [sections][words] */
	uint64_t *offsets; /* offsets of placed items */
	size_t left_count; /* items to come */
	uint64_t *undo;	   /* the state before each change, in their order */
	size_t undo_words, undo_cap;
	uint64_t *conflicts; /* [levels + 1][words]: reasons why a level failed */
	uint32_t *choices;   /* candidates, level by level */
	size_t choices_cap;
	uint32_t *touched; /* items of the current decision */
	size_t touched_count;
	uint64_t *because; /* [words]: reasons of the current decision */
	bool out_of_memory;
	/* limits; see tree_attempt */
	uint64_t nodes, nodes_max, deadline_ns;
	bool (*cancelled)(const void *ctx);
	const void *ctx;
};

int tree_init(struct tree *t, const struct tree_problem *p, struct frag_err *err);
void tree_release(struct tree *t);
/* Starts with everything unplaced. */
void tree_clear(struct tree *t);

static inline uint64_t tree_slack(const struct tree *t, uint32_t section)
{
	const struct tree_floor *f = &t->floors[section];

	return t->ceiling - f->floor - f->left;
}

static inline uint64_t *tree_reason(const struct tree *t, uint32_t section)
{
	return &t->reasons[section * t->p->words];
}

static inline uint64_t *tree_conflict(const struct tree *t, size_t level)
{
	return &t->conflicts[level * t->p->words];
}

/*
 * Decisions of level `level`. Both return whether the unplaced items may still fit; if not, the
 * reasons are in conflict[level + 1] (unless out_of_memory). put: places a level item of the
 * section on its ground. pre: below the ceiling. raise: nothing of the section begins below
 * `floor`; t->because has the reasons; not decided: there was no alternative, so nothing can be
 * changed here.
 */
bool tree_put(struct tree *t, uint32_t item, uint32_t section, size_t level);
bool tree_raise(struct tree *t, uint32_t section, uint64_t floor, size_t level, bool decided);
/* Undoes everything since t->undo_words was `mark`. */
void tree_undo_to(struct tree *t, size_t mark);
/* Adds a set to `set`. */
void tree_add(const struct tree *t, uint64_t *set, const uint64_t *more);
/* Adds to `set` the reasons why the item's ground is at least `floor`. pre: it is. */
void tree_add_reason(const struct tree *t, uint64_t *set, uint32_t item, uint64_t floor);

/* ---- an attempt --------------------------------------------------------------------- */

/* ELSEWHERE, inside: impossible, and the last decision is no reason. */
enum tree_outcome { TREE_SOLVED, TREE_IMPOSSIBLE, TREE_ELSEWHERE, TREE_GAVE_UP };

/* Searches from the start, with t's ceiling, rank and limits. SOLVED: offsets has the solution. */
enum tree_outcome tree_attempt(struct tree *t);

#endif
