/* SPDX-License-Identifier: Apache-2.0 */
/* A result as an answer: scores by rank, what they rest on, pictures; see suite.h. */
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES 10u /* that are named */

#define SCORE(F, P, S) \
	F(S, TEXT, policy, s->policy, "policy", "with its options") \
	F(S, REAL, space, s->space.ratio, "space", \
	  "memory over the baseline's: geometric mean over classes; below 1 is better", \
	  .precision = 3) \
	F(S, REAL, space_low, s->space.low, "best", "the best class", .precision = 2, .spare = 2) \
	F(S, REAL, space_high, s->space.high, "worst", "the worst class", .precision = 2) \
	F(S, COUNT, space_rank, s->space.rank ?: UINT64_MAX, "rank", "null: incomplete") \
	F(S, REAL, time, s->time.ratio, "time", "driver time over the baseline's, likewise", \
	  .precision = 3) \
	F(S, REAL, time_low, s->time.low, "best", "the best class", .precision = 2, .spare = 1) \
	F(S, REAL, time_high, s->time.high, "worst", "the worst class", .precision = 2) \
	F(S, COUNT, time_rank, s->time.rank ?: UINT64_MAX, "rank", "null: incomplete") \
	F(S, COUNT, rows_count, s->rows, NULL, "workloads") \
	F(S, COUNT, done_count, s->done, NULL, "workloads that it completed") \
	P(S, TEXT, note, \
	  s->done < s->rows ? frag_answer_print(a, "incomplete: %zu of %zu", s->done, s->rows) \
			    : NULL, \
	  "", "workloads that it completed, where not all", .none = "")
FRAG_VALUED_ROW(score_row, "suite_score", SCORE, "a policy on the suite");

FRAG_ROW_SHAPE(, frag_suite_shape, frag_suite_data, "suite", FRAG_SUITE_DATA,
	       "a result of the suite, its workloads, or what differs between two results");

/* Those without a rank come last. */
FRAG_COMPARE(by_space, struct frag_suite_score, FRAG_ORDER(x->space.rank - 1, y->space.rank - 1),
	     FRAG_ORDER(x->time.rank - 1, y->time.rank - 1), FRAG_ORDER(y->done, x->done),
	     strcmp(x->policy, y->policy))

/* Leaves out each class in turn: how many change a rank, and which change who is first. */
static void say_shifts(const struct frag_suite_result *r, const struct frag_suite_score *all,
		       struct frag_answer *a)
{
	struct frag_suite_score *s = frag_answer_new(a, r->policies_count, sizeof(*s));
	FRAG_AUTO(frag_text_release) struct frag_text leaders = { 0 };
	size_t moved = 0;

	for (size_t c = 0; s && c < r->classes_count; c++) {
		bool moves = false, leads = false;

		frag_suite_scores(r, c, s);
		for (size_t p = 0; p < r->policies_count; p++) {
			bool space = s[p].space.rank != all[p].space.rank,
			     time = s[p].time.rank != all[p].time.rank;

			moves |= space || time;
			leads |= (space && all[p].space.rank == 1) ||
				 (time && all[p].time.rank == 1);
		}
		moved += moves;
		if (leads)
			frag_text_addf(&leaders, "%s%s", leaders.len ? ", " : "", r->classes[c]);
	}
	if (r->classes_count < 2)
		return;
	if (!moved)
		frag_answer_say(a, "No rank changes when any one class is left out.");
	else
		frag_answer_say(a,
				"Ranks depend on which classes there are: leaving one out changes "
				"some for %zu of %zu; who is first %s%s.",
				moved, r->classes_count,
				leaders.len ? "changes without " : "stays so",
				frag_text_str(&leaders));
}

/* ---- what people read ------------------------------------------------------------------------ */

