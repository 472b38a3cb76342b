/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole replays on a fresh simulated card, wherever the events come from: what
 * a trace in memory (run.c) and one in a file (stream.c) share.
 */
#ifndef FRAG_REPLAY_CARD_H
#define FRAG_REPLAY_CARD_H

#include <frag/replay.h>

#include "hints.h"

struct frag_feeder {
	const struct frag_trace_dev
		*hdr; /* counts, streams, pools; events only if `feed` wants them */
	/*
	 * Feeds everything from the beginning, until the run has stopped. hints: its `trace` is
	 * hdr, the rest is for the feeder to fill in. again: this is a second pass, up to one event.
	 */
	int (*feed)(void *ctx, struct frag_run *run, struct frag_hints *hints, bool again,
		    struct frag_err *err);
	void *ctx;
	bool once; /* there can be no second pass */
};

/* As frag_replay_sim. Errors also: FRAG_ENOTSUP where a second pass is needed and cannot be. */
int frag_replay_fed(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_feeder *feeder, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err);

/* One batch, after a look at the options' stop, and with their progress. FRAG_EINTR: stopped. */
int frag_feed_batch(struct frag_run *run, const struct frag_event *events, size_t count,
		    struct frag_err *err);

#endif
