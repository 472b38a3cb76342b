/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the blocks are that were live when a recording began. A block of the large
 * pool may own up to 1 MiB beyond its request, and the file does not always say how much.
 * The reader begins with the least; a request that was served elsewhere when recorded, although
 * the replay takes the space behind such a block, shows that less of it was free: the block is
 * longer, just so much that the request does not fit.
 *
 * Example: 3 MiB seem free behind a block, a request of 2.9 MiB went elsewhere: less than
 * 2.9 MiB were free, so the block owns more than 0.1 MiB of them.
 */
#ifndef FRAG_VERIFY_INITIAL_LENGTHS_H
#define FRAG_VERIFY_INITIAL_LENGTHS_H

#include "follow.h"

/*
 * Does a longer block at the start explain the difference (FOLLOW_ADDR)? Then its size is
 * corrected, and true. Never where the recording shows the end of the block. O(events).
 */
bool initial_lengths_explain(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
			     const struct follow_report *rep);

#endif
