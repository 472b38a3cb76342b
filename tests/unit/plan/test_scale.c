/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at values that were not recorded: laws of sizes. Whole recordings: tests/cli scale. */
#include "test.h"

#include "plan/scale/scale.h"

static uint64_t size_at(const uint64_t *sizes, size_t count, uint64_t n,
			enum frag_scaling_bound bound, enum frag_scaling_law *law)
{
	static const uint64_t values[] = { 2, 4, 8, 16 };

	return frag_scaling_size(values, sizes, count, count - 1, n, bound, law);
}

TEST(laws_are_those_that_all_points_meet)
{
	const uint64_t bent[] = { 10, 20, 30, 40 }, once[] = { UINT64_MAX, UINT64_MAX, 100, 200 };
	const uint64_t square[] = { 48, 192, 768, 3072 }, affine[] = { 116, 132, 164, 228 };
	const uint64_t full[] = { 14, 46, 158, 574 }; /* 2 n^2 + 4 n - 2 */
	const uint64_t only[] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, 160 };
	const uint64_t huge[] = { FRAG_MAX_REQUEST / 4, FRAG_MAX_REQUEST };
	enum frag_scaling_law law;

	assert_int_equal(size_at(bent, 4, 100, FRAG_SCALING_LOW, &law), 40);
	assert_int_equal(law, FRAG_SCALING_UNKNOWN);
	assert_int_equal(size_at(bent, 4, 100, FRAG_SCALING_HIGH, &law), 250);
	assert_int_equal(size_at(bent, 4, 5, FRAG_SCALING_HIGH, &law), 25);
	assert_int_equal(size_at(once, 4, 32, FRAG_SCALING_LOW, &law), 400);
	assert_int_equal(law, FRAG_SCALING_LINEAR);
	assert_int_equal(size_at(full, 4, 10, FRAG_SCALING_LOW, &law), 238);
	assert_int_equal(law, FRAG_SCALING_QUADRATIC);
	assert_int_equal(size_at(square, 4, 617, FRAG_SCALING_LOW, &law), 12 * 617 * 617);
	assert_int_equal(law, FRAG_SCALING_SQUARE);
	assert_int_equal(size_at(affine, 4, 617, FRAG_SCALING_LOW, &law), 100 + 8 * 617);
	assert_int_equal(law, FRAG_SCALING_AFFINE);
	size_at(full, 3, 10, FRAG_SCALING_LOW, &law);
	assert_int_equal(law, FRAG_SCALING_UNKNOWN);
	assert_int_equal(size_at(only, 4, 64, FRAG_SCALING_HIGH, &law), 640);
	assert_int_equal(law, FRAG_SCALING_ONCE);
	assert_true(size_at(huge, 2, FRAG_SCALING_MAX, FRAG_SCALING_LOW, &law) == UINT64_MAX);
}
