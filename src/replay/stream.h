/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of a .cft block by block: memory does not follow the length of the trace, and the
 * result is that of frag_replay_sim on the same trace in memory, as its file has it (what a
 * recording leaves open was settled when it was imported).
 */
#ifndef FRAG_REPLAY_STREAM_H
#define FRAG_REPLAY_STREAM_H

#include <frag/replay.h>

struct frag_stream {
	const char *path;
	/* For a pipe, which cannot be opened again: what was opened of it; else NULL. It is used
	 * up, but stays the caller's. A policy that needs a second pass then fails. */
	struct frag_source *source;
	const struct frag_trace_dev *hdr; /* of the device, from a source's head */
	uint32_t dev;			  /* its index */
	bool ahead;			  /* unpack in a thread of its own */
	uint64_t last_us;		  /* out: time of the last event of the device */
};

/* The file has been read and checked to its end when this returns 0. */
int frag_replay_stream(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		       struct frag_stream *stream, const struct frag_run_options *opt,
		       struct frag_result *out, struct frag_err *err);

#endif
