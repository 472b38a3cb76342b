/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded entries as text, with the live blocks at the end:
 *
 *	alloc S0 512 stream=1, requested S0 512, completed S0 512, segment_free S0 2M pool=2, oom 777 1G, other 1 2,
 *	mark 150 7 step, final S0 2M small expandable pool=1, block S0 512 500 live, nothing left
 *
 * An entry is of stream 0 and of time 100 (where the trace begins) if it does not say time=N. S0,
 * S1, S2 are addresses far apart, R one of a reservation, P is 20M. The last block is of the last
 * final segment; "nothing left" is a final snapshot without segments. Failures fail the cmocka
 * test.
 */
#ifndef TESTS_SUPPORT_RAW_TEXT_H
#define TESTS_SUPPORT_RAW_TEXT_H

#include "trace/build/build.h"

#define RAW_TEXT_MOST 32

struct raw_text {
	struct frag_raw_dev raw; /* of the arrays below */
	struct frag_raw_entry entries[RAW_TEXT_MOST];
	struct frag_raw_mark marks[RAW_TEXT_MOST];
	struct frag_raw_segment segments[RAW_TEXT_MOST];
	struct frag_final_block blocks[RAW_TEXT_MOST];
	uint32_t blocks_count;
};

/* *s stays where it is: its description points into it. */
void raw_text_parse(struct raw_text *s, const char *text);

#endif
