/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded addresses as hints for a what-if. As long as a policy requests the recorded segments in
 * order, the simulated card puts them where the real one did, because only addresses distinguish
 * equal free blocks. From the first other request on, the card's own rule applies.
 */
#ifndef FRAG_REPLAY_HINTS_H
#define FRAG_REPLAY_HINTS_H

#include <frag/policy.h>
#include <frag/trace.h>

struct frag_hints {
	const struct frag_trace_dev *trace;
	/* The .cft that the evidence of `trace` is read from, and the device's index there; NULL: it
	 * is in memory. */
	const char *path;
	uint32_t dev;
	bool restore; /* the initial segments come first, at their recorded addresses */
	/* inside */
	const struct frag_evidence *seen;
	size_t count, cursor; /* next evidence */
	size_t restored;      /* initial segments looked at */
	bool begun, lost;
	struct frag_source *source;
	struct frag_err err; /* of the file; to be asked for once the events have been fed */
	int rc;
};

/* Opens a simulated card that follows the hints, which outlive it, unless `card` has a rule. */
int frag_hints_open(struct frag_hints *h, const struct frag_sim_config *card,
		    struct frag_device **out, struct frag_err *err);
/* The error of the file, if there was one. */
int frag_hints_fault(const struct frag_hints *h, struct frag_err *err);
void frag_hints_release(struct frag_hints *h);

/* ---- the whole recording ---- */

static inline bool frag_seen_is_segment(const struct frag_evidence *e)
{
	return e->kind <= FRAG_SEEN_SEGMENT_UNMAP;
}

static inline bool frag_seen_is_release(const struct frag_evidence *e)
{
	return e->kind == FRAG_SEEN_SEGMENT_FREE || e->kind == FRAG_SEEN_SEGMENT_UNMAP;
}

/*
 * Follows the recording during a replay of its own settings from the initial state
 * (frag_run_options.restore). A history that began late does not hold the order and ages of its
 * initial blocks, but its choices show them. So the policy is told what the recording shows next,
 * as in verify (recorded_next of struct frag_policy_env), until the replay takes or returns a
 * segment differently.
 */
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
