/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .cft: a whole trace to a FILE (frag_trace_write_cft of frag/trace.h writes to a path), or
 * one whose events are made on the way. */
#ifndef FRAG_TRACE_CFT_WRITE_H
#define FRAG_TRACE_CFT_WRITE_H

#include <stdio.h>

#include "base/outfile.h"
#include "cft.h"

/* Errors: FRAG_EINPUT if it breaks rules of the format, FRAG_ENOMEM. The caller checks `to`. */
int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err);

/* Checksum of block `number` (from 0). */
uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number);

/*
 * A file whose events are made on the way: memory does not depend on its length. It is identical to
 * that of frag_trace_write_cft for the same trace; `path` appears at close. Events come device by
 * device, in order.
 *
 * Ownership: head (with the counts of everything) must stay until close or abort; its events are not
 * used.
 */
struct frag_cft_stream;

/* pre: no device of head has evidence; events_count and slots_count are exact.
 * Errors: FRAG_EOUTPUT, FRAG_ENOMEM, FRAG_EINPUT for a head that breaks the format. */
int frag_cft_stream_open(const char *path, const struct frag_trace *head,
			 struct frag_cft_stream **out, struct frag_err *err);
/* Errors: FRAG_EINPUT for an event that breaks the rules of a trace; then only abort is allowed. */
int frag_cft_stream_put(struct frag_cft_stream *s, const struct frag_event *events, size_t count,
			struct frag_err *err);
/* Commits. FRAG_EINPUT if there were fewer events than declared. Frees s in any case. */
int frag_cft_stream_close(struct frag_cft_stream *s, struct frag_err *err);
/* Leaves nothing behind. NULL is allowed. */
void frag_cft_stream_abort(struct frag_cft_stream *s);
FRAG_AUTO_AT(struct frag_cft_stream *, frag_cft_stream_abort)

#endif
