/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into scores, turns into intervals; see suite.h. */
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct frag_suite_row *frag_suite_result_find(const struct frag_suite_result *r,
						    const char *workload, const char *policy)
{
	for (size_t i = 0; i < r->rows_count; i++)
		if (!strcmp(r->rows[i].workload, workload) && !strcmp(r->rows[i].policy, policy))
			return &r->rows[i];
	return NULL;
}

bool frag_suite_is_done(const struct frag_suite_row *row)
{
	return row && !strcmp(row->state, "done");
}

bool frag_suite_is_measured(const struct frag_suite_row *row)
{
	return frag_suite_is_done(row) || !strcmp(row->state, "refused") ||
	       !strcmp(row->state, "unsupported");
}

/* Nothing counts as one, so that a logarithm exists. */
static double over(uint64_t value, uint64_t base)
{
	return (double)FRAG_MAX(value, (uint64_t)1) / (double)FRAG_MAX(base, (uint64_t)1);
}

double frag_suite_space(const struct frag_suite_row *row, const struct frag_suite_row *base)
{
	double reserved = over(row->reserved_bytes, base->reserved_bytes);

	if (row->capacity_bytes == UINT64_MAX || base->capacity_bytes == UINT64_MAX)
		return reserved; /* a card has no capacity curve */
	return sqrt(reserved * over(row->capacity_bytes, base->capacity_bytes));
}

double frag_suite_time(const struct frag_suite_row *row, const struct frag_suite_row *base)
{
	return over(row->driver_ns, base->driver_ns);
}

/* NaN where the class has no row of it that is done. */
static double class_ratio(const struct frag_suite_result *r, const char *class, const char *policy,
			  bool time)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->rows_count; i++) {
		const struct frag_suite_row *row = &r->rows[i], *base;

		if (strcmp(row->class, class) != 0 || strcmp(row->policy, policy) != 0 ||
		    !frag_suite_is_done(row))
			continue;
		base = frag_suite_result_find(r, row->workload, FRAG_SUITE_BASELINE);
		if (!frag_suite_is_done(base))
			continue;
		sum += log(time ? frag_suite_time(row, base) : frag_suite_space(row, base));
		n++;
	}
	return n ? exp(sum / (double)n) : NAN;
}

static struct frag_suite_measure measure(const struct frag_suite_result *r, size_t without,
					 const char *policy, bool time)
{
	struct frag_suite_measure m = { .ratio = NAN, .low = NAN, .high = NAN };
	double sum = 0;
	size_t n = 0;

	for (size_t c = 0; c < r->classes_count; c++) {
		double ratio = class_ratio(r, r->classes[c], policy, time);

		if (c == without || isnan(ratio))
			continue;
		m.low = fmin(m.low, ratio);
		m.high = fmax(m.high, ratio);
		sum += log(ratio);
		n++;
	}
	if (n)
		m.ratio = exp(sum / (double)n);
	return m;
}

/* Only those that are complete have a rank; equal ones share it. */
static void rank(struct frag_suite_score *scores, size_t count, size_t offset)
{
#define AT(i) ((struct frag_suite_measure *)((char *)&scores[i] + offset))
	for (size_t i = 0; i < count; i++) {
		if (scores[i].done < scores[i].rows)
			continue;
		AT(i)->rank = 1;
		for (size_t k = 0; k < count; k++)
			AT(i)->rank += scores[k].done == scores[k].rows &&
				       AT(k)->ratio < AT(i)->ratio * (1 - 1e-9);
	}
#undef AT
}

void frag_suite_scores(const struct frag_suite_result *r, size_t without,
		       struct frag_suite_score *scores)
{
	for (size_t p = 0; p < r->policies_count; p++) {
		scores[p] = (struct frag_suite_score){
			.policy = r->policies[p],
			.space = measure(r, without, r->policies[p], false),
			.time = measure(r, without, r->policies[p], true)
		};
		for (size_t i = 0; i < r->rows_count; i++)
			if (!strcmp(r->rows[i].policy, r->policies[p])) {
				scores[p].rows++;
				scores[p].done += frag_suite_is_done(&r->rows[i]);
			}
	}
	rank(scores, r->policies_count, offsetof(struct frag_suite_score, space));
	rank(scores, r->policies_count, offsetof(struct frag_suite_score, time));
}

/* ---- intervals ------------------------------------------------------------------------------ */

void frag_suite_interval(double *values, size_t count, double *mean, double *half)
{
	/* 97.5 % of Student's t, by degrees of freedom from 1 on */
	static const double t[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
				    2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145 };
	double sum = 0, squares = 0;
	size_t n = count - 2;

	qsort(values, count, sizeof(*values), frag_compare_double);
	for (size_t i = 1; i <= n; i++)
		sum += values[i];
	*mean = sum / (double)n;
	for (size_t i = 1; i <= n; i++)
		squares += (values[i] - *mean) * (values[i] - *mean);
	*half = t[FRAG_MIN(n - 1, FRAG_ARRAY_LEN(t)) - 1] *
		sqrt(squares / (double)(n - 1) / (double)n);
}
