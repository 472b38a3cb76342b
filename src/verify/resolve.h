/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to resolve a recording under one memory limit. While a limit is searched
 * (bracket), the first event that no such limit explains says which way to go: decisions only
 * ever get stricter as a limit gets smaller, so whatever lies beyond is wrong, too.
 */
#ifndef FRAG_VERIFY_RESOLVE_H
#define FRAG_VERIFY_RESOLVE_H

#include <frag/replay.h>

enum resolve_outcome { RESOLVE_SAME, RESOLVE_DIFFERENT, RESOLVE_TOO_SMALL, RESOLVE_TOO_LARGE };

struct resolve_try {
	uint64_t limit_bytes; /* UINT64_MAX = none */
	bool bracket;
	uint64_t low_bytes, high_bytes; /* bracket: no other limit can be right; made narrower */
	uint64_t steps;			/* that may be taken; what is left on return */
	/* the result */
	enum resolve_outcome outcome;
	bool open;	/* the difference may come from what the file does not say of its start */
	bool stopped;	/* all steps were taken: nothing is known for certain */
	uint64_t event; /* of the difference */
	uint64_t refusals; /* of the driver, which neither limit nor card explains */
	uint64_t allocs_same, segments_same, ooms_same; /* up to there */
	char text[400];
};

/* Edits the events of the device: see frag_resolve. Errors are those of the simulation. */
int resolve_try(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		struct resolve_try *t, struct frag_err *err);
/* Of the segment that a request takes under these settings (PyTorch's get_allocation_size). */
uint64_t resolve_segment_bytes(const struct frag_trace_settings *settings, uint64_t bytes);
uint64_t resolve_steps(const struct frag_trace_dev *td);

#endif
