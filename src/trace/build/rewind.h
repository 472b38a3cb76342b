/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state before the first recorded entry: the final snapshot with the history undone. A history
 * that began in an empty allocator rewinds to nothing.
 *
 * Ownership: the result is the caller's (frag_rewound_release).
 */
#ifndef FRAG_TRACE_REWIND_H
#define FRAG_TRACE_REWIND_H

#include "build.h"

struct frag_rewound {
	struct frag_initial_segment *segments; /* by address; none if they cannot be known */
	size_t segments_count;
	struct frag_initial_block *blocks; /* by address; slot = index */
	size_t blocks_count;
	uint64_t uncertain; /* blocks perhaps longer than `bytes`: the file does not show it */
};

/* Consecutive pages of expandable segments that were mapped at the start. */
struct frag_page_run {
	frag_addr_t addr, end;
	frag_addr_t range_addr; /* base of the reservation */
	uint16_t stream, pool;
	int32_t final; /* the segment of the final snapshot that covers it, < 0 = none does */
	bool small;
	bool pool_known, kind_known;
	bool closed; /* its pages were unmapped: later pages there are another run */
};

/* stream_of[raw stream] = dense index; pools: which of them never split (FRAG_POOL_NO_SPLIT), NULL
 * = none. Errors: FRAG_EINPUT with the entry that contradicts the final snapshot, FRAG_ENOMEM.
 * O(entries + live log live). */
int frag_rewind(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		const struct frag_pool_id *pools, struct frag_rewound *out, struct frag_err *err);
/* Page of the large expandable segments: large_segment_size_mb, a setting from 2.11 on. */
uint64_t frag_rewind_large_page(const struct frag_raw_dev *raw);
/* Used by frag_rewind: finds pool, kind and reservation of the runs, by address, and merges runs of
 * one reservation that touch. O(entries log runs). */
void frag_rewind_pages(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		       struct frag_page_run *runs, size_t *count);
/*
 * Second half, used by frag_rewind: sizes of blocks that have none (bytes 0). no_completed: the
 * history has no completed frees. pre: every block is counted in its segment.
 */
int frag_rewind_sizes(const struct frag_raw_dev *raw, const struct frag_pool_id *pools,
		      bool no_completed, struct frag_rewound *out, struct frag_err *err);
void frag_rewound_release(struct frag_rewound *r);

#endif
