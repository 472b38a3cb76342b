/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to resolve a recording under one memory limit. During the search for a limit
 * (bracket), the first event that this limit does not explain says which way to go: decisions only
 * get stricter as a limit gets smaller, so all limits beyond are wrong, too.
 */
#ifndef FRAG_VERIFY_RESOLVE_H
#define FRAG_VERIFY_RESOLVE_H

#include "follow.h"
#include "pools.h"

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

/* ---- for resolve*.c ---- */

struct resolve {
	struct frag_trace_dev *td;
	const struct frag_trace_settings *settings;
	const struct frag_policy_spec *spec;
	const struct frag_sim_config *card;
	uint64_t total_bytes, limit_bytes;
	struct resolve_try *t;
	struct pools pools;
	bool pools_known;
	bool *trim_before;	  /* [events_count + 1]: releases of this event become a TRIM */
	uint64_t peak_seen_bytes; /* largest total of the recording */
	uint64_t steps_left;
	uint64_t *initial_sizes; /* as read; NULL = do not change the lengths */
	bool sizes_changed, breaks_learnt;
};

/* resolve_edit.c: evidence of events, and rewriting of events. */

/* The first evidence of an event or a later one. */
size_t resolve_first_seen(const struct frag_trace_dev *td, uint64_t event);
/* The leading segment releases among the evidence of an event: [*first, *end). */
bool resolve_leading_releases(const struct frag_trace_dev *td, uint64_t event, size_t *first,
			      size_t *end);
/*
 * Rewrites the events: splits trims of several pools into one each, and turns releases marked in
 * trim_before into trims.
 */
int resolve_rebuild(struct resolve *r, struct frag_err *err);
/* Undoes the trims that an earlier resolve guessed. */
void resolve_undo_guesses(struct frag_trace_dev *td);

/* resolve_explain.c. *learnt: something was learnt that may explain the difference. */
int resolve_explain(struct resolve *r, const struct follow_report *rep, bool *learnt,
		    struct frag_err *err);
/* Instances use event numbers, so they are rebuilt after each rewrite. */
int resolve_know_pools(struct resolve *r, struct frag_err *err);

/* resolve_limit.c */

/* Is the tried limit proven wrong? Then narrows the interval in r->t. */
bool resolve_wrong_limit(struct resolve *r, const struct follow_report *rep);
/* Retries that neither limit nor card forced were an empty_cache. True: found some. */
bool resolve_unforced_retries(struct resolve *r, const struct follow_report *rep);

#endif
