/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a .cft block by block: memory does not grow with the trace, and the result equals
 * frag_replay_sim on the same trace in memory (importing has settled what a recording leaves open).
 */
#ifndef FRAG_REPLAY_STREAM_H
#define FRAG_REPLAY_STREAM_H

#include <frag/replay.h>

struct frag_stream {
	const char *path;
	/* For a pipe, which cannot be opened twice: the open source; else NULL. It is consumed, but
	 * still belongs to the caller. A policy that needs a second pass then fails. */
	struct frag_source *source;
	const struct frag_trace_dev *hdr; /* head of the device, from a source */
	uint32_t dev;			  /* its index */
	bool ahead;			  /* unpack in a separate thread */
	uint64_t last_us;		  /* out: time of the last event of the device */
};

/* If this returns 0, the whole file has been read and checked. */
int frag_replay_stream(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		       struct frag_stream *stream, const struct frag_run_options *opt,
		       struct frag_result *out, struct frag_err *err);

#endif
