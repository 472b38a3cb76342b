/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered sets for the simulated card: a treap whose nodes live inside the
 * objects of the caller, ordered by (key, tie), each node knowing the greatest
 * weight below it. One structure serves address order (floor, next), best fit
 * (key = size, tie = address) and first or last fit (weight = size).
 *
 * Ownership: nodes are the caller's; a node is in one tree at a time. All calls
 * are O(log n) expected and need no memory. Priorities come from a counter
 * that is mixed, so the shape depends on nothing but the order of calls.
 */
#ifndef FRAG_DEVICE_SIM_TREE_H
#define FRAG_DEVICE_SIM_TREE_H

#include <frag/base.h>

struct tree_node {
	struct tree_node *kid[2];
	uint64_t key, tie;
	uint64_t weight, max; /* own, and the greatest in the subtree */
	uint64_t prio;
};

struct tree {
	struct tree_node *root;
	uint64_t ticks; /* nodes inserted so far */
	size_t count;
};

#define TREE_OF(node, type, field) ((type *)(void *)((char *)(node)-offsetof(type, field)))

/* pre: key, tie and weight are set, no node with the same (key, tie) is in. */
void frag_simtree_insert(struct tree *t, struct tree_node *n);
/* pre: n is in t and its key and tie are unchanged. */
void frag_simtree_remove(struct tree *t, struct tree_node *n);
/* Sets weight and key of a node that stays at its rank. */
void frag_simtree_update(struct tree *t, struct tree_node *n, uint64_t key, uint64_t weight);

/* NULL where there is none. */
struct tree_node *frag_simtree_find(const struct tree *t, uint64_t key, uint64_t tie);
struct tree_node *frag_simtree_floor(const struct tree *t, uint64_t key); /* last with key <= */
/* First with (key, tie) >= the given. */
struct tree_node *frag_simtree_ceil(const struct tree *t, uint64_t key, uint64_t tie);
/* First or last in order whose weight is at least `weight`. */
struct tree_node *frag_simtree_first_fit(const struct tree *t, uint64_t weight);
struct tree_node *frag_simtree_last_fit(const struct tree *t, uint64_t weight);

/* Next in order. O(log n). */
static inline struct tree_node *frag_simtree_next(const struct tree *t, const struct tree_node *n)
{
	return frag_simtree_ceil(t, n->key, n->tie + 1);
}

static inline struct tree_node *frag_simtree_first(const struct tree *t)
{
	return frag_simtree_ceil(t, 0, 0);
}

#endif
