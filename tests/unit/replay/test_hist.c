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

static struct frag_hist h, g, whole;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Two parts, merged, are the whole; sorts the values. */
static void check(uint64_t *v, size_t n)
{
	static const double q[] = { 0, 0.001, 0.33, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
	uint64_t sum = 0;

	memset(&h, 0, sizeof(h)); /* zeroed is as good as cleared */
	frag_hist_clear(&g);
	frag_hist_clear(&whole);
	for (size_t i = 0; i < n; i++) {
		frag_hist_add(i % 3 ? &h : &g, v[i]);
		frag_hist_add(&whole, v[i]);
		sum += v[i];
	}
	frag_hist_merge(&h, &g);
	assert_memory_equal(&h, &whole, sizeof(h));
	qsort(v, n, sizeof(v[0]), by_value);
	assert_true(h.count == n && h.sum == sum && h.min == v[0] && h.max == v[n - 1]);
	for (size_t k = 0; k < FRAG_ARRAY_LEN(q); k++) {
		size_t rank = (size_t)(q[k] * (double)n);
		uint64_t want, got = frag_hist_quantile(&h, q[k]);

		rank += (double)rank < q[k] * (double)n || !rank;
		want = v[rank - 1];
		if (want >> 40) /* above the range */
			assert_int_equal(got, h.max);
		else
			assert_in_range(got, want,
					FRAG_MIN(want + (want < 64 ? 0 : want / 32), h.max));
	}
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

/* Alone; below a larger one, where the quantile is the upper edge of its bucket; and with two above the range. */
TEST(every_power_of_two_and_its_neighbours)
{
	for (unsigned e = 0; e < 40; e++)
		for (uint64_t v = (1ull << e) - (e > 1); v <= (1ull << e) + (e < 39); v++) {
			check((uint64_t[]){ v }, 1);
			check((uint64_t[]){ (1ull << 40) - 1, v }, 2);
			check((uint64_t[]){ v, 1ull << 40, UINT64_MAX / 4 }, 3);
			assert_int_equal(h.over, 2);
		}
	for (uint64_t v = 0; v < 64; v++)
		check((uint64_t[]){ v, 1000 }, 2);
}

TEST(many)
{
	static uint64_t v[MANY];
	uint64_t seed = 7;

	for (int i = 0; i < MANY; i++)
		v[i] = frag_random(&seed) >> (24 + frag_random(&seed) % 40);
	check(v, MANY);
}
