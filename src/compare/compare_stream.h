/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces that are replayed while they are read: a .cft of some length, or where the user asks
 * for it. Everything else is read into memory.
 */
#ifndef FRAG_SESSION_STREAM_H
#define FRAG_SESSION_STREAM_H

#include "recording/recording.h"

struct frag_session;
struct frag_session_task;
struct frag_run_options;

/* Opens a recording, streamed if --stream or its length ask for it. Errors also: FRAG_EUSAGE if it
 * was to be streamed and cannot be. */
int frag_session_open_recording(const struct frag_session *s, const char *path,
				struct frag_recording *out, struct frag_err *err);
/* Replays task->dev from task->streamed; task->last_us: time of its last event. */
int frag_session_stream(const struct frag_session *s, struct frag_session_task *task,
			const struct frag_run_options *opt);
/* What cannot be done without the trace in memory: FRAG_ENOTSUP with task->left_out, or a
 * note that takes the place of a placement. */
int frag_session_not_streamed(struct frag_session_task *task);

#endif
