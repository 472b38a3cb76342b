/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How low a trace can be placed if all lives are known in advance: several methods, each placement
 * checked; and a plan of its first steps.
 */
#ifndef FRAG_PLAN_PLACING_H
#define FRAG_PLAN_PLACING_H

#include <frag/plan.h>

#include "answer/answer.h"
#include "recording/recording.h"

#define FRAG_PLACING_METHODS 8

struct frag_placing_method {
	const char *name;
	uint64_t height, ns;
};

struct frag_placing_options {
	uint64_t target;       /* a height that is good enough; 0 = the lower bound */
	uint64_t align;	       /* 0 = 512, or 1 for MiniMalloc's files with their own units */
	bool at_request;       /* a block ends when its free was requested */
	double time_s;	       /* for improving and searching */
	uint64_t nodes;	       /* of the search; 0 = any number */
	uint64_t seed;	       /* of the search */
	const char *placement; /* file for the lowest placement, or NULL */
	/* a plan of the steps goes into this file; NULL = none. watch, budget: not used */
	const char *plan;
	struct frag_step_options steps;
};

/* One device of one trace. */
struct frag_placing {
	const struct frag_unit *unit;
	struct frag_buffers b;
	uint64_t align, bound, when, target, best; /* best: UINT64_MAX until there is a placement */
	uint64_t *offsets, *best_offsets;
	struct frag_placing_method methods[FRAG_PLACING_METHODS];
	size_t methods_count;
	enum frag_search_answer answer;
	bool searched, complete;
	uint64_t nodes;
	struct frag_step_plan steps;
};

/* Places, and writes the files. An interruption is no error: what was found until then counts. */
int frag_placing_run(struct frag_placing *p, const struct frag_unit *unit,
		     const struct frag_placing_options *o, struct frag_err *err);
void frag_placing_release(struct frag_placing *p);

extern const struct frag_shape frag_plan_shape;
/* list[count]: those that were begun; there are fewer than units after an interruption. */
int frag_placing_answer(const struct frag_placing *list, size_t count,
			const struct frag_recordings *units, const struct frag_target *target,
			const struct frag_placing_options *o, struct frag_answer *a,
			struct frag_err *err);

#endif
