/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered sets: a treap with nodes inside the caller's objects, ordered by (key, tie). Each node
 * has the maximum weight of its subtree. One structure serves address order (floor, next), best fit
 * (key = size, tie = address) and first or last fit (weight = size).
 *
 * Ownership: nodes belong to the caller; a node is in one tree at a time. All calls take O(log n)
 * expected time and no memory. Priorities come from a hashed counter, so the shape depends only on
 * the order of calls.
 */
#ifndef FRAG_LIB_TREE_H
#define FRAG_LIB_TREE_H

#include <frag/base.h>

struct frag_tree_node {
	struct frag_tree_node *kid[2];
	uint64_t key, tie;
	uint64_t weight, max; /* its own weight, and the maximum of the subtree */
	uint64_t prio;
};

struct frag_tree {
	struct frag_tree_node *root;
	uint64_t ticks; /* nodes inserted so far */
	size_t count;
};

#define FRAG_TREE_OF(node, type, field) ((type *)(void *)((char *)(node)-offsetof(type, field)))

/* pre: key, tie and weight are set, no node with the same (key, tie) is in. */
void frag_tree_insert(struct frag_tree *t, struct frag_tree_node *n);
/* pre: n is in t and its key and tie are unchanged. */
void frag_tree_remove(struct frag_tree *t, struct frag_tree_node *n);
/* Sets weight and key of a node that stays at its rank. */
void frag_tree_update(struct frag_tree *t, struct frag_tree_node *n, uint64_t key, uint64_t weight);

/* NULL if there is none. */
struct frag_tree_node *frag_tree_find(const struct frag_tree *t, uint64_t key, uint64_t tie);
struct frag_tree_node *frag_tree_floor(const struct frag_tree *t,
				       uint64_t key); /* last with key <= */
/* First with (key, tie) >= the given. */
struct frag_tree_node *frag_tree_ceil(const struct frag_tree *t, uint64_t key, uint64_t tie);
/* First or last node in order with at least this weight. */
struct frag_tree_node *frag_tree_first_fit(const struct frag_tree *t, uint64_t weight);
struct frag_tree_node *frag_tree_last_fit(const struct frag_tree *t, uint64_t weight);

/* Maximum weight of all nodes; 0 if empty. */
static inline uint64_t frag_tree_max(const struct frag_tree *t)
{
	return t->root ? t->root->max : 0;
}

/* Next in order. O(log n). */
static inline struct frag_tree_node *frag_tree_next(const struct frag_tree *t,
						    const struct frag_tree_node *n)
{
	return frag_tree_ceil(t, n->key + (n->tie == UINT64_MAX), n->tie + 1);
}

static inline struct frag_tree_node *frag_tree_first(const struct frag_tree *t)
{
	return frag_tree_ceil(t, 0, 0);
}

#endif
