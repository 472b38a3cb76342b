/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open is found by following it: small histories made here. */
#include "test.h"

#include <unistd.h>

#include <frag/replay.h>

#include "trace/build/build.h"
#include "verify/resolve.h"

#define MIB FRAG_MIB
#define S 0x7f0000000000ull
#define ENTRY(kind, at, size) \
	{ \
		.addr = (at), .bytes = (size), .action = FRAG_RAW_##kind, .pool = FRAG_RAW_NO_POOL \
	}

static struct frag_trace_settings no_settings = { .conf = (char *)"",
						  .max_split_bytes = UINT64_MAX,
						  .limit_bytes = UINT64_MAX };

/* Builds the device, resolves and verifies it. */
static void verify_list(struct frag_raw_dev raw, struct frag_trace_dev *dev,
			struct frag_verify_result *out)
{
	static const uint64_t stream = 0;
	struct frag_trace trace = {
		.name = (char *)"made", .devs = dev, .devs_count = 1, .settings = no_settings
	};
	struct frag_err err = { 0 };

	raw.recorded_count = raw.entries_count;
	raw.streams = &stream;
	raw.streams_count = 1;
	raw.finals_known = true;
	if (frag_build_dev(&raw, dev, &err) ||
	    frag_verify(&trace, 0, NULL, UINT64_MAX, NULL, out, &err))
		fail_msg("%s", err.msg);
}

/* A request that went elsewhere although the gap seemed to hold it: the gap is shorter. */
TEST(test_size_from_what_was_not_chosen)
{
	static const struct frag_final_block blocks[] = {
		{ S, 20 * MIB, 0, FRAG_STATE_FREE }, { S + 64 * MIB, 30 * MIB, 0, FRAG_STATE_FREE }
	};
	static const struct frag_raw_segment segments[] = {
		{ S, 20 * MIB, 0, 1, 0, 0, false, false },
		{ S + 64 * MIB, 30 * MIB, 1, 1, 0, 0, false, false },
	};
	static const struct frag_raw_entry list[] = {
		/* 20 - 3 = 17 MiB seem free, yet 16.5 MiB are served by another segment */
		ENTRY(ALLOC, S + 64 * MIB, 16 * MIB + MIB / 2),
		ENTRY(FREE, S, 3 * MIB),
		ENTRY(FREE, S + 64 * MIB, 16 * MIB + MIB / 2),
	};
	struct frag_raw_dev raw = { .entries = list,
				    .entries_count = FRAG_ARRAY_LEN(list),
				    .segments = segments,
				    .segments_count = 2,
				    .blocks = blocks };
	struct frag_verify_result r;
	struct frag_trace_dev dev;

	verify_list(raw, &dev, &r);
	assert_string_equal(r.first_difference, "");
	assert_true(r.identical);
	assert_int_equal(r.pools, 0);
	assert_int_equal(r.uncertain, 1);
	assert_true(dev.initial_blocks[0].bytes == 3 * MIB + MIB / 2 + 512);
	frag_verify_result_release(&r);
	frag_trace_dev_release(&dev);
}

/*
 * A second segment was taken while the first had room for the request, and the
 * first was released first, small before large: two pools.
 */
TEST(test_inferred_pools)
{
	static const frag_addr_t S0 = S, S1 = S + 64 * MIB;
	const struct frag_raw_entry list[] = {
		ENTRY(SEGMENT_ALLOC, S0, 20 * MIB),
		ENTRY(ALLOC, S0, 2 * MIB),
		ENTRY(SEGMENT_ALLOC, S1, 20 * MIB),
		ENTRY(ALLOC, S1, 3 * MIB),
		ENTRY(ALLOC, S0 + 2 * MIB, 4 * MIB),
		ENTRY(ALLOC, S1 + 3 * MIB, 2 * MIB),
		ENTRY(FREE, S0, 2 * MIB),
		ENTRY(FREE, S0 + 2 * MIB, 4 * MIB),
		ENTRY(SEGMENT_FREE, S0, 20 * MIB), /* empty_cache: S1 is in use */
		ENTRY(FREE, S1, 3 * MIB),
		ENTRY(FREE, S1 + 3 * MIB, 2 * MIB),
		ENTRY(SEGMENT_FREE, S1, 20 * MIB), /* nothing names a pool any more */
	};
	struct frag_raw_dev raw = { .entries = list, .entries_count = FRAG_ARRAY_LEN(list) };
	struct frag_verify_result r;
	struct frag_trace_dev dev;

	verify_list(raw, &dev, &r);
	assert_string_equal(r.first_difference, "");
	assert_int_equal(dev.pools_count, 2);
	assert_true(dev.pools[1].a == UINT64_MAX);
	assert_int_not_equal(dev.events[0].pool, dev.events[1].pool);
	assert_int_equal(dev.events[0].pool, dev.events[2].pool);
	assert_int_equal(dev.events[1].pool, dev.events[3].pool);
	frag_verify_result_release(&r);
	frag_trace_dev_release(&dev);
}

