/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arenas of the buddy policy in address order: a treap, whose heap order is a
 * hash of the address, so that the same arenas always make the same tree.
 *
 * `below` of an arena is the union of `orders` (buddy_tree.h) over its subtree: the lowest arena
 * with a free block of an order is found by one walk down. Expected cost of each call: O(log arenas).
 *
 * Ownership: none; the policy allocates arenas.
 */
#ifndef FRAG_BUDDY_ARENAS_H
#define FRAG_BUDDY_ARENAS_H

#include <frag/policy.h>

struct frag_buddy_pair;

struct frag_buddy_node {
	frag_addr_t addr;
	uint64_t orders;
	struct frag_buddy_pair *pair;	     /* split: the halves */
	struct frag_buddy_pair *in;	     /* the pair it is half of, NULL: a whole arena */
	struct frag_buddy_node *prev, *next; /* free: neighbours in the list (lifo) */
	uint8_t order;			     /* it has 2^order bytes */
	uint8_t state;
};

struct frag_buddy_arena {
	struct frag_buddy_node root; /* first: the arena of a root is the root itself */
	struct frag_buddy_arena *left, *right, *up;
	uint64_t below;
	uint32_t stream;
};

struct frag_buddy_arenas { /* empty: zeroed */
	struct frag_buddy_arena *top;
	size_t count;
};

static inline struct frag_buddy_arena *frag_buddy_arena_of(struct frag_buddy_node *root)
{
	return (struct frag_buddy_arena *)root;
}

void frag_buddy_arenas_add(struct frag_buddy_arenas *all, struct frag_buddy_arena *a);
void frag_buddy_arenas_remove(struct frag_buddy_arenas *all, struct frag_buddy_arena *a);
/* The orders of its root have changed. */
void frag_buddy_arenas_touch(struct frag_buddy_arena *a);
/* The lowest with one of these orders. pre: there is one. */
struct frag_buddy_arena *frag_buddy_arenas_with(const struct frag_buddy_arenas *all,
						uint64_t orders);
/* In address order; NULL at the end. */
struct frag_buddy_arena *frag_buddy_arenas_first(const struct frag_buddy_arenas *all);
struct frag_buddy_arena *frag_buddy_arenas_next(const struct frag_buddy_arena *a);
/* Verifies links, order and unions (not with lifo): NULL, or what is broken. */
const char *frag_buddy_arenas_broken(const struct frag_buddy_arenas *all, bool lifo);

#endif
