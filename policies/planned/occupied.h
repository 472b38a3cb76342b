/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of offsets that are in use, none overlapping: a treap by offset in an
 * array of nodes. Every node knows the ends of its subtree and the largest gap between
 * neighbours in it, so the lowest gap of a size is found by one descent. Free nodes are
 * chained through `left`.
 */
#ifndef FRAG_PLANNED_OCCUPIED_H
#define FRAG_PLANNED_OCCUPIED_H

#include <frag/base.h>

#define OCCUPIED_NONE UINT32_MAX

struct occupied_node {
	uint64_t from, to;
	uint64_t low, high; /* of the subtree: first from, last to */
	uint64_t gap;	    /* of the subtree: largest space between two neighbours */
	uint32_t left, right, heat;
	bool waiting; /* the program has let go, another stream still uses it */
};

struct occupied {
	struct occupied_node *nodes;
	uint32_t count, cap, root, free;
	uint32_t rng;
};

void occupied_init(struct occupied *o);
void occupied_release(struct occupied *o);
/* Is nothing of [from, to) in use? O(log n). */
bool occupied_is_free(const struct occupied *o, uint64_t from, uint64_t to);
/* The lowest offset at which `bytes` are free below `limit`; UINT64_MAX = none. O(log n). */
uint64_t occupied_find_gap(const struct occupied *o, uint64_t bytes, uint64_t limit);
/* pre: it is free. Returns the node's number, OCCUPIED_NONE if memory is short. O(log n). */
uint32_t occupied_put(struct occupied *o, uint64_t from, uint64_t to);
void occupied_remove(struct occupied *o, uint32_t node);
/* Calls fn for every range in ascending order. */
void occupied_walk(const struct occupied *o,
		   void (*fn)(void *ctx, const struct occupied_node *node), void *ctx);

#endif
