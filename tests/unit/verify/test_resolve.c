/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to find what a recording leaves open. What is found: resolve.cases
 * (tests/unit/trace/raw.py); more limits: tests/golden/run.py, tests/cli limit_given. */
#include "test.h"

#include <frag/replay.h>

#include "trace/build/build.h"
#include "verify/resolve.h"

#define S 0x7f0000000000ull
#define ENTRY(kind, at, size) \
	{ \
		.addr = (at), .bytes = (size), .action = FRAG_RAW_##kind, .pool = FRAG_RAW_NO_POOL \
	}

static struct frag_trace_settings no_settings = { .conf = (char *)"",
						  .max_split_bytes = UINT64_MAX,
						  .limit_bytes = UINT64_MAX };

/* Pairs of segments of which the second is given back first: two pools each time. malloc. */
static struct frag_raw_entry *descending_list(size_t pairs)
{
	struct frag_raw_entry *list = calloc(8 * pairs, sizeof(*list));

	assert_non_null(list);
	for (size_t i = 0; i < pairs; i++) {
		frag_addr_t a = S + i * 4 * MIB, b = a + 2 * MIB;
		const struct frag_raw_entry group[8] = {
			ENTRY(SEGMENT_ALLOC, a, 2 * MIB),
			ENTRY(ALLOC, a, 512),
			ENTRY(SEGMENT_ALLOC, b, 2 * MIB),
			ENTRY(ALLOC, b, 512),
			ENTRY(FREE, a, 512),
			ENTRY(FREE, b, 512),
			ENTRY(SEGMENT_FREE, b, 2 * MIB),
			ENTRY(SEGMENT_FREE, a, 2 * MIB),
		};

		memcpy(&list[8 * i], group, sizeof(group));
	}
	return list;
}

/* Without a segment at the end. */
static struct frag_raw_dev raw_of(const struct frag_raw_entry *list, size_t count)
{
	static const uint64_t stream = 0;

	return (struct frag_raw_dev){ .entries = list,
				      .entries_count = count,
				      .recorded_count = count,
				      .streams = &stream,
				      .streams_count = 1,
				      .finals_known = true };
}

/* ---- what it costs, in events that are followed ---- */

/* What resolving takes of `steps`. */
static uint64_t cost_of(struct frag_raw_dev raw, uint64_t steps, struct resolve_try *t)
{
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	struct frag_trace trace = {
		.name = (char *)"made", .devs = &dev, .devs_count = 1, .settings = no_settings
	};

	raw.finals_known = false;
	*t = (struct resolve_try){ .limit_bytes = UINT64_MAX };
	SUCCEEDS(frag_build_dev(&raw, &dev, &test_err));
	t->steps = steps ? steps : resolve_steps(&dev);
	steps = t->steps;
	SUCCEEDS(resolve_try(&trace, 0, NULL, t, &test_err));
	return steps - t->steps;
}

/* n pairs, each of two pools, take no more rounds than one pair does. */
TEST(test_rounds_do_not_grow)
{
	for (size_t pairs = 1; pairs <= 1000; pairs *= 10) {
		FRAG_AUTO(free_at) struct frag_raw_entry *list = descending_list(pairs);
		struct frag_raw_dev raw = raw_of(list, 8 * pairs);
		struct resolve_try t;

		assert_true(cost_of(raw, 0, &t) <= 4 * 8 * pairs);
		assert_int_equal(t.outcome, RESOLVE_SAME);
	}
}

/*
 * Each of n requests is served from a segment of its own although all others have room: every
 * two are of different pools, which takes n * n / 2 rounds. It ends where the steps do.
 */
TEST(test_cost_is_bounded)
{
	struct frag_raw_entry list[2 * 30];
	struct frag_raw_dev raw = raw_of(list, FRAG_ARRAY_LEN(list));
	struct resolve_try t;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(list) / 2; i++) {
		frag_addr_t at = S + i * 64 * MIB;

		list[2 * i] = (struct frag_raw_entry)ENTRY(SEGMENT_ALLOC, at, 20 * MIB);
		list[2 * i + 1] = (struct frag_raw_entry)ENTRY(ALLOC, at, 2 * MIB);
	}
	assert_int_equal(cost_of(raw, 1000, &t), 1000);
	assert_true(t.stopped);
	assert_int_equal(t.outcome, RESOLVE_DIFFERENT);
	assert_true(cost_of(raw, 0, &t) > 1000);
	assert_false(t.stopped);
	assert_int_equal(t.outcome, RESOLVE_SAME);
}
