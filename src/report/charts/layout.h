/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a policy's blocks lie, over a replay: boxes of address x time, each with what most of
 * its bytes are. Addresses that were never in use are folded away, so the axis is as high as
 * the memory that was ever held. Bounded in size, whatever the trace.
 *
 * Ownership: a layout owns its boxes and its name.
 */
#ifndef FRAG_REPORT_LAYOUT_H
#define FRAG_REPORT_LAYOUT_H

#include <frag/replay.h>

enum frag_layout_use {
	FRAG_LAYOUT_NONE, /* not held; never in a box */
	FRAG_LAYOUT_LIVE,
	FRAG_LAYOUT_WAITING,
	FRAG_LAYOUT_NON_RELEASABLE,
	FRAG_LAYOUT_RELEASABLE,
	FRAG_LAYOUT_USES,
};
const char *frag_layout_use_name(enum frag_layout_use use);

/* Times: from a sample up to, not including, another. Places: bytes of the folded axis. */
struct frag_layout_box {
	uint64_t from_event, to_event, from_us, to_us;
	uint64_t low, high;
	enum frag_layout_use use;
};

struct frag_layout {
	char *policy;
	uint64_t span_bytes; /* of the folded axis */
	uint64_t cell_bytes; /* height of the finest visible detail */
	size_t samples;	     /* moments that were looked at */
	struct frag_layout_box *boxes;
	size_t count;
};

/*
 * Replays on a simulated card, and looks at evenly spread moments and at the one after peak_event,
 * that of the peak reserved. It ends where the policy runs out of memory. Errors: those of a replay, FRAG_ENOMEM.
 */
int frag_layout_make(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		     const struct frag_trace_dev *dev, uint64_t peak_event,
		     const struct frag_run_options *opt, struct frag_layout *out,
		     struct frag_err *err);
void frag_layout_release(struct frag_layout *l);

#endif
