/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of the buddy policy: one binary tree per arena.
 *
 * A node is a block: whole (free, live or waiting), or split into a pair of halves.
 * `orders` of a node is the set of orders of free blocks in its subtree, as bits: the
 * lowest free block of an order is found by one walk down, and a change is passed
 * by one walk up that stops where nothing changes. With `lifo` the
 * free blocks of an order are in a list instead, the latest first.
 *
 * Invariants: a split node is not free; two halves are never both free; orders
 * of a split node is the union of its halves (not with lifo).
 * Memory and time depend on the number of blocks and log2(arena / smallest block).
 */
#ifndef FRAG_BUDDY_TREE_H
#define FRAG_BUDDY_TREE_H

#include <frag/policy.h>

#include "arenas.h"
#include "lib/slabs.h"

#define FRAG_BUDDY_ORDERS 56u /* largest arena 2^55 */
#define FRAG_BUDDY_SPLIT 3u   /* a state beside those of enum frag_block_state */

struct frag_buddy_pair {
	struct frag_buddy_node half[2];
	struct frag_buddy_node *of;
};

struct frag_buddy_tree {
	bool lifo;
	unsigned min_order;
	struct frag_slab pairs;
	struct frag_buddy_arenas arenas;
	uint64_t free_count[FRAG_BUDDY_ORDERS];		 /* free blocks per order */
	uint64_t free_orders;				 /* bit k: free_count[k] > 0 */
	struct frag_buddy_node *head[FRAG_BUDDY_ORDERS]; /* lifo */
	uint64_t live_bytes, waiting_bytes, free_bytes;
	uint64_t idle_bytes; /* of arenas that are one free block */
	size_t idle_count, blocks_count;
};

static inline uint64_t frag_buddy_bytes(const struct frag_buddy_node *n)
{
	return 1ull << n->order;
}

/* A free block of the smallest order >= k: the lowest, or with lifo the latest. NULL: none. */
struct frag_buddy_node *frag_buddy_find(const struct frag_buddy_tree *t, unsigned k);
/*
 * Halves a free block down to order k and makes the lowest part live; the upper halves
 * become free. pre: FRAG_BUDDY_ORDERS pairs reserved.
 */
struct frag_buddy_node *frag_buddy_carve(struct frag_buddy_tree *t, struct frag_buddy_node *n,
					 unsigned k);
/* A live or waiting block becomes free and joins its free buddies. Returns the whole. */
struct frag_buddy_node *frag_buddy_merge(struct frag_buddy_tree *t, struct frag_buddy_node *n);
/* An arena that was not there before becomes free, or a free one goes. */
void frag_buddy_put_free(struct frag_buddy_tree *t, struct frag_buddy_node *n);
void frag_buddy_cut_free(struct frag_buddy_tree *t, struct frag_buddy_node *n);
/* Verifies the invariants: NULL, or what is broken. */
const char *frag_buddy_broken(const struct frag_buddy_tree *t);

#endif
