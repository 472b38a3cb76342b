/* SPDX-License-Identifier: Apache-2.0 */
/* Which refusals are fragmentation, at the borders of the rule. */
#include "test.h"

#include "explain/diagnose/diagnose.h"

static const struct frag_case *about; /* NULL: of a refusal alone */

static bool is_fragmentation(uint64_t live, uint64_t request, uint64_t reserved, uint64_t limit)
{
	return frag_oom_is_fragmentation(
		about, &(struct frag_refused_at){ .r = { .live_bytes = live, .bytes = request },
						  .reserved_bytes = reserved,
						  .limit_bytes = limit });
}

TEST(refusals)
{
	/* live and request fit by far; by nothing at all; not */
	assert_true(is_fragmentation(600 << 20, 100 << 20, 900 << 20, 1000 << 20));
	assert_false(is_fragmentation(895 << 20, 104 << 20, 920 << 20, 1000 << 20));
	assert_false(is_fragmentation(950 << 20, 100 << 20, 950 << 20, 1000 << 20));
	/* hardly, but the free space would have held it */
	assert_true(is_fragmentation(895 << 20, 104 << 20, 1000 << 20, 1000 << 20));
}

/* 920 live of 1000 MiB, 30 refused: settings win 5 % at most. */
TEST(refusal_that_ends_it)
{
	struct frag_event events[2] = { { .kind = FRAG_EV_ALLOC }, { .kind = FRAG_EV_ALLOC } };
	struct frag_trace_dev dev = { .events = events, .events_count = 1 };
	struct frag_trace trace = { .devs = &dev };
	struct frag_case c = { .events.trace = &trace };

	about = &c;
	assert_false(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.peak_live = 960 << 20; /* it had as much before */
	assert_true(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.first_mark = 1; /* in the first step, what follows is unknown all the same */
	assert_false(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.first_mark = 0;
	dev.events_count = 2; /* it goes on */
	assert_true(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
}
