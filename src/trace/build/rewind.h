/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was there before the first recorded entry: the final snapshot with the
 * history undone. A history that began in an empty allocator rewinds to
 * nothing.
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
	uint64_t uncertain; /* blocks that may be longer than `bytes`: the file does not say */
};

/* stream_of[raw stream] = dense index. Errors: FRAG_EINPUT with the entry that contradicts
 * the final snapshot, FRAG_ENOMEM. O(entries + live log live). */
int frag_rewind(const struct frag_raw_dev *raw, const uint16_t *stream_of, struct frag_rewound *out,
		struct frag_err *err);
/*
 * Second half, used by frag_rewind: kinds and reservations of expandable
 * segments, sizes of blocks that have none (bytes 0). no_completed: the history has
 * no completed frees. pre: every block is counted in its segment.
 */
int frag_rewind_sizes(const struct frag_raw_dev *raw, bool no_completed, struct frag_rewound *out,
		      struct frag_err *err);
void frag_rewound_release(struct frag_rewound *r);

#endif
