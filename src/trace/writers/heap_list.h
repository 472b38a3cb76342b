/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a replay as they are now, each with its blocks, in the order in which the policy
 * lists them. A part that is not mapped splits a segment in two, as in PyTorch's lists.
 *
 * Ownership: the list is the caller's, zero before the first take, which adds to it; release frees
 * it.
 */
#ifndef FRAG_EXPLAIN_HEAP_LIST_H
#define FRAG_EXPLAIN_HEAP_LIST_H

#include <frag/replay.h>

#include "replay/run.h"

#define FRAG_NO_SLOT UINT32_MAX

struct frag_listed_block {
	frag_addr_t addr;
	uint64_t bytes, requested; /* requested: bytes where it is free */
	uint32_t slot;		   /* FRAG_NO_SLOT: free, or the policy's own */
	uint8_t state;		   /* enum frag_block_state */
};

struct frag_listed_segment {
	frag_addr_t addr;
	uint64_t bytes;
	size_t first_block, blocks_count;
	uint32_t stream; /* index */
};

struct frag_heap_list {
	struct frag_listed_segment *segments;
	struct frag_listed_block *blocks;
	size_t segments_count, segments_cap, blocks_count, blocks_cap;
};

/* Errors: FRAG_ENOMEM. */
int frag_heap_list_take(struct frag_heap_list *list, struct frag_run *run, struct frag_err *err);
void frag_heap_list_release(struct frag_heap_list *list);

#endif