/* A pool that the file names is taken as it is, whatever else would explain the history. */
TEST(test_named_pools)
{
	static const struct frag_pool_id pools[] = { { 0, 0 }, { 7, 0 }, { 0, 3 } };
	struct frag_raw_entry list[] = {
		ENTRY(SEGMENT_ALLOC, S, 2 * MIB),
		ENTRY(ALLOC, S, 512),
		ENTRY(SEGMENT_ALLOC, S + 4 * MIB, 2 * MIB),
		ENTRY(ALLOC, S + 4 * MIB, 512),
		ENTRY(FREE, S, 512),
		ENTRY(FREE, S + 4 * MIB, 512),
		ENTRY(SEGMENT_FREE, S + 4 * MIB, 2 * MIB),
		ENTRY(SEGMENT_FREE, S, 2 * MIB),
	};
	static const uint16_t of[] = { 0, 0, 2, 2, 0, 2, 2, 0 };
	struct frag_raw_dev raw = { .entries = list,
				    .entries_count = FRAG_ARRAY_LEN(list),
				    .pools = pools,
				    .pools_count = 3 };
	struct frag_verify_result r;
	struct frag_trace_dev dev;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(list); i++)
		list[i].pool = of[i];
	verify_list(raw, &dev, &r);
	assert_string_equal(r.first_difference, "");
	assert_int_equal(dev.pools_count, 3);
	assert_int_equal(dev.events[0].pool, 0);
	assert_int_equal(dev.events[1].pool, 2);
	frag_verify_result_release(&r);
	frag_trace_dev_release(&dev);
}

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

static void descending_releases(size_t pairs)
{
	struct frag_raw_entry *list = descending_list(pairs);
	struct frag_raw_dev raw = { .entries = list, .entries_count = 8 * pairs };
	struct frag_verify_result r;
	struct frag_trace_dev dev;

	verify_list(raw, &dev, &r);
	assert_string_equal(r.first_difference, "");
	assert_true(r.identical);
	assert_int_equal(r.segments_same, 4 * pairs);
	assert_int_equal(r.pools, 1);
	frag_verify_result_release(&r);
	frag_trace_dev_release(&dev);
	free(list);
}

TEST(test_descending_releases)
{
	descending_releases(1);
	descending_releases(40);
	descending_releases(200);
}

/* ---- what it costs, in events that are followed ---- */

/* What resolving takes of `steps`. */
static uint64_t cost_of(struct frag_raw_dev raw, uint64_t steps, struct resolve_try *t)
{
	static const uint64_t stream = 0;
	struct frag_trace_dev dev;
	struct frag_trace trace = {
		.name = (char *)"made", .devs = &dev, .devs_count = 1, .settings = no_settings
	};
	struct frag_err err = { 0 };

	raw.recorded_count = raw.entries_count;
	raw.streams = &stream;
	raw.streams_count = 1;
	*t = (struct resolve_try){ .limit_bytes = UINT64_MAX };
	if (frag_build_dev(&raw, &dev, &err))
		fail_msg("%s", err.msg);
	t->steps = steps ? steps : resolve_steps(&dev);
	steps = t->steps;
	if (resolve_try(&trace, 0, NULL, t, &err))
		fail_msg("%s", err.msg);
	frag_trace_dev_release(&dev);
	return steps - t->steps;
}

