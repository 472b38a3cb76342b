/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's fixed-size resource (rapidsai/rmm
 * cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp,
 * cpp/include/rmm/mr/detail/fixed_size_free_list.hpp, 2026).
 *
 *	Blocks of one size, many to a chunk. Each stream has a list of free blocks:
 *	freed ones go to its end, requests take from its front. A new chunk's blocks
 *	are put at the end in order of address; the first chunk is taken at the
 *	start and belongs to the default stream. A stream without a block steals as
 *	streamlists.h says. Nothing is merged and nothing given back.
 *
 * Structure: a chunk has an array of slots (chunk->head), one per block; a free
 * slot is linked into the list of its stream. Several pools may share an upstream;
 * chunk->owner tells whose a chunk is.
 *
 * Cost: O(1), a new chunk O(blocks of a chunk).
 */
#ifndef FRAG_COMMON_FIXEDBLOCKS_H
#define FRAG_COMMON_FIXEDBLOCKS_H

#include "equalblocks.h"
#include "streamlists.h"

#define FRAG_FIXED_ALIGNMENT 256u

struct frag_fixed_slot {
	struct frag_fixed_slot *next;
	struct frag_chunk *chunk;
	uint32_t stream; /* of its last request */
	uint8_t state;	 /* enum frag_block_state */
};

struct frag_fixed {
	struct frag_equal e; /* block_bytes: a multiple of 256 */
	struct frag_streams streams;
	bool started;
};

void frag_fixed_init(struct frag_fixed *f, struct frag_upstream *up, uint64_t block_bytes,
		     uint64_t chunk_blocks);

#endif
