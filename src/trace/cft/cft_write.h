/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .cft: a whole trace to a FILE (frag_trace_write_cft of frag/trace.h writes to a path), or
 * the parts of a file one after another, for events that are not all in memory (cft_stream.h). */
#ifndef FRAG_TRACE_CFT_WRITE_H
#define FRAG_TRACE_CFT_WRITE_H

#include <stdio.h>

#include "base/outfile.h"
#include "cft.h"

/* Errors: FRAG_EINPUT if it breaks rules of the format, FRAG_ENOMEM. The caller checks `to`. */
int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err);

/* Checksum of block `number` (from 0). */
uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number);

/* A file being written. Release it after begin, even if that failed. */
struct frag_cft_writer {
	FILE *to;
	uint32_t version;
	uint64_t blocks, events; /* written so far */
	struct frag_cft_packer packer;
	struct frag_cft_coder *coder;
	uint64_t *scratch; /* [FRAG_CFT_BATCH] */
};
/* Writes all before the events. Errors: FRAG_EINPUT for what a reader refuses, FRAG_ENOMEM. */
int frag_cft_writer_begin(struct frag_cft_writer *w, const struct frag_trace *trace, FILE *to,
			  struct frag_err *err);
/* Writes the first *taken of the events as one block. Give more than FRAG_CFT_BATCH of them, or all
 * that are left, to get the same blocks as for a trace in memory. */
int frag_cft_writer_events(struct frag_cft_writer *w, unsigned dev, struct frag_cft_model *model,
			   const struct frag_event *events, size_t count, size_t *taken,
			   struct frag_err *err);
int frag_cft_writer_end(struct frag_cft_writer *w, struct frag_err *err);
void frag_cft_writer_release(struct frag_cft_writer *w);
/* Commits the file: syncs it before it gets its name. */
int frag_cft_commit(struct frag_outfile *out, const char *path, struct frag_err *err);

#endif