/* n pairs, each of two pools, take no more rounds than one pair does. */
TEST(test_rounds_do_not_grow)
{
	for (size_t pairs = 1; pairs <= 1000; pairs *= 10) {
		struct frag_raw_entry *list = descending_list(pairs);
		struct frag_raw_dev raw = { .entries = list, .entries_count = 8 * pairs };
		struct resolve_try t;

		assert_true(cost_of(raw, 0, &t) <= 4 * 8 * pairs);
		assert_int_equal(t.outcome, RESOLVE_SAME);
		free(list);
	}
}

/*
 * Each of n requests is served from a segment of its own although all others have room: every
 * two are of different pools, which takes n * n / 2 rounds. It ends where the steps do.
 */
TEST(test_cost_is_bounded)
{
	struct frag_raw_entry list[2 * 30];
	struct frag_raw_dev raw = { .entries = list, .entries_count = FRAG_ARRAY_LEN(list) };
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

/* ---- limits: recordings with one, which the file does not name ---- */

static void settle_file(const char *path, uint64_t total_bytes, double fraction, uint64_t peak)
{
	struct frag_trace *t = NULL;
	struct frag_err err = { 0 };
	const struct frag_settled *s;

	if (access(path, R_OK))
		return;
	if (frag_trace_read(path, NULL, &t, &err) || frag_settle(t, NULL, UINT64_MAX, false, &err))
		fail_msg("%s", err.msg);
	s = &t->devs[0].settled;
	assert_true(s->checked);
	assert_string_equal(s->difference, "");
	assert_true(s->identical);
	assert_int_equal(s->peak_bytes, peak);
	if (fraction > 0) {
		uint64_t limit = (uint64_t)(fraction * (double)total_bytes);

		assert_int_equal(s->limit_source, FRAG_LIMIT_INFERRED);
		assert_true(s->limit_low_bytes <= s->limit_bytes);
		assert_true(s->limit_bytes <= s->limit_high_bytes);
		assert_true(s->limit_low_bytes <= limit && limit <= s->limit_high_bytes);
	} else {
		assert_int_equal(s->limit_source, FRAG_LIMIT_NONE);
		assert_true(s->limit_bytes == UINT64_MAX);
	}
	frag_trace_destroy(t);
}

#define H200 150109880320ull
#define TORCH FRAG_SHARED_TRACES "/torch/"

TEST(test_limits)
{
	if (access(TORCH "gnn.gc.pickle.xz", R_OK))
		skip();
	settle_file(TORCH "gnn.gc.pickle.xz", H200, 0.09, 10529800192);
	settle_file(TORCH "varlen.gc.pickle.xz", H200, 0.2, 24352129024);
	settle_file(TORCH "oomcap.default.pickle.xz", 8053063680, 1, 8053063680);
	settle_file(TORCH "oomcap.expandable.pickle.xz", 8053063680, 1, 8057257984);
	settle_file(TORCH "gnn.late.pickle.xz", H200, 0, 15493758976);
	settle_file(TORCH "streams.default.pickle.xz", H200, 0, 4720689152);
	settle_file(FRAG_SHARED_TRACES "/versions/2.11.0.oom.gc.pickle.xz", 6442450944, 1,
		    6438256640);
}

/* A wrong limit that is given, and nothing else may be tried: different. */
TEST(test_given_limit)
{
	struct frag_trace *t = NULL;

	assert_int_equal(frag_trace_read("traces/oomcap.default.cft", NULL, &t, NULL), 0);
	assert_int_equal(frag_settle(t, NULL, 8 * FRAG_GIB, true, NULL), 0);
	assert_false(t->devs[0].settled.identical);
	assert_int_equal(t->devs[0].settled.limit_source, FRAG_LIMIT_GIVEN);
	assert_string_not_equal(t->devs[0].settled.difference, "");
	/* anything else may: the one that was there is found */
	assert_int_equal(frag_settle(t, NULL, 8 * FRAG_GIB, false, NULL), 0);
	assert_true(t->devs[0].settled.identical);
	assert_true(t->devs[0].settled.limit_bytes < 8 * FRAG_GIB);
	assert_int_equal(t->devs[0].settled.refused_count, 9);
	frag_trace_destroy(t);
}
