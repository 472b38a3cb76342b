/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblocks of RMM's arena resource: contiguous parts of the one upstream
 * block, each cut into spans, exchanged between the global arena and those of the
 * streams (rapidsai/rmm cpp/include/rmm/mr/detail/arena.hpp, 2026).
 *
 * Structure: superblocks form a chain in address order without gaps, and so do
 * the spans of each. A superblock has its free spans in a set by address; an
 * arena has its superblocks in a set by address, sized by their largest free
 * span. So first fit over both is two descents.
 *
 * Invariants: no two neighbouring spans of a superblock are free; a superblock is
 * empty when it has one free span and nothing live; it is in the set of its owner.
 */
#ifndef FRAG_RMM_ARENA_SUPERBLOCK_H
#define FRAG_RMM_ARENA_SUPERBLOCK_H

#include <spans.h>

#define RA_SUPERBLOCK_MIN FRAG_MIB

struct ra_arena {
	struct frag_tree supers;
};

struct ra_super {
	struct frag_tree_node fit; /* first. key: address; weight: of the largest free span */
	uint64_t bytes;
	struct ra_super *prev, *next; /* neighbours in memory */
	struct ra_arena *owner;
	struct frag_spans spans; /* each has it as its owner */
};

struct ra_heap {
	struct frag_slab spans, supers;
	struct ra_super *first; /* NULL: nothing yet */
	struct ra_arena global;
};

void ra_heap_init(struct ra_heap *h);
void ra_heap_release(struct ra_heap *h);
/* One superblock in the global arena, over [addr, addr + bytes). 0 or FRAG_ENOMEM. */
int ra_heap_start(struct ra_heap *h, frag_addr_t addr, uint64_t bytes, struct frag_err *err);
/* Room for one ra_heap_fit and one ra_super_take. */
int ra_heap_room(struct ra_heap *h, struct frag_err *err);

static inline bool ra_super_is_empty(const struct ra_super *s)
{
	return !s->spans.used_count;
}

/* First superblock of the global arena with a free span of `size`, cut to the larger of
 * `size` and 1 MiB if it is empty and a superblock of 1 MiB or more is left. NULL: none. */
struct ra_super *ra_heap_fit(struct ra_heap *h, uint64_t size);
/* Moves a superblock into another arena. */
void ra_super_move(struct ra_super *s, struct ra_arena *to);
/* First fit inside, split exactly. pre: there is one. */
struct frag_span *ra_super_take(struct ra_heap *h, struct ra_super *s, uint64_t size);
/* Frees a span and merges it with its neighbours. */
void ra_super_give(struct ra_heap *h, struct frag_span *span);
/* A superblock of the global arena, if empty, merges with empty neighbours there. */
void ra_heap_coalesce(struct ra_heap *h, struct ra_super *s);

/* For `check`: each free span is in its set, and no empty superblocks are neighbours. */
int ra_heap_check(const struct ra_heap *h, struct frag_err *err);

#endif
