/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms against a sorted list of the same values: exact below 64, within
 * 1/32 above, quantiles by the definition (smallest value with at least q of
 * all at or below it).
 */
#include "test.h"

#include <frag/metrics.h>

#include "lib/random.h"

static struct frag_hist h, g;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

TEST(empty)
{
	frag_hist_clear(&h);
	assert_int_equal(h.count, 0);
	assert_int_equal(frag_hist_quantile(&h, 0.5), 0);
	assert_int_equal(frag_hist_quantile(&h, 1), 0);
	memset(&g, 0, sizeof(g));
	frag_hist_merge(&g, &h);
	assert_int_equal(g.count, 0);
}

TEST(small_values_are_exact)
{
	for (uint64_t v = 0; v < 64; v++) {
		frag_hist_clear(&h);
		frag_hist_add(&h, v);
		frag_hist_add(&h, 1000);
		assert_int_equal(frag_hist_quantile(&h, 0.5), v);
	}
}

/* One value and a larger one: the quantile is the bucket's upper edge of the first. */
TEST(every_power_of_two_is_within_one_32th)
{
	for (unsigned e = 6; e < 40; e++) {
		for (int step = -1; step <= 1; step++) {
			uint64_t v = (1ull << e) + (uint64_t)step, q;

			if (v >> 40)
				continue;
			memset(&h, 0, sizeof(h)); /* zeroed is as good as cleared */
			frag_hist_add(&h, v);
			frag_hist_add(&h, (1ull << 40) - 1);
			q = frag_hist_quantile(&h, 0.5);
			assert_true(q >= v);
			assert_true(q - v <= v / 32);
			assert_int_equal(h.min, v);
		}
	}
}

TEST(above_the_range)
{
	frag_hist_clear(&h);
	frag_hist_add(&h, 5);
	frag_hist_add(&h, 1ull << 40);
	frag_hist_add(&h, UINT64_MAX / 4);
	assert_int_equal(h.count, 3);
	assert_int_equal(h.over, 2);
	assert_int_equal(h.max, UINT64_MAX / 4);
	assert_int_equal(frag_hist_quantile(&h, 0.33), 5);
	assert_int_equal(frag_hist_quantile(&h, 0.9), UINT64_MAX / 4);
}

TEST(never_above_the_maximum)
{
	frag_hist_clear(&h);
	frag_hist_add(&h, 1000001);
	assert_int_equal(frag_hist_quantile(&h, 0.5), 1000001);
	assert_int_equal(frag_hist_quantile(&h, 0), 1000001);
}

TEST(quantiles_against_a_sorted_list)
{
	enum { N = 10007 };
	static uint64_t v[N];
	static const double q[] = { 0.001, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
	uint64_t seed = 7, sum = 0;

	frag_hist_clear(&h);
	for (int i = 0; i < N; i++) {
		v[i] = frag_random(&seed) >> (24 + frag_random(&seed) % 40);
		sum += v[i];
		frag_hist_add(&h, v[i]);
	}
	qsort(v, N, sizeof(v[0]), by_value);
	assert_int_equal(h.sum, sum);
	assert_int_equal(h.min, v[0]);
	assert_int_equal(h.max, v[N - 1]);
	for (size_t k = 0; k < FRAG_ARRAY_LEN(q); k++) {
		size_t rank = (size_t)(q[k] * N);
		uint64_t want, got = frag_hist_quantile(&h, q[k]);

		if ((double)rank < q[k] * N)
			rank++;
		want = v[rank - 1];
		assert_true(got >= want);
		assert_true(got - want <= want / 32);
	}
}

/* Two halves merged are the whole. */
TEST(merging)
{
	static struct frag_hist whole;
	uint64_t seed = 3;

	memset(&h, 0, sizeof(h));
	frag_hist_clear(&g);
	frag_hist_clear(&whole);
	for (int i = 0; i < 5000; i++) {
		uint64_t v = frag_random(&seed) >> 20;

		frag_hist_add(i % 3 ? &h : &g, v);
		frag_hist_add(&whole, v);
	}
	frag_hist_merge(&h, &g);
	assert_memory_equal(&h, &whole, sizeof(h));
	memset(&g, 0, sizeof(g));
	frag_hist_merge(&g, &whole);
	assert_memory_equal(&g, &whole, sizeof(g));
}
