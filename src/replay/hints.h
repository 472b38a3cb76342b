/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded addresses as hints for a what-if. As long as a policy requests the recorded segments in
 * order, the simulated card puts them where the real one did, because only addresses distinguish
 * equal free blocks. From the first other request on, the card's own rule applies.
 */
#ifndef FRAG_REPLAY_HINTS_H
#define FRAG_REPLAY_HINTS_H

#include <frag/device.h>
#include <frag/trace.h>

struct frag_hints {
	const struct frag_trace_dev *trace;
	/* If the evidence of `trace` is in a file: loads the next piece; 1, or 0 = no more. The
	 * piece must stay valid until the next call. NULL: everything is in memory. */
	int (*more)(void *ctx, const struct frag_evidence **seen, size_t *count);
	void *ctx;
	bool restore; /* the initial segments come first, at their recorded addresses */
	/* inside */
	const struct frag_evidence *seen;
	size_t count, cursor; /* next evidence */
	size_t restored;      /* initial segments looked at */
	bool begun, lost;
};

/* Opens a simulated card that follows the hints, which outlive it, unless `card` has a rule. */
int frag_hints_open(struct frag_hints *h, const struct frag_sim_config *card,
		    struct frag_device **out, struct frag_err *err);

#endif
