/* SPDX-License-Identifier: Apache-2.0 */
/* Mann-Kendall and Theil-Sen; see diagnose.h. */
#include "diagnose.h"

#include <frag/base.h>

#include <math.h>
#include <stdlib.h>

double frag_median(double *y, size_t n)
{
	if (!n)
		return 0;
	qsort(y, n, sizeof(*y), frag_compare_double);
	return n % 2 ? y[n / 2] : y[n / 2 - 1] * 0.5 + y[n / 2] * 0.5;
}

/* Variance of S without trend: n(n-1)(2n+5)/18, less what groups of equal values take. */
static double variance(double *sorted, size_t n)
{
	double nn = (double)n, v = nn * (nn - 1) * (2 * nn + 5);

	qsort(sorted, n, sizeof(*sorted), frag_compare_double);
	for (size_t i = 0, j; i < n; i = j) {
		double t;

		for (j = i; j < n && !(sorted[j] > sorted[i]); j++)
			;
		t = (double)(j - i);
		v -= t * (t - 1) * (2 * t + 5);
	}
	return v / 18;
}

static void fill(const double *y, const double *x, size_t n, double *work, struct frag_trend *out)
{
	double s = 0, v;
	size_t pairs = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++) {
			s += (y[j] > y[i]) - (y[j] < y[i]);
			work[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
		}
	}
	out->tau = pairs ? s / (double)pairs : 0;
	out->slope = frag_median(work, pairs);
	for (size_t i = 0; i < n; i++)
		work[i] = y[i];
	v = variance(work, n);
	if (n >= 4 && v > 0 && s != 0)
		out->z = (s > 0 ? s - 1 : s + 1) / sqrt(v);
	out->p = 0.5 * erfc(out->z / sqrt(2.0));
}

int frag_trend_of(const double *y, size_t n, struct frag_trend *out, struct frag_err *err)
{
	size_t m = FRAG_MIN(n, (size_t)FRAG_TREND_MAX);
	FRAG_AUTO_FREE double *space = frag_host_calloc(2 * m + m * m / 2 + 1, sizeof(*space));

	*out = (struct frag_trend){ .p = 1 };
	FRAG_CHECK_ALLOC(space, "trend", err);
	for (size_t i = 0; i < m; i++) {
		size_t at = i * n / m;

		space[i] = y[at];
		space[m + i] = (double)at;
	}
	if (m)
		fill(space, space + m, m, space + 2 * m, out);
	return 0;
}