static void say_failures(const struct frag_suite_result *r, struct frag_answer *a)
{
	size_t n = 0;

	for (size_t i = 0; i < r->rows_count; i++) {
		const struct frag_suite_row *row = &r->rows[i];

		if (frag_suite_is_measured(row))
			continue;
		if (n++ < FAILURES)
			frag_answer_item(a, "%s on %s: %s, %s", row->policy, row->workload,
					 row->state, row->why ?: "without a reason");
	}
	if (n > FAILURES)
		frag_answer_item(a, "and %zu more", n - FAILURES);
}

/* What a reader of a card's figures has to know. */
static void say_noise(const struct frag_suite_result *r, struct frag_answer *a)
{
	size_t loose = 0, slow = 0;

	for (size_t i = 0; i < r->rows_count; i++) {
		loose += frag_suite_is_done(&r->rows[i]) && !r->rows[i].settled;
		slow += frag_suite_is_done(&r->rows[i]) && r->rows[i].throttled_count;
	}
	if (r->card)
		frag_answer_say(a,
				"Driver times did not settle to 2 %% on %zu of %zu rows; on %zu "
				"the card had reason to run slower than it could.",
				loose, r->rows_count, slow);
}

/* scores: by space. */
static void conclude(const struct frag_suite_result *r, const struct frag_suite_score *s,
		     struct frag_answer *a)
{
	const struct frag_suite_score *fast = s;

	while (fast < s + r->policies_count && fast->time.rank != 1)
		fast++;
	if (fast == s + r->policies_count)
		frag_answer_conclude(a, "no policy completed every workload, so there are no "
					"ranks");
	else
		frag_answer_conclude(a,
				     "least space: %s (space %.3f, time %.3f); least time: %s "
				     "(space %.3f, time %.3f); " FRAG_SUITE_BASELINE " is 1",
				     s->policy, s->space.ratio, s->time.ratio, fast->policy,
				     fast->space.ratio, fast->time.ratio);
	if (!r->complete)
		frag_answer_verdict(a, "incomplete: rows have failed, or are missing");
}

int frag_suite_answer(const struct frag_suite_result *r, struct frag_answer *a,
		      struct frag_err *err)
{
	struct frag_suite_score *all = frag_answer_new(a, r->policies_count, sizeof(*all)), *scores;
	struct score_row *rows = frag_answer_new(a, r->policies_count, sizeof(*rows));
	struct frag_suite_data *data = frag_answer_new(a, 1, sizeof(*data));

	FRAG_CHECK_ALLOC(all && rows && data, "answer", err);
	frag_suite_scores(r, SIZE_MAX, all);
	scores = frag_answer_copy(a, all, r->policies_count * sizeof(*all));
	FRAG_CHECK_ALLOC(scores, "answer", err);
	frag_answer_remark(a, "cufrag suite %s, %s division: %s%s%s, measured by %s", r->version,
			   r->card ? "card" : "simulated", r->device, *r->driver ? ", driver " : "",
			   r->driver, r->cufrag);
	frag_answer_remark(a, "hash %s", r->hash);
	qsort(scores, r->policies_count, sizeof(*scores), by_space);
	for (size_t i = 0; i < r->policies_count; i++) {
		const struct frag_suite_score *s = &scores[i];

		rows[i] = FRAG_ROW_VALUES(score_row, SCORE);
	}
	*data = (struct frag_suite_data){ .version = r->version,
					  .cufrag = r->cufrag,
					  .division = r->card ? "card" : "simulated",
					  .device = r->device,
					  .driver = r->driver,
					  .hash = r->hash,
					  .complete = r->complete,
					  .scores = { rows, r->policies_count },
					  .rows = { r->rows, r->rows_count } };
	a->title = "suite";
	a->question = "Which allocator needs the least memory, and which the least time?";
	frag_answer_data(a, &frag_suite_shape, data);
	frag_answer_csv(a, &frag_suite_row_shape, r->rows, r->rows_count);
	frag_answer_table(a, &score_row_shape, rows, r->policies_count);
	say_failures(r, a);
	say_noise(r, a);
	say_shifts(r, all, a);
	frag_suite_charts(r, scores, a);
	conclude(r, scores, a);
	return 0;
}
