/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: which card a trace fits (fit), which settings serve it best (tune), how far a policy is
 * from the optimum (bound, place), and plans that one part of a trace provides for the rest.
 *
 * Words. buffer: a lifetime and a size. placement: an offset for each buffer. height: the largest
 * offset + size. load: the total size of the buffers live at one moment; no placement is lower than
 * the largest load. probe: a replay that answers only whether it completes and what it needs.
 *
 * Ownership: the caller owns what `out` receives and frees it with the matching release. Specs,
 * traces and cards are borrowed during the call. Every function may use several threads; results do
 * not depend on their number.
 */
#ifndef FRAG_PLAN_H
#define FRAG_PLAN_H

#include <frag/base.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/policy.h>
#include <frag/replay.h>
#include <frag/trace.h>
#include <frag/watch.h>

/* The card a probe runs on, and the settings of every probe. */
struct frag_plan_env {
	unsigned threads; /* 0 = 1 */
	struct frag_sim_config card;
	struct frag_run_options run;
	double limit_fraction; /* part of the card's total, in addition to run.limit_bytes; 0 =
				 * none */
	bool skip_oom;	       /* of a single probe: what cannot be served is counted and skipped */
	struct frag_watch watch;
};
/* An environment with the card, limit, seed and release of a target. A limit that is a fraction is
 * one of every card that is tried. */
struct frag_target;
void frag_plan_env_init(struct frag_plan_env *env, const struct frag_target *t, unsigned threads);

/* ---- fit: the smallest card ---------------------------------------------- */

#define FRAG_FIT_GAPS 8

/* A range of capacities. Only both ends were replayed. */
struct frag_fit_gap {
	uint64_t first_bytes, last_bytes;
};

/* A policy on a device of a trace. Capacities are of the card: usable and context. */
struct frag_fit {
	bool complete;		       /* the search was not interrupted */
	bool possible;		       /* it completes on a card that is large enough */
	uint64_t min_capacity_bytes;   /* nothing is refused here; something is 2 MiB below */
	uint64_t safe_capacity_bytes;  /* from here on no probe failed */
	uint64_t peak_reserved_bytes;  /* on a card that is large enough */
	uint64_t ample_capacity_bytes; /* room for this peak: nothing is returned or retried */
	struct frag_fit_gap gaps[FRAG_FIT_GAPS];   /* failures above the minimum, ascending */
	size_t gaps_count, gaps_seen;		   /* number kept, number found */
	uint64_t driver_ns;			   /* on that card */
	uint64_t min_driver_ns, min_retries_count; /* the cost at min_capacity_bytes */
	uint64_t probes_count;
	/* The search of the neighbourhood ended early, after 2 million driver calls. */
	bool narrow;
};

struct frag_fit_task {
	const struct frag_policy_spec *spec;
	const struct frag_trace_dev *dev;
	struct frag_fit fit;
	uint64_t gpus; /* bit i: completes on card i of the caller's list */
	struct frag_err err;
	int rc;
};

/*
 * Searches all tasks over threads. gpus[n], n <= 64: cards to try with their own context. Cost: about 17 probes of bisection and 40
 * of the neighbourhood per task. Errors: FRAG_ENOMEM; a task's errors are in the task.
 */
int frag_fit_run(const struct frag_plan_env *env, const struct frag_gpu *const *gpus,
		 size_t gpus_count, struct frag_fit_task *tasks, size_t count,
		 struct frag_err *err);

/* ---- tune: the best settings ---------------------------------------------- */

enum frag_tune_objective {
	FRAG_TUNE_PEAK, /* least peak reserved on env->card */
	FRAG_TUNE_CARD, /* smallest card that completes */
	FRAG_TUNE_TIME, /* least driver time that completes under env's card and limit */
};

struct frag_tune_options {
	/* Policies, each searched over the `tune` values of its option table; options in the text
	 * stay fixed. */
	const char *const *spaces;
	size_t spaces_count;
	const char *baseline; /* settings to compare with; tried first */
	enum frag_tune_objective objective;
	uint64_t budget; /* settings to try in each space; larger spaces are not searched
			  * completely */
	/* try fewer (at least 16) if the replays would make more driver calls than this in total,
	 * estimated from the baseline; 0 = never fewer */
	uint64_t calls_max;
	uint64_t seed;
	/* Skips settings that this release of the recorded allocator does not know (numbers as in
	 * frag/policy.h); 0 = tries all. Always tries the baseline. */
	unsigned release;
	const uint64_t *limits; /* [units_count], in addition to env's limit; UINT64_MAX = none; or
				 * NULL */
	const bool *restores; /* [units_count]: the baseline begins with the blocks from before the
			       * recording; or NULL */
};

