/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-linear latency histograms.
 *
 * A value v >= 64 with e = floor(log2 v) falls into one of 32 buckets of width 2^(e-5) between 2^e
 * and 2^(e+1): the bucket's upper edge is less than 2^(e-5)/2^e = 1/32 above v. Below 64, every
 * value has its own bucket.
 */
#include "hist.h"

#include <frag/metrics.h>

#include <string.h>

#define SUB_BITS 5u
#define VALUE_BITS 40u
_Static_assert(FRAG_HIST_SUB == 1u << SUB_BITS, "sub-buckets per power of two");

static unsigned bucket_of(uint64_t value)
{
	unsigned e;

	if (value < 2 * FRAG_HIST_SUB)
		return (unsigned)value;
	e = frag_log2(value);
	return (e - SUB_BITS) * FRAG_HIST_SUB + (unsigned)(value >> (e - SUB_BITS));
}

uint64_t frag_hist_upper_edge(unsigned i)
{
	unsigned shift;

	if (i < 2 * FRAG_HIST_SUB)
		return i;
	shift = i / FRAG_HIST_SUB - 1;
	return ((uint64_t)(FRAG_HIST_SUB + i % FRAG_HIST_SUB + 1) << shift) - 1;
}

void frag_hist_clear(struct frag_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void frag_hist_add(struct frag_hist *h, uint64_t value)
{
	/* A zeroed histogram must equal a cleared one, because results are calloc'ed. */
	if (h->count == 0)
		h->min = UINT64_MAX;
	h->count++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	if (FRAG_UNLIKELY(value >> VALUE_BITS))
		h->over++;
	else
		h->bucket[bucket_of(value)]++;
}

void frag_hist_merge(struct frag_hist *into, const struct frag_hist *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0)
		into->min = UINT64_MAX;
	into->count += from->count;
	into->over += from->over;
	into->sum += from->sum;
	into->min = FRAG_MIN(into->min, from->min);
	into->max = FRAG_MAX(into->max, from->max);
	for (unsigned i = 0; i < FRAG_HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t frag_hist_quantile(const struct frag_hist *h, double q)
{
	uint64_t rank, seen = 0;

	if (h->count == 0)
		return 0;
	if (q <= 0)
		return h->min;
	if (q >= 1)
		return h->max;
	/* The smallest value with at least the fraction q of all values at or below it. */
	rank = (uint64_t)(q * (double)h->count);
	if ((double)rank < q * (double)h->count || rank == 0)
		rank++;
	for (unsigned i = 0; i < FRAG_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			return FRAG_MIN(frag_hist_upper_edge(i), h->max);
	}
	return h->max; /* the quantile is among the values above the range */
}
