/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's FixedPool (LLNL/Umpire src/umpire/strategy/FixedPool.cpp), as a
 * part of the policies umpire-fixed and umpire-mixed.
 *
 *	Objects of one size, many to a sub-pool; the first sub-pool is taken at the
 *	start. A request takes the lowest free object of the newest sub-pool that
 *	has one; if none has, a sub-pool is added. release() gives every wholly free
 *	sub-pool back, the oldest first.
 *
 * Structure: a sub-pool (chunk->head) has a bitmap of its free objects and one of
 * those that wait for a stream; sub-pools with a free object are in a set by
 * number, so that the newest is the last of the set. chunk->owner is the pool.
 *
 * Cost: O(log sub-pools + objects / 64 in the worst case).
 */
#ifndef FRAG_COMMON_SLOTPOOL_H
#define FRAG_COMMON_SLOTPOOL_H

#include "bset.h"
#include "equalblocks.h"

struct frag_slotpool {
	struct frag_equal e;	/* a block: an object, a chunk: a sub-pool */
	struct frag_bset open;	/* (number, 0) -> sub-pool with a free object */
	uint64_t numbers_count; /* sub-pools ever taken */
};

void frag_slotpool_init(struct frag_slotpool *s, struct frag_upstream *up, uint64_t object_bytes,
			uint64_t objects);
/* Umpire's release(). Errors: of the upstream. */
int frag_slotpool_give_back(struct frag_slotpool *s, struct frag_err *err);

#endif
