/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns raw recorded entries of one device into a struct frag_trace_dev, for all readers of
 * PyTorch-like histories. Rules: PyTorch 2.11's event grammar.
 *
 * Ownership: the raw description is the caller's and borrowed during the call;
 * the filled frag_trace_dev owns what it points to (frag_trace_dev_release).
 */
#ifndef FRAG_TRACE_BUILD_H
#define FRAG_TRACE_BUILD_H

#include <frag/trace.h>

#include "lib/grow.h"

enum frag_raw_action {
	FRAG_RAW_OTHER, /* unknown kinds: no-ops */
	FRAG_RAW_ALLOC,
	FRAG_RAW_FREE, /* a free_requested and the free_completed after it, as one entry */
	FRAG_RAW_FREE_REQUESTED,
	FRAG_RAW_FREE_COMPLETED,
	FRAG_RAW_SEGMENT_ALLOC,
	FRAG_RAW_SEGMENT_FREE,
	FRAG_RAW_SEGMENT_MAP,
	FRAG_RAW_SEGMENT_UNMAP,
	FRAG_RAW_OOM,	      /* addr = free bytes the driver reported, bytes = rounded request */
	FRAG_RAW_SNAPSHOT,    /* bytes = active at that moment */
	FRAG_RAW_EMPTY_CACHE, /* a call: bytes = what the releases after it have together */
	FRAG_RAW_LIMIT,	      /* the process may reserve `bytes` from here on; 0 = no limit */
	FRAG_RAW_COUNT
};

#define FRAG_RAW_NO_POOL UINT16_MAX
#define FRAG_RAW_TIME_BITS 56
#define FRAG_RAW_TIME_MAX ((1ull << FRAG_RAW_TIME_BITS) - 1)
#define FRAG_RAW_WHEN(time_us, action) ((time_us) | (uint64_t)(action) << FRAG_RAW_TIME_BITS)

/* One recorded entry; 32 bytes. */
struct frag_raw_entry {
	uint64_t addr;
	uint64_t bytes;
	union {
		struct {
			uint64_t time_us : 56; /* Unix time, 0 = unknown */
			uint64_t action : 8;   /* enum frag_raw_action */
		};
		uint64_t when; /* both in one store: FRAG_RAW_WHEN */
	};
	uint32_t stack;
	uint16_t stream; /* index into frag_raw_dev.streams */
	uint16_t pool;	 /* index into frag_raw_dev.pools, FRAG_RAW_NO_POOL = not recorded */
};

/* A segment of the final snapshot, in any order. */
struct frag_raw_segment {
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t first_block, blocks_count; /* in frag_raw_dev.blocks: address order, gapless */
	uint16_t stream, pool;
	bool small, expandable;
	uint32_t device; /* for readers of several */
};

struct frag_raw_mark {
	uint64_t time_us;
	uint32_t name; /* string index */
	uint8_t flags; /* FRAG_EVF_END, FRAG_EVF_STEP */
};

struct frag_raw_dev {
	uint32_t ordinal;
	const struct frag_raw_entry *entries;
	size_t entries_count;
	uint64_t recorded_count; /* entries of the recording: a FRAG_RAW_FREE counts twice */
	const uint64_t *streams; /* raw handles, any order, no two alike */
	uint32_t streams_count;
	const struct frag_pool_id *pools; /* [0] = {0,0}, no two alike */
	uint32_t pools_count;
	const struct frag_raw_mark *marks; /* by time */
	size_t marks_count;
	struct frag_strings *strings; /* of the trace, for marks of FRAG_RAW_LIMIT */
	bool early_marks;	      /* marks from before the first entry were left out */
	/* the final snapshot; known false: the file has none */
	bool finals_known;
	const struct frag_raw_segment *segments;
	size_t segments_count;
	const struct frag_final_block *blocks;
	const uint32_t *block_stacks; /* of each block, who holds it; 0 or NULL: not recorded */
	const struct frag_trace_settings *settings;
	uint64_t start_us; /* Unix time of event time 0 */
};

/* Errors: FRAG_EINPUT with the entry index, FRAG_ENOMEM; nothing is left in *out. */
int frag_build_dev(const struct frag_raw_dev *raw, struct frag_trace_dev *out,
		   struct frag_err *err);
/* Sorts the streams of a device; number_of[count]: their numbers of these handles, 0 for others. */
void frag_sort_streams(struct frag_trace_dev *dev, const uint64_t *handles, size_t count,
		       uint16_t *number_of);
/* Frees what a device owns. */
void frag_trace_dev_release(struct frag_trace_dev *dev);

/* Bytes of a block for a request under these settings (PyTorch's rounding rule). */
uint64_t frag_torch_round(uint64_t bytes, const uint32_t *roundup16);
/* Page of the large expandable segments, and size of a large segment: large_segment_size_mb, a
 * setting from 2.11 on. settings: NULL is allowed. */
uint64_t frag_torch_large_segment(const struct frag_trace_settings *settings);

#endif
