/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the recording during a replay of its own settings from the initial state
 * (frag_run_options.restore). A history that began late does not hold the order and ages of its
 * initial blocks, but its choices show them. So the policy is told what the recording shows next,
 * as in verify (recorded_next of struct frag_policy_env), until the replay takes or returns a
 * segment differently.
 */
#ifndef FRAG_REPLAY_RETRACE_H
#define FRAG_REPLAY_RETRACE_H

#include <frag/policy.h>
#include <frag/trace.h>

struct frag_retrace {
	const struct frag_trace_dev *trace; /* with events, addresses and evidence in memory */
	const uint64_t *event;		    /* the event being replayed */
	const bool *begun;		    /* the initial state has been restored */
	size_t cursor;			    /* next evidence */
	bool lost;
	frag_journal_fn heard; /* who else listens to the policy; may be NULL */
	void *heard_ctx;
};

/* Can the device hold the initial state? */
bool frag_retrace_possible(const struct frag_trace_dev *trace);
/* recorded_next of a policy's environment; ctx is a struct frag_retrace. */
void frag_retrace_journal(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
			  uint32_t stream);
bool frag_retrace_next(void *ctx, bool release, frag_addr_t addr);

#endif
