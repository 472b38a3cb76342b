/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by which Umpire's pools make chunks one. The pools themselves: tests/policies/. */
#include "test.h"

#include <quickcore.h>

TEST(coalescing)
{
	struct frag_coalesce_state s = {
		.actual = 1000, .releasable = 500, .aligned_hwm = 700, .releasable_count = 3
	};
	struct frag_coalesce c = { .rule = FRAG_COALESCE_PERCENT, .percent = 50, .blocks = 3 };

	assert_int_equal(frag_coalesce_size(&c, &s), 1000);
	c.percent = 51;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.percent = 0;
	s.releasable = 1000;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.percent = 100;
	assert_int_equal(frag_coalesce_size(&c, &s), 1000);
	c.rule = FRAG_COALESCE_PERCENT_HWM;
	assert_int_equal(frag_coalesce_size(&c, &s), 700);
	s.releasable = 999;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.rule = FRAG_COALESCE_BLOCKS;
	assert_int_equal(frag_coalesce_size(&c, &s), 1000); /* 3 are enough for 3 */
	c.blocks = 4;
	assert_int_equal(frag_coalesce_size(&c, &s), 0);
	c.blocks = 2;
	c.rule = FRAG_COALESCE_BLOCKS_HWM;
	assert_int_equal(frag_coalesce_size(&c, &s), 700);
}
