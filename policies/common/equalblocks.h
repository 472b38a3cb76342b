/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of blocks of one size, many to a chunk of an upstream. Nothing is merged. Two kinds:
 *
 * Queues: RMM's fixed-size resource (rapidsai/rmm
 * cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp,
 * cpp/include/rmm/mr/detail/fixed_size_free_list.hpp, 2026), in rmm-fixed and rmm-binning.
 *	Each stream has a list of free blocks: freed ones go to its end, requests take from its
 *	front. A new chunk's blocks are put at the end in order of address; the first chunk is
 *	taken at the start and belongs to the default stream. A stream without a block steals as
 *	streamlists.h says. Nothing is given back.
 *
 * Lowest first: Umpire's FixedPool (LLNL/Umpire src/umpire/strategy/FixedPool.cpp), in
 * umpire-fixed and umpire-mixed.
 *	A request takes the lowest free object of the newest sub-pool (chunk) that has one; if none
 *	has, a sub-pool is added. release() gives every wholly free sub-pool back, the oldest first.
 *
 * Structure: a chunk has an array of slots, one per block. A free slot is linked into the queue of
 * its stream; chunks with a free block are in a set by number, so that the newest is the last.
 *
 * Invariants: a free slot is in exactly one queue; a chunk of a pool without queues is in `open` if
 * and only if it has a free block, and has none below `lowest`. The counters are those of the
 * slots.
 *
 * Cost: O(1) with queues, a new chunk O(its blocks); else O(log chunks + blocks of a chunk).
 */
#ifndef FRAG_COMMON_EQUALBLOCKS_H
#define FRAG_COMMON_EQUALBLOCKS_H

#include "streamlists.h"
#include "upstream.h"

#define FRAG_EQUAL_MAX 32u /* pools of one policy */

struct frag_equal {
	struct frag_upstream *up;
	uint64_t block_bytes, chunk_blocks; /* chunk_blocks: blocks of a chunk */
	uint64_t chunks_count, live_count, waiting_count;
	uint64_t idle_count; /* chunks without a live or waiting block, of pools that give back */
	bool gives_back, queues;
	struct frag_streams streams; /* the queues */
	struct frag_bset open;	     /* (number, 0) -> chunk with a free block */
	uint64_t numbers_count;	     /* chunks ever taken */
};

/* Pools over one upstream, the block size rising; chunk->owner tells whose a chunk is. */
struct frag_equals {
	struct frag_equal pool[FRAG_EQUAL_MAX];
	uint32_t count, started_count;
};

/* One pool more. pre: there is room. */
struct frag_equal *frag_equals_add(struct frag_equals *s, struct frag_upstream *up,
				   uint64_t block_bytes, uint64_t chunk_blocks, bool queues);
/* The first chunk of each, smallest blocks first. Goes on where it was refused. */
int frag_equals_start(struct frag_equals *s, struct frag_err *err);
/* A block from the first pool that is large enough. pre: there is one. 0, FRAG_OOM or an error. */
int frag_equals_alloc(struct frag_equals *s, const struct frag_request *req, struct frag_block *out,
		      struct frag_err *err);
static inline bool frag_equals_serve(const struct frag_equals *s, uint64_t bytes)
{
	return s->count && bytes <= s->pool[s->count - 1].block_bytes;
}
/* Hooks; they do not look at self, the block knows its pool. */
void frag_equal_free_requested(void *self, const struct frag_block *block);
int frag_equal_free(void *self, const struct frag_block *block, struct frag_err *err);
/* Gives wholly free chunks back. pre: no queues. Errors: of the upstream. */
int frag_equal_give_back(struct frag_equal *e, struct frag_err *err);
/* The blocks of one chunk. */
void frag_equal_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v);
/* Adds the blocks to what the upstream holds besides. */
void frag_equals_usage(const struct frag_equals *s, struct frag_usage *out);
int frag_equals_check(const struct frag_equals *s, struct frag_err *err);
/* Gives host memory back. pre: the upstream is still open. Chunks stay with it. */
void frag_equals_release(struct frag_equals *s);

/* ---- a policy around one such pool, larger requests are refused ---- */

struct frag_equal_params {
	uint64_t block_bytes, chunk_blocks;
	char upstream[FRAG_OPT_STRING_MAX];
};
struct frag_equal_policy {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_equals set;
};
int frag_equal_op_create(const struct frag_policy_env *env, const struct frag_equal_params *p,
			 bool queues, void **self, struct frag_err *err);
int frag_equal_op_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			struct frag_err *err);
#define FRAG_EQUAL_OPS \
	FRAG_UPSTREAM_OPS, FRAG_POLICY_PARAMS(struct frag_equal_params), \
		.alloc = frag_equal_op_alloc, .free = frag_equal_free, \
		.free_requested = frag_equal_free_requested

#endif
