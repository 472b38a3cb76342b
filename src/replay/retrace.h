/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording beside a replay of its own settings that began with what was there when it began
 * (frag_run_options.restore). A history that began late does not hold the order and the ages of that:
 * choices show them, so the policy is told what the recording shows next, as verify tells it
 * (recorded_next of struct frag_policy_env). From the first segment on that the replay gets or gives
 * back otherwise, it is told nothing more.
 */
#ifndef FRAG_REPLAY_RETRACE_H
#define FRAG_REPLAY_RETRACE_H

#include <frag/policy.h>
#include <frag/trace.h>

struct frag_retrace {
	const struct frag_trace_dev *trace; /* with events, addresses and evidence in memory */
	const uint64_t *event;		    /* that is being replayed */
	const bool *begun;		    /* what was there is there */
	size_t cursor;			    /* next evidence */
	bool lost;
};

/* Does the device hold what it takes? */
bool frag_retrace_possible(const struct frag_trace_dev *trace);
/* For the environment of a policy; ctx is a struct frag_retrace. */
void frag_retrace_journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
			  uint32_t stream);
bool frag_retrace_next(void *ctx, bool release, frag_addr_t addr);

#endif
