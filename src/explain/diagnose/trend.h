/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a series grow? The Mann-Kendall test (Mann 1945, Kendall 1975) asks whether later values are
 * larger than earlier ones, whatever their distribution, with the correction for ties. The slope is
 * the Theil-Sen estimate (Theil 1950, Sen 1968): the median of the slopes of all pairs, which stays
 * put even if almost a third of the values are outliers.
 */
#ifndef FRAG_EXPLAIN_TREND_H
#define FRAG_EXPLAIN_TREND_H

#include <frag/error.h>

#include <stddef.h>

struct frag_trend {
	size_t n;
	double tau;   /* Kendall's: -1 … 1 */
	double z;     /* of Mann-Kendall; 0 where n < 4 */
	double p;     /* that no trend looks like this, one-sided (upwards) */
	double slope; /* Theil-Sen, units per step of the series */
};

/* Series longer than FRAG_TREND_MAX are thinned evenly. O(n^2), n <= FRAG_TREND_MAX. */
#define FRAG_TREND_MAX 1024u
int frag_trend_of(const double *y, size_t n, struct frag_trend *out, struct frag_err *err);

#endif
