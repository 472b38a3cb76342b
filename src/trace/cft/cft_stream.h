/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A .cft of events that are made while it is written: memory does not follow its length.
 *
 *	frag_cft_stream_open(path, head, &s, err)     head: counts of what will come
 *	frag_cft_stream_put(s, events, count, err)    device by device, in order
 *	frag_cft_stream_close(s, err)
 *
 * The bytes are those of frag_trace_write_cft for the same trace in memory.
 * Ownership: the stream borrows head until close or abort; head->devs[i].events are not
 * looked at. Complete or absent: until close nothing has the name `path`.
 */
#ifndef FRAG_TRACE_CFT_STREAM_H
#define FRAG_TRACE_CFT_STREAM_H

#include <frag/trace.h>

struct frag_cft_stream;

/* pre: no device of head has evidence; events_count and slots_count are exact.
 * Errors: FRAG_EOUTPUT, FRAG_ENOMEM, FRAG_EINPUT for a head that breaks the format. */
int frag_cft_stream_open(const char *path, const struct frag_trace *head,
			 struct frag_cft_stream **out, struct frag_err *err);
/* Errors: FRAG_EINPUT for an event that breaks the rules of a trace; then only abort is left. */
int frag_cft_stream_put(struct frag_cft_stream *s, const struct frag_event *events, size_t count,
			struct frag_err *err);
/* Commits. FRAG_EINPUT if there were fewer events than declared; s is gone in any case. */
int frag_cft_stream_close(struct frag_cft_stream *s, struct frag_err *err);
/* Leaves nothing behind. NULL is allowed. */
void frag_cft_stream_abort(struct frag_cft_stream *s);

#endif
