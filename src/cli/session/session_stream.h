/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces that are replayed while they are read. A .cft is, from a length on or where it is
 * asked for; everything else is read into memory.
 */
#ifndef FRAG_CLI_SESSION_STREAM_H
#define FRAG_CLI_SESSION_STREAM_H

#include <frag/trace.h>

struct frag_session;
struct frag_session_task;
struct frag_run_options;
struct frag_trace;

/* A trace that is not in memory. */
struct frag_session_file {
	const char *path;
	struct frag_source *source; /* its head; of a pipe also the events. NULL: read it whole */
	bool pipe;
	bool ahead; /* there are threads to spare: unpack in one */
};

/* Opens it if it is to be streamed. Errors also: FRAG_EUSAGE where that was asked for and cannot
 * be. The source is the caller's to close. */
int frag_session_open_file(const struct frag_session *s, const char *path,
			   struct frag_session_file *out, struct frag_err *err);

/* Fills in head->devs[].settled where the trace is short enough to be read whole once; a long one, or a
 * pipe, stays unchecked, and nothing of it is called recorded. */
int frag_session_settle_streamed(const struct frag_session *s, const struct frag_session_file *file,
				 struct frag_trace *head, struct frag_err *err);
/* Replays task->dev from task->file; task->last_us: time of its last event. */
int frag_session_stream(const struct frag_session *s, struct frag_session_task *task,
			const struct frag_run_options *opt);
/* What cannot be done without the trace in memory: FRAG_ENOTSUP with task->left_out, or a
 * note that takes the place of a placement. */
int frag_session_not_streamed(struct frag_session_task *task);

#endif
