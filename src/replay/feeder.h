/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole replays on a new simulated card, from any source of events. Shared by traces in memory
 * (run.c) and in a file (stream.c).
 */
#ifndef FRAG_REPLAY_FEEDER_H
#define FRAG_REPLAY_FEEDER_H

#include <frag/replay.h>

#include "hints.h"

struct frag_feeder {
	const struct frag_trace_dev *hdr; /* counts, streams, pools; events if `feed` wants */
	/*
	 * Feeds everything from the beginning, until the run stops. hints: `trace` is hdr; the
	 * feeder fills in the rest. again: this is a second pass, up to one event.
	 */
	int (*feed)(void *ctx, struct frag_run *run, struct frag_hints *hints, bool again,
		    struct frag_err *err);
	void *ctx;
	bool once; /* a second pass is impossible */
};

/* Like frag_replay_sim. Also FRAG_ENOTSUP if a second pass is needed but impossible. */
int frag_replay_fed(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_feeder *feeder, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err);

/* Feeds one batch, after asking the options' stop, with progress. FRAG_EINTR: stopped. */
int frag_feed_batch(struct frag_run *run, const struct frag_event *events, size_t count,
		    struct frag_err *err);

#endif