/* One tried setting; with several units the worst peak and the sum of times. */
struct frag_tune_try {
	char *text;   /* as typed: "pytorch:expandable_segments:True" */
	char *params; /* echo of the spec */
	char *conf;   /* line for PYTORCH_CUDA_ALLOC_CONF; NULL if it is not a PyTorch setting */
	unsigned changed_count; /* options set beyond the space's own text */
	bool completed;		/* completed every unit */
	uint64_t refused_count; /* requests that were refused in the recording and here again */
	uint64_t peak_reserved_bytes;
	uint64_t driver_ns;
	uint64_t capacity_bytes; /* FRAG_TUNE_CARD: total of the smallest card, context included */
};

struct frag_tune {
	bool complete;		     /* not interrupted */
	bool exhaustive;	     /* every setting of every space was tried */
	uint64_t budget;	     /* settings allowed in each space: see calls_max */
	uint64_t space_count;	     /* settings in all spaces, including repeated and contradictory
			       * ones */
	struct frag_tune_try *tries; /* best first, as the objective orders them */
	size_t tries_count;
	size_t baseline; /* index */
	size_t *front;	 /* indices of tries that no other try beats in both reserved memory and
			  * driver time */
	size_t front_count;
};

/*
 * Tries settings on all units. Searches a space of at most `budget` settings completely. Otherwise
 * a local search starts from the space's own text, then from random settings, and moves to the best
 * of all settings that differ in one option, until none is better. Ties go to fewer changed
 * options. The same seed gives the same answer for any number of threads. Errors: FRAG_EUSAGE (bad
 * text), FRAG_ENOMEM.
 */
int frag_tune_run(const struct frag_plan_env *env, const struct frag_trace_dev *const *units,
		  size_t units_count, const struct frag_tune_options *opt, struct frag_tune *out,
		  struct frag_err *err);
/* The settings of PyTorch for one unit, as tune searches them, or as far as its length allows: what
 * explain and advise offer. opt: baseline, restores, release (0 = the last) and seed. */
int frag_tune_settings(const struct frag_plan_env *env, const struct frag_trace_dev *dev,
		       struct frag_tune_options opt, struct frag_tune *out, struct frag_err *err);
/* The try to take: the fewest options within 1 % of the best, as they depend least on this one
 * trace; or the baseline. pre: there are tries, ordered by FRAG_TUNE_PEAK. */
size_t frag_tune_pick(const struct frag_tune *t);
void frag_tune_release(struct frag_tune *t);

/* ---- the optimum: bound and offline placement ----------------------------- */

/* Live from the moment `lower` until just before `upper`. pre: lower < upper, bytes > 0. */
struct frag_buffer {
	uint64_t lower, upper, bytes;
};

struct frag_buffers {
	struct frag_buffer *list;
	size_t count;
	/* NULL, or [count]: the buffer that is the other part of the same memory (equal size, at
	 * other times) and gets the same offset; its own number = none. Used by greedy and
	 * improve. */
	uint32_t *twins;
};

/*
 * The allocations of a device in order; moments are event indices. Blocks still live at the end,
 * end there. Sizes are rounded up to `align`. A block is live until its free completes, or with
 * at_request until its free is requested. O(events). Errors: FRAG_ENOMEM.
 */
int frag_buffers_init(struct frag_buffers *b, const struct frag_trace_dev *dev, uint64_t align,
		      bool at_request, struct frag_err *err);
void frag_buffers_release(struct frag_buffers *b);

/* The largest load. *when (may be NULL): the first moment with that load. O(n log n). */
int frag_load_bound(const struct frag_buffers *b, uint64_t *bound, uint64_t *when,
		    struct frag_err *err);

/* The order in which buffers are placed; ties by the words after "then", then by index. */
enum frag_order {
	FRAG_ORDER_SIZE,      /* largest first, then the earliest */
	FRAG_ORDER_CONFLICTS, /* most other buffers live at the same time first, then the largest */
	FRAG_ORDER_AREA,      /* size times lifetime */
	FRAG_ORDER_LIFE,      /* longest first, then the largest */
	FRAG_ORDER_COUNT
};

/* Where a buffer goes among the placed buffers that are live at the same time. */
enum frag_gap_rule {
	FRAG_GAP_BEST, /* the smallest gap, the lowest of equals: TFLite */
	FRAG_GAP_LOWEST,
	FRAG_GAP_TOP, /* TVM: above all of them; does not fill gaps */
	FRAG_GAP_COUNT
};

/*
 * Greedy placement into offsets[count]. O(n log n + visited pairs that are live at the same time).
 * Errors: FRAG_ENOMEM, FRAG_EINTR (stop).
 */
