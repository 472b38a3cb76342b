/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a result: scores against each other, a heat map, capacity curves; see suite.h. */
#include "suite.h"

#include <math.h>
#include <string.h>

#define DRAWN 6u /* policies in the capacity curves */

/* No complete policy is at least as good in both and better in one. */
static bool on_front(const struct frag_suite_score *all, size_t count,
		     const struct frag_suite_score *s)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].space.rank && all[i].space.ratio <= s->space.ratio &&
		    all[i].time.ratio <= s->time.ratio &&
		    (all[i].space.ratio < s->space.ratio || all[i].time.ratio < s->time.ratio))
			return false;
	return s->space.rank != 0;
}

#define POINT(X, s) \
	X(s, COUNT, series, i) \
	X(s, TEXT, policy, scores[i].policy) \
	X(s, REAL, space, scores[i].space.ratio) \
	X(s, REAL, time, scores[i].time.ratio) \
	X(s, COUNT, complete, scores[i].space.rank != 0) \
	X(s, COUNT, front, on_front(scores, r->policies_count, &scores[i]))
FRAG_CSV_ROW(point, POINT)

static void add_pareto(const struct frag_suite_result *r, const struct frag_suite_score *scores,
		       struct frag_answer *a)
{
	struct point *rows = frag_answer_new(a, r->policies_count, sizeof(*rows));
	struct frag_answer_chart chart = {
		.script = "suite_pareto",
		.heading = "Space against time",
		.caption = "Over PyTorch's default, geometric means of the classes. Down is less "
			   "memory, left is less time in the driver. A ring: not beaten in both at "
			   "once. A cross: not every workload was completed.",
		.shape = &point_shape,
	};
	struct frag_title title = { 0 };
	size_t n = 0, front = 0;

	for (size_t i = 0; rows && i < r->policies_count; i++)
		if (!isnan(scores[i].space.ratio)) {
			rows[n] = FRAG_CSV_VALUES(point, POINT);
			front += rows[n++].front;
		}
	if (n < 2)
		return;
	frag_text_addf(&title.text, "%s of %s policies are not beaten in both space and time",
		       frag_title_count(&title, "front_count", front),
		       frag_title_count(&title, "policies_count", n));
	chart.rows = (struct frag_rows){ rows, n };
	frag_answer_take_title(a, &title, &chart);
	frag_answer_chart(a, &chart);
}

#define CELL(X, s) \
	X(s, COUNT, series, w) \
	X(s, TEXT, workload, base->workload) \
	X(s, COUNT, column, p) \
	X(s, TEXT, policy, scores[p].policy) \
	X(s, REAL, space, ratio)
FRAG_CSV_ROW(cell, CELL)

static void add_heat(const struct frag_suite_result *r, const struct frag_suite_score *scores,
		     struct frag_answer *a)
{
	struct cell *rows = frag_answer_new(a, r->rows_count + 1, sizeof(*rows));
	struct frag_answer_chart chart = {
		.script = "suite_heat",
		.heading = "Every policy on every workload",
		.title = "Space over PyTorch's default: darker needs more",
		.caption = "Geometric mean of reserved memory and smallest capacity, over that of "
			   "PyTorch's default. A cross: not completed.",
		.shape = &cell_shape,
	};
	size_t n = 0, w = 0;

	for (size_t i = 0; rows && i < r->rows_count; i++) {
		const struct frag_suite_row *base = &r->rows[i];

		if (strcmp(base->policy, FRAG_SUITE_BASELINE) != 0 || !frag_suite_is_done(base))
			continue;
		for (size_t p = 0; p < r->policies_count; p++) {
			const struct frag_suite_row *row =
				frag_suite_result_find(r, base->workload, scores[p].policy);
			double ratio;

			if (!row || n == r->rows_count)
				continue;
			ratio = frag_suite_is_done(row) ? frag_suite_space(row, base) : NAN;
			rows[n++] = FRAG_CSV_VALUES(cell, CELL);
		}
		w++;
	}
	if (!n)
		return;
	chart.rows = (struct frag_rows){ rows, n };
	frag_answer_chart(a, &chart);
}

#define CURVE(X, s) \
	X(s, COUNT, series, p) \
	X(s, TEXT, policy, scores[p].policy) \
	X(s, COUNT, panel, c) \
	X(s, TEXT, class, r->classes[c]) \
	X(s, COUNT, percent, frag_suite_percents[k]) \
	X(s, REAL, refused_ratio, refused(r, r->classes[c], scores[p].policy, k))
FRAG_CSV_ROW(curve, CURVE)

/* Part of the requests that are refused: the mean over the workloads of a class. */
static double refused(const struct frag_suite_result *r, const char *class, const char *policy,
		      unsigned k)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->rows_count; i++) {
		const struct frag_suite_row *row = &r->rows[i];
		const uint64_t counts[FRAG_SUITE_CAPACITIES] = {
			row->refused_100_count, row->refused_102_count, row->refused_105_count,
			row->refused_110_count, row->refused_125_count, row->refused_150_count
		};

		if (strcmp(row->class, class) != 0 || strcmp(row->policy, policy) != 0 ||
		    !frag_suite_is_done(row))
			continue;
		sum += (double)counts[k] / (double)row->requests_count;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

/* The first by space, and the baseline. */
static void add_curves(const struct frag_suite_result *r, const struct frag_suite_score *scores,
		       struct frag_answer *a)
{
	size_t room = r->classes_count * r->policies_count * FRAG_SUITE_CAPACITIES, n = 0,
	       drawn = 0;
	struct curve *rows = frag_answer_new(a, room + 1, sizeof(*rows));
	struct frag_answer_chart chart = {
		.script = "suite_curves",
		.heading = "On small cards",
		.title = "Requests that are refused on cards hardly larger than the live peak",
		.caption = "A panel for each class; the first policies by space, and PyTorch's "
			   "default.",
		.shape = &curve_shape,
	};

	for (size_t p = 0; rows && !r->card && p < r->policies_count; p++) {
		bool base = !strcmp(scores[p].policy, FRAG_SUITE_BASELINE);

		if (!base && (drawn + 1 >= DRAWN || !scores[p].space.rank))
			continue;
		drawn++;
		for (size_t c = 0; c < r->classes_count; c++)
			for (unsigned k = 0; k < FRAG_SUITE_CAPACITIES; k++)
				rows[n++] = FRAG_CSV_VALUES(curve, CURVE);
	}
	if (!n)
		return;
	chart.rows = (struct frag_rows){ rows, n };
	frag_answer_chart(a, &chart);
}

void frag_suite_charts(const struct frag_suite_result *r, const struct frag_suite_score *scores,
		       struct frag_answer *a)
{
	add_pareto(r, scores, a);
	add_heat(r, scores, a);
	add_curves(r, scores, a);
}
