/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs beside each other: what each needed, and which call sites grew, shrank, came and went.
 * Sites are matched by name (without stacks: size and step), steps by their number; nothing depends
 * on event numbers, so runs of changed programs can be compared.
 *
 * Ownership: everything belongs to the answer.
 */
#ifndef FRAG_EXPLAIN_DIFF_H
#define FRAG_EXPLAIN_DIFF_H

#include <jansson.h>

#include "explain/moment/explain.h"

/* Live memory, or a step, that differs by no more than this is unchanged. */
#define FRAG_DIFF_UNCHANGED 0.01

struct frag_side_site {
	const char *name;
	uint64_t bytes; /* requested, at the peak of live memory */
};

/* Fields of the rows (answer/row.h). */
#define FRAG_SIDE_ROW(F, P, S) \
	F(S, TEXT, name, NULL, "of the recording or file") \
	F(S, TEXT, policy, NULL, "the replayed policy") \
	F(S, TEXT, torch, NULL, "release of PyTorch whose rules it follows; null: its own") \
	F(S, BOOL, estimate, NULL, "recorded without a GPU") \
	F(S, BOOL, state, NULL, "without a history: what follows is of that moment") \
	F(S, BYTES, peak_reserved_bytes, NULL, "at most reserved; 0: a state does not say") \
	F(S, BYTES, peak_live_bytes, NULL, "at most live") \
	F(S, BYTES, non_releasable_bytes, NULL, "at the peak of reserved memory; null: unknown") \
	F(S, TEXT, card, NULL, "that it was recorded on; null: not known") \
	F(S, TEXT, release, NULL, "of PyTorch that it was recorded with; null: not known") \
	F(S, COUNT, devices_count, NULL, "of it; the fullest is compared; null: unknown") \
	F(S, COUNT, steps_count, NULL, "that are marked or found; null: unknown") \
	F(S, BYTES, ended_above_bytes, NULL, \
	  "it ended out of memory, and what it needs is unknown above this; null: it did not")
struct frag_side { /* init by zeroing */
	FRAG_ROW_MEMBERS(FRAG_SIDE_ROW)
	bool has_loss;	       /* rounding and waiting are known */
	struct frag_loss loss; /* at the peak of reserved; requested UINT64_MAX: unknown */
	struct frag_side_site *sites;
	uint64_t *steps; /* [steps_listed] peak live of each */
	size_t sites_count, steps_listed;
	const struct frag_curves *curves; /* over the run, where asked for, else NULL */
	uint64_t events;
};

/*
 * One device of a recording, explained at the peak of reserved memory and at that of live memory.
 * It takes the place of what is in `side` only if it reserves more, so that of several devices the
 * fullest stays. opt: by, frame and series count. Errors: those of frag_explain.
 */
int frag_side_take(struct frag_side *side, const struct frag_case *in,
		   const struct frag_explain_options *opt, const char *name, struct frag_answer *a,
		   struct frag_err *err);
/* Of the JSON of replay, compare (its first result) or explain. Errors: FRAG_EINPUT. */
int frag_side_of_json(const json_t *root, const char *name, struct frag_answer *a,
		      struct frag_side *out, struct frag_err *err);
/* A JSON document of ours, as a new reference; NULL: the file is something else. */
json_t *frag_side_read_json(const char *path);

#define FRAG_CHANGE_ROW(F, P, S) \
	F(S, BYTES, before_bytes, "before", "in the first run") \
	F(S, BYTES, after_bytes, "after", "in the second run") \
	P(S, TEXT, change, "change", "after less before", .right = true) \
	P(S, TEXT, growth, "growth", "after / before - 1", .right = true)
/* Of a call site, or of what there was at the peak. */
struct frag_change {
	FRAG_ROW_MEMBERS(FRAG_CHANGE_ROW)
	const char *what;
};

#define FRAG_COMPARISON_ROW(F, P, S) \
	F(S, TEXT, verdict, NULL, "the change, as a sentence") \
	F(S, TEXT, differences, NULL, \
	  "what differs beside the memory; null: nothing that is known") \
	F(S, OBJECT, before, NULL, "the first run", .of = &side_shape) \
	F(S, OBJECT, after, NULL, "the second run", .of = &side_shape) \
	F(S, RATIO, reserved_growth_ratio, NULL, "of peak reserved memory: 0.05 is 5 % more") \
	F(S, RATIO, live_growth_ratio, NULL, "of peak live memory") \
	F(S, LIST, at_peak, NULL, "shares at the peak of reserved memory", .of = &share_shape) \
	F(S, COUNT, steps_count, NULL, "compared steps; null if a run has none") \
	F(S, COUNT, first_step, NULL, \
	  "the first step whose live peak differs by more than 1 %; null: " \
	  "none") \
	F(S, BYTES, first_step_before_bytes, NULL, "its live peak") \
	F(S, BYTES, first_step_after_bytes, NULL, "its live peak") \
	F(S, LIST, sites, NULL, "changed, the largest change first", .of = &site_shape)
FRAG_ROW_STRUCT(frag_comparison, FRAG_COMPARISON_ROW);

extern const struct frag_shape frag_comparison_shape;
/* Borrows both sides. top: call sites shown. Errors: FRAG_ENOMEM. */
int frag_diff(const struct frag_side *before, const struct frag_side *after, size_t top,
	      struct frag_answer *a, struct frag_err *err);

#endif