int frag_place_greedy(const struct frag_buffers *b, enum frag_order order, enum frag_gap_rule rule,
		      const struct frag_watch *watch, uint64_t *offsets, uint64_t *height,
		      struct frag_err *err);

/*
 * Improved greedy placement: moves the buffers that set the height to the front of the order and
 * places all again, until it reaches the target or runs out of rounds or time. Starts from the best
 * greedy order. offsets: the best placement found.
 */
struct frag_improve_options {
	uint64_t target_bytes; /* stop here; 0 = the load bound */
	uint64_t budget_ns;
	unsigned rounds_max;
	const struct frag_watch *watch; /* may be NULL */
};
int frag_place_improve(const struct frag_buffers *b, const struct frag_improve_options *opt,
		       uint64_t *offsets, uint64_t *height, struct frag_err *err);

/*
 * Branch and bound: finds a placement of at most the target. On entry offsets and *height hold a
 * placement (*height UINT64_MAX: none), on return the lowest one found. *answer: FOUND, NONE
 * (proved: no placement is as low as the target), or GAVE_UP (a budget, the watch, more than 6,000
 * buffers). Unless time ends the search, the answer is the same on any machine. nodes: search nodes
 * of all attempts. Errors: FRAG_ENOMEM.
 */
enum frag_search_answer { FRAG_SEARCH_FOUND, FRAG_SEARCH_NONE, FRAG_SEARCH_GAVE_UP };
struct frag_search_options {
	uint64_t target_bytes;
	uint64_t budget_ns;		/* wall clock */
	uint64_t nodes_max;		/* no round begins after this many nodes; 0 = unlimited */
	uint64_t seed;			/* for the random orders */
	const struct frag_watch *watch; /* may be NULL */
};
int frag_place_search(const struct frag_buffers *b, const struct frag_search_options *opt,
		      uint64_t *offsets, uint64_t *height, enum frag_search_answer *answer,
		      uint64_t *nodes, struct frag_err *err);

/*
 * Independent check: offsets are multiples of align, no two buffers overlap in time and place,
 * nothing is above `height`. A separate sweep over time that shares no code with the placements.
 * Errors: FRAG_ECHECK naming the first pair, FRAG_ENOMEM. O(n log n).
 */
int frag_place_check(const struct frag_buffers *b, const uint64_t *offsets, uint64_t align,
		     uint64_t height, struct frag_err *err);

/* ---- plans for steps: what policy `planned` runs --------------------------- */

/*
 * Made from the first steps of a trace (marks of kind STEP). Phase 0 is everything before the
 * repeating steps; phases 1.. are the steps of one period.
 */
struct frag_step_plan {
	uint32_t steps_count;	/* in the trace */
	uint32_t trained_count; /* the number of these that the plan is made from */
	uint32_t period;	/* number of steps after which the trace repeats; 0 = it does not */
	bool windows;		/* steps are windows: the trace does not mark them */
	double similarity;	/* 0..1: part of the last trained step that also occurs one period
			    * before */
	uint64_t height_bytes, bound_bytes; /* height of the placement, and largest load of its
					     * buffers */
	uint64_t reserve_bytes;		    /* height plus slack: size of the segment */
	uint32_t prefix_marks, phase_marks, skip; /* read by the policy */
	uint32_t *phases;			  /* [period + 1]: number of requests */
	uint64_t *bytes;   /* [requests_count]: rounded up to 512, phase by phase */
	uint64_t *offsets; /* UINT64_MAX: left to the fallback */
	size_t requests_count;
};

/*
 * train: steps to plan from; 0 = half of them, rounded up, but at least three if there are that
 * many. slack: room above the height for other requests, as a fraction of the height; negative =
 * none if steps repeat, else 0.04. budget_ns: time for the placement. A trace that marks fewer than
 * three steps is cut into 16 windows with equal numbers of requests; window_requests or window_us
 * (one of them; 0 = unset) cut any trace. The plan sees only the trained steps; its placement is
 * checked before it is returned. Errors: FRAG_EINPUT (too little to plan), FRAG_EUSAGE (windows too
 * short), FRAG_ECHECK, FRAG_EINTR, FRAG_ENOMEM.
 */
struct frag_step_options {
	uint32_t train;
	double slack;
	uint64_t budget_ns;
	uint64_t window_requests, window_us;
	const struct frag_watch *watch; /* may be NULL */
};
int frag_step_plan_make(const struct frag_trace_dev *dev, const struct frag_step_options *opt,
			struct frag_step_plan *out, struct frag_err *err);
/* Writes the text for --policy planned:plan=FILE, complete or absent. comment: one line. */
int frag_step_plan_write(const struct frag_step_plan *p, const char *comment, const char *path,
			 struct frag_err *err);
void frag_step_plan_release(struct frag_step_plan *p);

#endif
