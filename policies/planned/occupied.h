/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of offsets that are in use, none overlapping: a tree by offset in which each range
 * weighs the gap behind it, so the lowest gap of a size is found by one descent. A range without
 * bytes at 0 stands for the gap before the first one.
 */
#ifndef FRAG_PLANNED_OCCUPIED_H
#define FRAG_PLANNED_OCCUPIED_H

#include "lib/slabs.h"
#include "lib/tree.h"

struct occupied_range {
	struct frag_tree_node node; /* first. key: where it begins; weight: the gap behind it */
	uint64_t to;
	bool waiting; /* the program has let go, another stream still uses it */
};

struct occupied {
	struct frag_tree tree;
	struct frag_slab slab;
	struct occupied_range start;
};

void occupied_init(struct occupied *o); /* it must then stay where it is */
void occupied_release(struct occupied *o);
/* Is nothing of [from, to) in use? O(log n). pre: from < to. */
bool occupied_is_free(const struct occupied *o, uint64_t from, uint64_t to);
/* The lowest offset at which `bytes` are free below `limit`; UINT64_MAX = none. O(log n). */
uint64_t occupied_find_gap(const struct occupied *o, uint64_t bytes, uint64_t limit);
/* pre: it is free. NULL if memory is short. O(log n). */
struct occupied_range *occupied_put(struct occupied *o, uint64_t from, uint64_t to);
void occupied_remove(struct occupied *o, struct occupied_range *r);
/* Next in ascending order, the first one for NULL; NULL behind the last. */
const struct occupied_range *occupied_next(const struct occupied *o,
					   const struct occupied_range *r);

#endif
