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

#include "explain/moment/explain.h"
#include "answer/textbuf.h"

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
	/* over the run, where the explanation has curves */
	size_t points;
	uint64_t reserved[FRAG_CURVE_POINTS], active[FRAG_CURVE_POINTS], us[FRAG_CURVE_POINTS];
};

/* Of a recording, explained at the peak of reserved memory, and at that of live. Errors: FRAG_ENOMEM. */
int frag_side_of(const struct frag_explained *x, const struct frag_explained *live,
		 const char *name, const char *setting, struct frag_side *out,
		 struct frag_err *err);
/* Of the JSON of replay, compare (its first result) or explain. Errors: FRAG_EINPUT. */
int frag_side_of_json(const json_t *root, const char *name, struct frag_side *out,
		      struct frag_err *err);
void frag_side_release(struct frag_side *s);

struct frag_change_row {
	const char *name; /* of one of the sides */
	uint64_t before, after;
};

struct frag_compared {
	struct frag_change_row *rows; /* changed ones, the largest change first */
	size_t count;
	size_t first_step; /* whose peak differs by more than 1 %; SIZE_MAX = none */
	double reserved_growth, live_growth; /* 0.05 = 5 % more */
};
int frag_sides_compare(const struct frag_side *before, const struct frag_side *after,
		       struct frag_compared *out, struct frag_err *err);
void frag_compared_release(struct frag_compared *c);
/* "peak reserved 23.44 GiB -> 16.73 GiB (-28.6 %): expandable_segments:True; live unchanged" */
void frag_compared_verdict(const struct frag_side *before, const struct frag_side *after,
			   const struct frag_compared *c, struct frag_text *out);

#endif
