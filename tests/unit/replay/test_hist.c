/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms against a sorted list of the same values: exact below 64, within
 * 1/32 above, quantiles by the definition (smallest value with at least q of
 * all at or below it).
 */
#include "test.h"

#include <frag/metrics.h>

#include "lib/random.h"

#define MANY 10007

static struct frag_hist h, g, whole; /* zeroed is as good as cleared */

/* Two parts, merged, are the whole. Small ones, those around powers of two, and above the range. */
TEST(quantiles_of_many)
{
	static const double q[] = { 0, 0.001, 0.33, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
	static uint64_t v[MANY];
	uint64_t seed = 7, sum = 0;

	assert_int_equal(frag_hist_quantile(&h, 0.5), 0);
	for (size_t i = 0; i < MANY; i++) {
		v[i] = i < 64	 ? i
		       : i < 184 ? (1ull << (i - 64) / 3) + i % 3 - 1
				 : frag_random(&seed) >> (24 + frag_random(&seed) % 40);
		frag_hist_add(i % 3 ? &h : &g, v[i]);
		frag_hist_add(&whole, v[i]);
		sum += v[i];
	}
	frag_hist_merge(&h, &g);
	assert_memory_equal(&h, &whole, sizeof(h));
	qsort(v, MANY, sizeof(v[0]), frag_compare_u64);
	assert_true(h.count == MANY && h.sum == sum && h.min == v[0] && h.max == v[MANY - 1]);
	for (size_t k = 0; k < FRAG_ARRAY_LEN(q); k++) {
		size_t rank = (size_t)(q[k] * MANY);
		uint64_t want, got = frag_hist_quantile(&h, q[k]);

		rank += (double)rank < q[k] * MANY || !rank;
		want = v[rank - 1];
		assert_in_range(got, want, FRAG_MIN(want + (want < 64 ? 0 : want / 32), h.max));
	}
	frag_hist_add(&h, UINT64_MAX / 4);
	assert_int_equal(h.over, 1);
	assert_int_equal(frag_hist_quantile(&h, 1), UINT64_MAX / 4);
}
