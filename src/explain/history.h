/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program did over its steps, from its requests alone: nothing is replayed here. Live
 * bytes are requests, each rounded up to 512 B.
 *
 * Words. step: from the end of one optimizer step to the end of the next (marks of the recording);
 * without marks, from one occurrence of an evenly repeated request to the next, unless it repeats
 * with the layers of a module or the parameters of an optimizer; failing that, a window: one of 32 parts with equally many requests. kept: bytes live at the end of a step that
 * were allocated before it began, so they outlived all of it. What accumulates is kept; what a
 * larger batch needs is not.
 *
 * Memory use grows with live blocks, steps (neighbours are merged above FRAG_STEPS_MAX) and stacks,
 * not with the length of the trace. Ownership: the history owns its arrays.
 */
#ifndef FRAG_EXPLAIN_HISTORY_H
#define FRAG_EXPLAIN_HISTORY_H

#include "trace/events.h"

#define FRAG_STEPS_MAX 4096u

enum frag_steps_from { FRAG_STEPS_NONE, FRAG_STEPS_MARKS, FRAG_STEPS_PERIOD, FRAG_STEPS_WINDOWS };

/* Where the steps of a recording end. */
struct frag_step_ends {
	enum frag_steps_from from;
	uint64_t *list; /* [count] events, ascending: a step ends before this one */
	size_t count;
	uint32_t stride;
	uint64_t allocs, last_alloc;
	uint64_t
		first_mark; /* event that ends the first marked step; UINT64_MAX = none is marked */
};
/* list is the caller's. Errors: FRAG_ENOMEM, those of the events. */
int frag_step_ends_find(const struct frag_events *ev, struct frag_step_ends *out,
			struct frag_err *err);
/*
 * The passes of a loop within events [from, to) that goes on to their end: its request comes back
 * evenly, at least four times. out->from: FRAG_STEPS_PERIOD; FRAG_STEPS_WINDOWS: it is one over
 * layers, or loads; FRAG_STEPS_NONE. *outside: its requests elsewhere. Errors: FRAG_ENOMEM.
 */
int frag_passes_find(const struct frag_events *ev, uint64_t from, uint64_t to,
		     struct frag_step_ends *out, uint64_t *outside, struct frag_err *err);

#define FRAG_REFUSALS_KEPT 256u

struct frag_step {
	uint64_t first, end; /* events [first, end) */
	uint64_t kept_end;   /* bytes, at its end */
	uint64_t peak_live, peak_event;
	uint64_t flow_bytes;	 /* requested within it */
	uint64_t optimizer_from; /* first mark of an optimizer step, UINT64_MAX = none */
};

/* A request that failed when it was recorded. */
struct frag_refusal {
	uint64_t event, time_us, bytes, step;
	uint64_t live_bytes; /* then */
	uint32_t stack, stream, pool;
};

struct frag_trim {
	uint64_t event, time_us;
	uint64_t allocs_after; /* requests that still came */
	bool unsure;	       /* it may have been the retry of a malloc */
};

struct frag_history {
	enum frag_steps_from from;
	uint32_t stride; /* marked steps per step */
	struct frag_step *steps;
	size_t count; /* complete ones; steps[count] is what follows, if `more` */
	bool more;
	uint64_t events, allocs, trims_count, refusals_count, duration_us;
	uint64_t first_mark; /* as in frag_step_ends */
	uint64_t peak_live, peak_event;
	uint64_t given_back;  /* most that live memory lay below an earlier peak, up to a refusal */
	uint64_t most_blocks; /* live at once */
	struct frag_refusal refusals[FRAG_REFUSALS_KEPT];
	struct frag_trim trims[FRAG_REFUSALS_KEPT];
	/* per stack, [stacks_count]: bytes kept at the end of the last step less those at the end
	 * of step `half`, and bytes requested in between */
	double *grew, *flow;
	size_t stacks_count, half;
};

int frag_history_make(const struct frag_events *ev, struct frag_history *out, struct frag_err *err);
void frag_history_release(struct frag_history *h);

/* Are steps marked or found? Windows of time are no steps, and answers name none then. */
static inline bool frag_steps_known(const struct frag_history *h)
{
	return h->from == FRAG_STEPS_MARKS || h->from == FRAG_STEPS_PERIOD;
}

/* The step that event belongs to; h->count for what follows the last. */
size_t frag_history_step(const struct frag_history *h, uint64_t event);

/* Live bytes per stack ([stacks_count], zeroed by the caller) after event `at`. */
int frag_history_live_at(const struct frag_events *ev, uint64_t at, size_t stacks_count,
			 double *live, struct frag_err *err);

/* Live bytes as the program sees them: what a request takes at least. */
static inline uint64_t frag_live_bytes(uint64_t requested)
{
	return (requested + 511) & ~511ull;
}

#endif
