/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source (frag/trace.h) knows besides its head. In the head of a .cft events_count
 * and slots_count are those that will come, and there is no evidence: passed over, but counted.
 */
#ifndef FRAG_TRACE_SOURCE_H
#define FRAG_TRACE_SOURCE_H

#include <frag/trace.h>

struct frag_source_counts {
	uint64_t seen, final_segments, final_blocks;
};

/* Evidence of a device (index, not ordinal) in the file, whether or not it is handed out. */
void frag_source_counts(const struct frag_source *src, uint32_t dev,
			struct frag_source_counts *out);

#endif
