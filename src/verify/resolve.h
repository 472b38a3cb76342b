/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to resolve a recording under one memory limit. During the search for a limit
 * (bracket), the first event that this limit does not explain says which way to go: decisions only
 * get stricter as a limit gets smaller, so all limits beyond are wrong, too.
 */
#ifndef FRAG_VERIFY_RESOLVE_H
#define FRAG_VERIFY_RESOLVE_H

#include "follow.h"

/* ---- pools of segments (verify_pools.c) ---- */

/*
 * Finds the pool of each segment, if the recording does not say.
 *
 * Every segment that existed is an instance. The final snapshot names the pool of those that are
 * left. For the others, constraints are collected: two instances are in different pools (a request
 * was served from one although the other was the better fit), in the same pool, or (not) in the
 * default pool. Then instances get pools in order of creation, each the smallest number that breaks
 * no constraint. If the file names the pool of each request (PyTorch 2.12 and later), all instances
 * are known, and nothing is inferred.
 */
#define POOLS_NONE UINT32_MAX

struct pool_instance {
	frag_addr_t addr;
	uint64_t bytes;	     /* of its address range */
	uint64_t mapped;     /* expandable: bytes mapped now, while walking */
	uint64_t born, died; /* event indices: [born, died) */
	uint16_t stream;
	bool expandable, small;
	bool known; /* the snapshot names the pool */
	uint16_t pool;
	bool pin_default, pin_private;
	uint32_t same;				/* union-find: parent */
	uint32_t first_edge, last_edge, degree; /* of a root: its edges, POOLS_NONE = none */
};

struct pools {
	struct frag_trace_dev *td;
	struct pool_instance *list;
	size_t count, cap;
	struct pool_edge { /* one half of an edge: in another pool than `other` */
		uint32_t other, next;
	} * edges;
	size_t edges_count, edges_cap;
	uint32_t *colour_of;  /* [65536] scratch: the last instance with a neighbour of that
			       * colour */
	uint32_t *of_seen;    /* [seen_count] instance of a segment event, POOLS_NONE else */
	uint32_t *of_initial; /* [initial.segments_count] instance of an initial segment */
	size_t initial_count; /* number of initial instances, which come first */
	uint64_t range_bytes; /* length of an expandable reservation */
};

int pools_init(struct pools *p, struct frag_trace_dev *td, uint64_t device_total_bytes,
	       struct frag_err *err);
void pools_release(struct pools *p);
/* The instance that held an address while event `at` was served, or POOLS_NONE. */
uint32_t pools_at(const struct pools *p, frag_addr_t addr, uint64_t at);
/* Adds constraints. *learnt: something new was learnt. */
int pools_differ(struct pools *p, uint32_t a, uint32_t b, bool *learnt, struct frag_err *err);
bool pools_pin(struct pools *p, uint32_t a, bool is_default);
/* Gives pools to instances and writes them into events and initial segments. */
int pools_colour(struct pools *p, struct frag_err *err);
uint16_t pools_of(const struct pools *p, uint32_t instance);
/*
 * The releases [first, end) of the evidence returned one or several whole caches, each in order of
 * size and address: default pools large first, private ones small first. Learns from that order.
 */
bool pools_learn_run(struct pools *p, size_t first, size_t end);
/*
 * Learns only what is certain in such a run: two consecutive whole segments of one kind that are
 * out of order belong to different pools.
 */
int pools_learn_breaks(struct pools *p, size_t first, size_t end, bool *learnt,
		       struct frag_err *err);

/* ---- an attempt ---- */

enum resolve_outcome { RESOLVE_SAME, RESOLVE_DIFFERENT, RESOLVE_TOO_SMALL, RESOLVE_TOO_LARGE };

struct resolve_try {
	uint64_t limit_bytes; /* UINT64_MAX = none */
	bool unlimited; /* no limit was set: what was released before a request that was served was an
			 * empty_cache, and what was refused, by the card */
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

/* The size of the card, as far as it is known: that of the recording, else the given one. */
uint64_t resolve_total_bytes(const struct frag_trace_dev *td, const struct frag_sim_config *card);
/* Edits the events of the device: see frag_settle. Errors are those of the simulation. */
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
	uint8_t guess; /* flags of a found TRIM: where no limit was set, nothing else explains it */
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

#endif
