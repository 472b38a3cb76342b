/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private pools (graph captures, MemPool) of a history whose entries do not
 * name them. Final segments name theirs; for segments released before the end
 * the pool is inferred from what the allocator did not do.
 *
 * What is inferred agrees with every recorded choice that was looked at, but it need not be the
 * truth: where two labels explain a history alike, the default pools win. Pools that the file does
 * not name get the made-up ids {UINT64_MAX, 1}, {UINT64_MAX, 2}, …
 */
#ifndef FRAG_TRACE_POOLS_H
#define FRAG_TRACE_POOLS_H

#include "build.h"

struct frag_pool_map {
	uint16_t
		*entry_pool; /* [entries_count]: of alloc and segment entries; NULL = all default */
	uint16_t *initial_pool; /* [initial segments] */
	uint32_t invented;	/* pools beyond raw->pools_count */
};

/* stream_of[raw stream] = dense index. seed_*: what was there before the first entry (may be
 * empty). Errors: FRAG_ENOMEM. */
int frag_pools_infer(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		     const struct frag_initial_segment *initial_segments,
		     size_t initial_segments_count, const struct frag_initial_block *initial_blocks,
		     struct frag_pool_map *out, struct frag_err *err);
void frag_pool_map_release(struct frag_pool_map *map);

#endif
