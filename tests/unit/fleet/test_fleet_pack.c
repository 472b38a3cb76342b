/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of packing: by sum, by halves, against the best packing of small random cases. */
#include "test.h"

#include "fleet/fleet.h"

TEST(test_known)
{
	static const struct {
		uint64_t sizes[6], room;
		size_t n, want;
	} rows[] = {
		{ { 0 }, 10, 0, 0 },
		{ { 10 }, 10, 1, 1 },
		{ { 6, 6, 6 }, 10, 3, 3 }, /* the sum says 2, the halves 3 */
		{ { 5, 5, 5, 5 }, 10, 4, 2 },
		{ { 7, 7, 4, 4 }, 10, 4, 3 }, /* 7 and 4 do not meet */
		{ { 9, 3, 3, 3, 1 }, 10, 5, 2 },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_int_equal(frag_fleet_bound(rows[i].sizes, rows[i].n, rows[i].room),
				 rows[i].want);
}

/* All packings, one item after the other. */
static size_t optimum(const uint64_t *sizes, size_t n, uint64_t room, uint64_t *bins, size_t used,
		      size_t best)
{
	if (used >= best)
		return best;
	if (!n)
		return used;
	for (size_t b = 0; b <= used && b < 7; b++) {
		if (bins[b] + sizes[0] > room)
			continue;
		bins[b] += sizes[0];
		best = optimum(sizes + 1, n - 1, room, bins, FRAG_MAX(used, b + 1), best);
		bins[b] -= sizes[0];
	}
	return best;
}

TEST(test_never_above_the_optimum)
{
	uint64_t seed = 1;

	for (unsigned run = 0; run < 500; run++) {
		uint64_t sizes[7], bins[8] = { 0 };
		size_t best, bound;

		for (size_t i = 0; i < 7; i++)
			sizes[i] = 1 + test_roll(&seed) % 20;
		best = optimum(sizes, 7, 20, bins, 0, 8);
		bound = frag_fleet_bound(sizes, 7, 20);
		assert_true(bound <= best);
		assert_true(bound + 2 >= best);
	}
}
