/* SPDX-License-Identifier: Apache-2.0 */
/* A result as an answer: scores by rank, what they rest on, pictures; see suite.h. */
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCORE(F, P, S) \
	F(S, TEXT, policy, s->policy, "policy", "with its options") \
	F(S, REAL, space, s->space.ratio, "space", \
	  "memory over the baseline's: geometric mean over classes; below 1 is better", \
	  .precision = 3) \
	P(S, TEXT, space_range, range(a, &s->space), "by class", "best and worst class", \
	  .right = true) \
	F(S, COUNT, space_rank, s->space.rank ?: UINT64_MAX, "rank", "by space; null: incomplete") \
	F(S, REAL, time, s->time.ratio, "time", "driver time over the baseline's, the same mean", \
	  .precision = 3) \
	P(S, TEXT, time_range, range(a, &s->time), "by class", "best and worst class", \
	  .right = true) \
	F(S, COUNT, time_rank, s->time.rank ?: UINT64_MAX, "rank", "by time; null: incomplete") \
	F(S, REAL, space_low, s->space.low, NULL, "of the best class") \
	F(S, REAL, space_high, s->space.high, NULL, "of the worst class") \
	F(S, REAL, time_low, s->time.low, NULL, "of the best class") \
	F(S, REAL, time_high, s->time.high, NULL, "of the worst class") \
	F(S, COUNT, rows_count, s->rows, NULL, "workloads") \
	F(S, COUNT, done_count, s->done, NULL, "workloads that it completed") \
	P(S, TEXT, note, \
	  s->done < s->rows ? frag_answer_print(a, "incomplete: %zu of %zu", s->done, s->rows) \
			    : NULL, \
	  "", "workloads that it completed, where not all", .none = "")
FRAG_VALUED_ROW_AS(static, score_row_shape, score_row, "suite_score", SCORE,
		   "a policy on the suite");

#define SHIFT(F, P, S) \
	F(S, TEXT, without, "without", "the class that is left out") \
	F(S, COUNT, space_moved_count, "ranks by space", "policies whose rank changes") \
	F(S, COUNT, time_moved_count, "ranks by time", "policies whose rank changes") \
	F(S, TEXT, space_first, "first by space", "then") \
	F(S, TEXT, time_first, "first by time", "then")
FRAG_ROW(shift_row, "suite_shift", SHIFT, "ranks without a class");

FRAG_ROW_SHAPE(, frag_suite_shape, frag_suite_data, "suite", FRAG_SUITE_DATA,
	       "a result of the suite, its workloads, or what differs between two results");

/* "0.71-1.32" */
static const char *range(struct frag_answer *a, const struct frag_suite_measure *m)
{
	return isnan(m->ratio) ? NULL : frag_answer_print(a, "%.2f-%.2f", m->low, m->high);
}

/* Those without a rank come last. */
FRAG_COMPARE(by_space, struct frag_suite_score, FRAG_ORDER(x->space.rank - 1, y->space.rank - 1),
	     FRAG_ORDER(x->time.rank - 1, y->time.rank - 1), FRAG_ORDER(y->done, x->done),
	     strcmp(x->policy, y->policy))

/* ---- sensitivity --------------------------------------------------------------------------- */

static const char *first(const struct frag_suite_score *s, size_t count, bool time)
{
	for (size_t i = 0; i < count; i++)
		if ((time ? s[i].time.rank : s[i].space.rank) == 1)
			return s[i].policy;
	return NULL;
}

/* Ranks without each class. */
static struct frag_rows shifts_of(const struct frag_suite_result *r,
				  const struct frag_suite_score *all, struct frag_answer *a)
{
	struct shift_row *rows = frag_answer_new(a, r->classes_count, sizeof(*rows));
	struct frag_suite_score *s = frag_answer_new(a, r->policies_count, sizeof(*s));

	for (size_t c = 0; rows && s && r->classes_count > 1 && c < r->classes_count; c++) {
		frag_suite_scores(r, c, s);
		rows[c] = (struct shift_row){ .without = r->classes[c],
					      .space_first = first(s, r->policies_count, false),
					      .time_first = first(s, r->policies_count, true) };
		for (size_t p = 0; p < r->policies_count; p++) {
			rows[c].space_moved_count += s[p].space.rank != all[p].space.rank;
			rows[c].time_moved_count += s[p].time.rank != all[p].time.rank;
		}
	}
	return (struct frag_rows){ rows, r->classes_count > 1 ? r->classes_count : 0 };
}

