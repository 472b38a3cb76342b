/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a .cft whose events are generated on the way: memory does not depend on its length.
 *
 *	frag_cft_stream_open(path, head, &s, err)     head: counts of everything
 *	frag_cft_stream_put(s, events, count, err)    device by device, in order
 *	frag_cft_stream_close(s, err)
 *
 * The file is identical to that of frag_trace_write_cft for the same trace. `path` appears at
 * close. Ownership: head must stay until close or abort; head->devs[i].events is not used.
 */
#ifndef FRAG_TRACE_CFT_STREAM_H
#define FRAG_TRACE_CFT_STREAM_H

#include <frag/trace.h>

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
