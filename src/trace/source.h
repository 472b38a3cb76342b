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

/* As frag_source_open, but *out = NULL where the file is no .cft, so it has not been read. */
int frag_source_open_cft(const char *path, struct frag_source **out, struct frag_err *err);
/* The next batches of a .cft are unpacked to here, room for FRAG_SOURCE_BATCH; NULL: to a buffer
 * of the source. Other formats go on to lend their own. */
#define FRAG_SOURCE_BATCH 65536u
void frag_source_into(struct frag_source *src, struct frag_event *buffer);

/*
 * Passes over what is left before device `dev` (index; the number of devices: over everything,
 * and then the end is checked), which reads and sums the blocks but unpacks none.
 * pre: that device has not begun. Errors as frag_source_next.
 */
int frag_source_pass(struct frag_source *src, uint32_t dev, struct frag_err *err);
/*
 * What the recorder saw of device `dev`, in pieces: 1, 0 at the end, <0. Passes over everything
 * before it; events can no more be read. .cft only; the piece is the source's until the next call.
 */
int frag_source_seen(struct frag_source *src, uint32_t dev, const struct frag_evidence **seen,
		     size_t *count, struct frag_err *err);

/* Evidence of a device (index, not ordinal) in the file, whether or not it is handed out. */
void frag_source_counts(const struct frag_source *src, uint32_t dev,
			struct frag_source_counts *out);

#endif
