/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to resolve a recording under one memory limit. During the search for a limit
 * (bracket), the first event that this limit does not explain says which way to go: decisions only
 * get stricter as a limit gets smaller, so all limits beyond are wrong, too.
 */
#ifndef FRAG_VERIFY_RESOLVE_H
#define FRAG_VERIFY_RESOLVE_H

#include <frag/replay.h>

enum resolve_outcome { RESOLVE_SAME, RESOLVE_DIFFERENT, RESOLVE_TOO_SMALL, RESOLVE_TOO_LARGE };

struct resolve_try {
	uint64_t limit_bytes; /* UINT64_MAX = none */
	bool bracket;
	uint64_t low_bytes, high_bytes; /* bracket: the interval of possible limits; gets
					 * narrower */
	uint64_t steps;			/* steps allowed; steps left on return */
	/* the result */
	enum resolve_outcome outcome;
	bool open;	   /* the unknown part of the initial state may cause the difference */
	bool stopped;	   /* all steps are used up: nothing is certain */
	uint64_t event;	   /* of the difference */
	uint64_t refusals; /* refusals of the driver that neither limit nor card explains */
	uint64_t allocs_same, segments_same, ooms_same; /* matches up to there */
	char text[400];
};

/* Edits the events of the device: see frag_resolve. Errors are those of the simulation. */
int resolve_try(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		struct resolve_try *t, struct frag_err *err);
/* Size of the segment for a request under these settings (PyTorch's get_allocation_size). */
uint64_t resolve_segment_bytes(const struct frag_trace_settings *settings, uint64_t bytes);
uint64_t resolve_steps(const struct frag_trace_dev *td);

#endif