static void say_shifts(const struct frag_rows *shifts, const struct frag_suite_score *all,
		       size_t count, struct frag_answer *a)
{
	const struct shift_row *rows = shifts->rows;
	const char *best[2] = { first(all, count, false), first(all, count, true) };
	uint64_t moved = 0;
	size_t leads = 0;

	for (size_t i = 0; i < shifts->count; i++) {
		moved += rows[i].space_moved_count || rows[i].time_moved_count;
		leads += (best[0] && strcmp(rows[i].space_first ?: "", best[0]) != 0) ||
			 (best[1] && strcmp(rows[i].time_first ?: "", best[1]) != 0);
	}
	if (!shifts->count)
		return;
	if (moved)
		frag_answer_say(a,
				"Ranks depend on which classes there are: leaving one out changes "
				"some rank for %llu of %zu classes, and who is first for %zu.",
				(unsigned long long)moved, shifts->count, leads);
	else
		frag_answer_say(a, "No rank changes when any one class is left out.");
	frag_answer_table(a, &shift_row_shape, rows, shifts->count)->page_only = true;
}

/* ---- what people read ------------------------------------------------------------------------ */

static void say_failures(const struct frag_suite_result *r, struct frag_answer *a)
{
	struct frag_suite_row *list = frag_answer_new(a, r->rows_count, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < r->rows_count; i++)
		if (strcmp(r->rows[i].state, "done") != 0 &&
		    strcmp(r->rows[i].state, "refused") != 0)
			list[n++] = r->rows[i];
	for (size_t i = 0; i < n && i < 10; i++)
		frag_answer_item(a, "%s on %s: %s%s%s", list[i].policy, list[i].workload,
				 list[i].state, list[i].why ? ", " : "", list[i].why ?: "");
	if (n > 10)
		frag_answer_item(a, "and %zu more", n - 10);
}

static void conclude(const struct frag_suite_result *r, const struct frag_suite_score *s,
		     struct frag_answer *a)
{
	const struct frag_suite_score *small = NULL, *fast = NULL;

	for (size_t i = 0; i < r->policies_count; i++) {
		small = s[i].space.rank == 1 && !small ? &s[i] : small;
		fast = s[i].time.rank == 1 && !fast ? &s[i] : fast;
	}
	if (!small || !fast)
		frag_answer_conclude(a, "no policy completed every workload, so there are no "
					"ranks");
	else
		frag_answer_conclude(a,
				     "least space: %s (space %.3f, time %.3f); least time: %s "
				     "(space %.3f, time %.3f); " FRAG_SUITE_BASELINE " is 1",
				     small->policy, small->space.ratio, small->time.ratio,
				     fast->policy, fast->space.ratio, fast->time.ratio);
	if (!r->complete)
		frag_answer_verdict(a, "incomplete: rows have failed, or are missing");
}

int frag_suite_answer(const struct frag_suite_result *r, struct frag_answer *a,
		      struct frag_err *err)
{
	struct frag_suite_score *scores = frag_answer_new(a, r->policies_count, sizeof(*scores));
	struct score_row *rows = frag_answer_new(a, r->policies_count, sizeof(*rows));
	struct frag_suite_data *data = frag_answer_new(a, 1, sizeof(*data));
	struct frag_rows shifts;

	FRAG_CHECK_ALLOC(scores && rows && data, "answer", err);
	frag_suite_scores(r, SIZE_MAX, scores);
	shifts = shifts_of(r, scores, a);
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
					  .shifts = shifts,
					  .rows = { r->rows, r->rows_count } };
	a->title = "suite";
	a->question = "Which allocator needs the least memory, and which the least time?";
	frag_answer_data(a, &frag_suite_shape, data);
	frag_answer_csv(a, &frag_suite_row_shape, r->rows, r->rows_count);
	frag_answer_remark(a, "cufrag suite %s, %s division: %s%s%s, measured by %s", r->version,
			   data->division, r->device, *r->driver ? ", driver " : "", r->driver,
			   r->cufrag);
	frag_answer_remark(a, "hash %s", r->hash);
	frag_answer_table(a, &score_row_shape, rows, r->policies_count);
	say_failures(r, a);
	say_shifts(&shifts, scores, r->policies_count, a);
	frag_suite_charts(r, scores, a);
	conclude(r, scores, a);
	return 0;
}
