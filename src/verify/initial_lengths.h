/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the lengths of blocks that were live when a recording began. A block of the large pool may
 * have up to 1 MiB beyond its request, and the file does not always say how much. The reader starts
 * with the minimum. If the recording served a request elsewhere, although the replay uses the space
 * after such a block, less of it was free: the block is longer, by just enough that the request
 * does not fit.
 *
 * Example: 3 MiB seem free behind a block, a request of 2.9 MiB went elsewhere: less than 2.9 MiB
 * were free, so the block has more than 0.1 MiB of them.
 */
#ifndef FRAG_VERIFY_INITIAL_LENGTHS_H
#define FRAG_VERIFY_INITIAL_LENGTHS_H

#include "follow.h"

/*
 * Does a longer initial block explain the difference (FOLLOW_ADDR)? Then corrects its size and
 * returns true. Never changes a block with a recorded end. O(events).
 */
bool initial_lengths_explain(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
			     const struct follow_report *rep);

#endif
