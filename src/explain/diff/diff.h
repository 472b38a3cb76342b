/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs beside each other: what each needed, and which call sites grew, shrank, came and went.
 * Sites are matched by name (without stacks: size and step), steps by their number; nothing depends
 * on event numbers, so runs of changed programs can be compared.
 *
 * Ownership: a side and a comparison own what they point to.
 */
#ifndef FRAG_EXPLAIN_DIFF_H
#define FRAG_EXPLAIN_DIFF_H

#include <jansson.h>

#include "answer/answer.h"
#include "explain/moment/explain.h"

/* Live memory, or a step, that differs by no more than this is unchanged. */
#define FRAG_DIFF_UNCHANGED 0.01

struct frag_side_site {
	char *name;
	uint64_t bytes; /* live at the peak of live memory */
};

struct frag_side {
	char *name, *setting; /* "before"; as a policy is written */
	uint64_t peak_reserved, peak_live;
	bool has_loss, estimate; /* estimate: recorded without a GPU */
	struct frag_loss loss;	 /* at the peak of reserved */
	struct frag_side_site *sites;
	size_t sites_count;
	uint64_t *steps; /* peak live of each; [steps_count] */
	size_t steps_count;
	/* over the run, where asked for */
	size_t points;
	uint64_t reserved[FRAG_CURVE_POINTS], active[FRAG_CURVE_POINTS], us[FRAG_CURVE_POINTS];
};

/*
 * One device of a recording, explained at the peak of reserved memory and at that of live memory. It takes the place of
 * what is in `side` only if it reserves more, so that of several devices the fullest stays. opt: by, frame and series
 * count. Errors: those of frag_explain; the side is as it was or empty.
 */
int frag_side_take(struct frag_side *side, const struct frag_case *in,
		   const struct frag_explain_options *opt, const char *name, struct frag_err *err);
/* Of the JSON of replay, compare (its first result) or explain. Errors: FRAG_EINPUT. */
int frag_side_of_json(const json_t *root, const char *name, struct frag_side *out,
		      struct frag_err *err);
/* A JSON document of ours, as a new reference; NULL: the file is something else. */
json_t *frag_side_read_json(const char *path);
void frag_side_release(struct frag_side *s);

struct frag_change {
	const char *site; /* of one of the sides */
	uint64_t before_bytes, after_bytes;
};

struct frag_compared {
	const struct frag_side *before, *after;
	struct frag_change *changes; /* of call sites, the largest change first */
	size_t count;
	size_t first_step; /* whose peak differs by more than 1 %; SIZE_MAX = none */
	double reserved_growth, live_growth; /* 0.05 = 5 % more; NAN where one is not known */
};
/* Borrows both. */
int frag_sides_compare(const struct frag_side *before, const struct frag_side *after,
		       struct frag_compared *out, struct frag_err *err);
void frag_compared_release(struct frag_compared *c);

extern const struct frag_shape frag_comparison_shape;
/* The answer borrows c. top: call sites shown. Errors: FRAG_ENOMEM. */
int frag_compared_answer(const struct frag_compared *c, size_t top, struct frag_answer *a,
			 struct frag_err *err);

#endif
