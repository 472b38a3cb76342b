/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a series climb? Mann-Kendall (Mann 1945, Kendall 1975) asks whether later values are
 * larger than earlier ones, whatever their distribution, with the correction for ties; the slope is
 * Theil's and Sen's (Theil 1950, Sen 1968): the median of the slopes of all pairs, which a
 * third of wild values cannot move.
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
