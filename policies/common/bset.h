/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered set of (size, addr) -> pointer, ascending by size, then by address:
 * the free set of every best-fit policy. A treap (lib/tree.h) whose nodes come from a slab
 * that the set owns, or that several sets share.
 *
 * After frag_bset_reserve(s, n) no insert fails while the set holds at most n
 * elements; policies reserve before they change anything.
 *
 * Ownership: the values are the caller's. A set with its own nodes may be moved
 * in memory; shared ones must stay where they are.
 * Cost: O(log n), expected, for every call.
 */
#ifndef FRAG_COMMON_BSET_H
#define FRAG_COMMON_BSET_H

#include "lib/slabs.h"
#include "lib/tree.h"

/* An element; valid until it is erased. NULL: past either end. */
struct frag_bset_node {
	struct frag_tree_node by; /* key: the size; tie: the address */
	void *value;
};

struct frag_bset {
	struct frag_tree tree;
	struct frag_slab own;
	struct frag_slab *shared; /* NULL: its own */
};

void frag_bset_init(struct frag_bset *s);
void frag_bset_release(struct frag_bset *s);
/*
 * Shared nodes: the guarantee is for the sum of all elements of the sets.
 * pre of nodes_release: no set is used any more.
 */
void frag_bset_nodes_init(struct frag_slab *nodes);
/* Room for `n` elements in all sets that share the nodes. 0 or FRAG_ENOMEM. */
static inline int frag_bset_nodes_reserve(struct frag_slab *nodes, size_t n)
{
	size_t live = frag_slab_live(nodes);

	return FRAG_LIKELY(n <= live + nodes->spare_count) ? 0 : frag_slab_reserve(nodes, n - live);
}

void frag_bset_init_shared(struct frag_bset *s, struct frag_slab *nodes);

/* 0 or FRAG_ENOMEM. Own nodes only. */
static inline int frag_bset_reserve(struct frag_bset *s, size_t n)
{
	return frag_bset_nodes_reserve(&s->own, n);
}

/* pre: reserved, key absent. */
struct frag_bset_node *frag_bset_insert(struct frag_bset *s, uint64_t size, uint64_t addr,
					void *value);
/* false: there is no such key. */
bool frag_bset_erase(struct frag_bset *s, uint64_t size, uint64_t addr);
void frag_bset_erase_at(struct frag_bset *s, struct frag_bset_node *at);

static inline size_t frag_bset_count(const struct frag_bset *s)
{
	return s->tree.count;
}

/* First element that is not below (size, addr). */
static inline struct frag_bset_node *frag_bset_lower(const struct frag_bset *s, uint64_t size,
						     uint64_t addr)
{
	return (struct frag_bset_node *)frag_tree_ceil(&s->tree, size, addr);
}

/* Last element below (size, addr). */
struct frag_bset_node *frag_bset_below(const struct frag_bset *s, uint64_t size, uint64_t addr);

static inline struct frag_bset_node *frag_bset_first(const struct frag_bset *s)
{
	return frag_bset_lower(s, 0, 0);
}

static inline struct frag_bset_node *frag_bset_last(const struct frag_bset *s)
{
	return frag_bset_below(s, UINT64_MAX, UINT64_MAX);
}

static inline struct frag_bset_node *frag_bset_next(const struct frag_bset *s,
						    const struct frag_bset_node *at)
{
	return (struct frag_bset_node *)frag_tree_next(&s->tree, &at->by);
}

static inline struct frag_bset_node *frag_bset_prev(const struct frag_bset *s,
						    const struct frag_bset_node *at)
{
	return frag_bset_below(s, at->by.key, at->by.tie);
}

/* Of the element; NULL for none. */
static inline void *frag_bset_value(const struct frag_bset_node *at)
{
	return at ? at->value : NULL;
}

/* The greatest size; 0 where the set is empty. */
static inline uint64_t frag_bset_largest(const struct frag_bset *s)
{
	const struct frag_bset_node *last = frag_bset_last(s);

	return last ? last->by.key : 0;
}

/* For checks: is `value` in the set, under just this key? */
static inline bool frag_bset_has(const struct frag_bset *s, uint64_t size, uint64_t addr,
				 const void *value)
{
	const struct frag_bset_node *at = frag_bset_lower(s, size, addr);

	return at && at->value == value && at->by.key == size && at->by.tie == addr;
}

/* Sets by stream that share the nodes: the array now has one for `stream`. 0 or FRAG_ENOMEM. */
int frag_bset_by_stream(struct frag_bset **sets, uint32_t *count, uint32_t stream,
			struct frag_slab *nodes);

#endif
