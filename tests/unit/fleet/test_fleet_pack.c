/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of packing: by sum, by halves. */
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
