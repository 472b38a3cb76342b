/* SPDX-License-Identifier: Apache-2.0 */
/* One replay on a new simulated card, reduced to what searches need. */
#ifndef FRAG_PLAN_PROBE_H
#define FRAG_PLAN_PROBE_H

#include <frag/plan.h>

struct frag_probe {
	bool completed; /* nothing was refused, not even requests refused in the recording */
	bool ended;	/* reached the end; requests refused in the recording may fail */
	uint64_t refused;
	uint64_t peak_reserved_bytes, peak_active_bytes, lower_bound_bytes;
	uint64_t driver_ns, driver_calls, retries;
};

/*
 * frag_replay_sim without data for charts: no losses, no latency, a short series. Errors: those of
 * the replay; FRAG_EINTR if the watch stopped it.
 */
int frag_probe_run(const struct frag_plan_env *env, const struct frag_policy_spec *spec,
		   const struct frag_sim_config *card, const struct frag_trace_dev *dev,
		   struct frag_probe *out, struct frag_err *err);

/* The largest sum of live requests, each rounded up to `unit`, without waiting ones. O(events). */
uint64_t frag_probe_peak_live(const struct frag_trace_dev *dev, uint64_t unit);

#endif
