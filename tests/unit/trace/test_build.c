/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded entries to events: the grammar case by case, and what contradicts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/build/build.h"

#define MIB FRAG_MIB
#define S0 0x700000000000ull
#define S1 0x710000000000ull
#define S2 0x720000000000ull

#define E(kind, at, size) \
	{ \
		.addr = (at), .bytes = (size), .time_us = 100, .action = FRAG_RAW_##kind, \
		.pool = FRAG_RAW_NO_POOL \
	}
#define E_ON(kind, at, size, on) \
	{ \
		.addr = (at), .bytes = (size), .time_us = 100, .action = FRAG_RAW_##kind, \
		.stream = (on), .pool = FRAG_RAW_NO_POOL \
	}

static const uint64_t handles[] = { 0, 900, 500, 700 };

static const struct frag_pool_id pools[] = { { 0, 0 }, { 3, 0 }, { 0, 7 } };

static struct frag_raw_dev raw_of(const struct frag_raw_entry *e, size_t n)
{
	return (struct frag_raw_dev){ .entries = e,
				      .entries_count = n,
				      .recorded_count = n,
				      .streams = handles,
				      .streams_count = 4,
				      .pools_count = 1,
				      .pools = pools,
				      .start_us = 100 };
}

/* Requests without a segment are no evidence: there is nothing to compare a replay with. */
static bool took_segments(const struct frag_raw_dev *raw)
{
	for (size_t i = 0; i < raw->entries_count; i++)
		if (raw->entries[i].action >= FRAG_RAW_SEGMENT_ALLOC &&
		    raw->entries[i].action <= FRAG_RAW_SEGMENT_UNMAP)
			return true;
	return false;
}

static struct frag_trace_dev build(const struct frag_raw_dev *raw)
{
	struct frag_trace_dev dev;
	struct frag_err err = { 0 };

	if (frag_build_dev(raw, &dev, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(dev.has_evidence, took_segments(raw) || dev.final_segments_count ||
						   dev.initial.segments_count || !dev.events_count);
	return dev;
}

/* Events as letters: Alloc Free Requested Completed(s: at sync) Trim oOm Mark. */
static void expect(const struct frag_raw_entry *e, size_t n, const char *letters,
		   const char *evidence)
{
	struct frag_raw_dev raw = raw_of(e, n);
	struct frag_trace_dev dev = build(&raw);
	char got[256] = "", seen[512] = "";

	for (size_t i = 0; i < dev.events_count; i++) {
		const struct frag_event *ev = &dev.events[i];
		char c = "AFRCTOM"[ev->kind];

		got[i] = ev->kind == FRAG_EV_FREE_COMPLETED && ev->flags & FRAG_EVF_AT_SYNC ? 's'
											    : c;
		assert_true((dev.addrs[i] != FRAG_NO_ADDR) == (ev->kind == FRAG_EV_ALLOC));
	}
	for (size_t i = 0; i < dev.seen_count; i++) {
		const struct frag_evidence *s = &dev.seen[i];
		char one[32];

		snprintf(one, sizeof(one), "%c%llu ", "afmuos"[s->kind],
			 (unsigned long long)s -> before);
		strcat(seen, one);
	}
	assert_string_equal(got, letters);
	assert_string_equal(seen, evidence);
	frag_trace_dev_release(&dev);
}
#define EXPECT(list, letters, evidence) expect(list, FRAG_ARRAY_LEN(list), letters, evidence)

static void expect_fail(const struct frag_raw_entry *e, size_t n, uint64_t at, const char *says)
{
	struct frag_raw_dev raw = raw_of(e, n);
	struct frag_trace_dev dev;
	struct frag_err err = { 0 };

	assert_int_equal(frag_build_dev(&raw, &dev, &err), FRAG_EINPUT);
	if (!strstr(err.msg, says))
		fail_msg("'%s' does not say '%s'", err.msg, says);
	assert_int_equal(err.offset, at);
	assert_null(dev.events);
}
#define EXPECT_FAIL(list, at, says) expect_fail(list, FRAG_ARRAY_LEN(list), at, says)

/* ---- grammar ---------------------------------------------------------------------- */

static void test_plain_operations(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(SEGMENT_ALLOC, S0, 2 * MIB),
		E(ALLOC, S0, 100),
		E(ALLOC, S0 + 512, 600),
		E(FREE, S0, 100),
		E(ALLOC, S0, 200),
		E(FREE, S0 + 512, 600),
		E(FREE, S0, 200),
	};

	(void)state;
	EXPECT(list, "AAFAFF", "a0 ");
}

static void test_slots(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(ALLOC, 1 << 10, 1), E(ALLOC, 2 << 10, 2), E(ALLOC, 3 << 10, 3),
		E(FREE, 1 << 10, 1),  E(FREE, 3 << 10, 3),  E(ALLOC, 4 << 10, 4),
		E(ALLOC, 5 << 10, 5), E(ALLOC, 6 << 10, 6), E(FREE, 2 << 10, 2),
	};
	static const uint32_t slots[] = { 0, 1, 2, 0, 2, 2, 0, 3, 1 };
	static const uint64_t bytes[] = { 1, 2, 3, 1, 3, 4, 5, 6, 2 };
	struct frag_raw_dev raw = raw_of(list, FRAG_ARRAY_LEN(list));
	struct frag_trace_dev dev = build(&raw);

	(void)state;
	assert_int_equal(dev.events_count, FRAG_ARRAY_LEN(slots));
	for (size_t i = 0; i < dev.events_count; i++) {
		assert_int_equal(dev.events[i].slot, slots[i]);
		assert_int_equal(dev.events[i].bytes, bytes[i]);
	}
	assert_int_equal(dev.slots_count, 4);
	frag_trace_dev_release(&dev);
}

static void test_deferred_frees(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(SEGMENT_ALLOC, S0, 2 * MIB),
		E(ALLOC, S0, 512),
		E(ALLOC, S0 + 512, 512),
		E(FREE_REQUESTED, S0, 512),
		E(FREE_REQUESTED, S0 + 512, 512),
		/* the next malloc completes both, then takes a segment */
		E(FREE_COMPLETED, S0, 512),
		E(FREE_COMPLETED, S0 + 512, 512),
		E(SEGMENT_ALLOC, S1, 20 * MIB),
		E(ALLOC, S1, 2 * MIB),
	};

	(void)state;
	EXPECT(list, "AARRCCA", "a0 a6 ");
}

/* Completions behind a release were made by the malloc that released. */
static void test_synchronised_frees(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(ALLOC, S0, 512),
		E(ALLOC, S1, 512),
		E(FREE_REQUESTED, S0, 512),
		E(FREE_REQUESTED, S1, 512),
		E(FREE_COMPLETED, S0, 512),
		E(SEGMENT_FREE, S2, 20 * MIB),
		E(FREE_COMPLETED, S1, 512),
		E(SEGMENT_FREE, S1, 2 * MIB),
		E(SEGMENT_ALLOC, S1, 30 * MIB),
		E(ALLOC, S1, 30 * MIB),
	};

	(void)state;
	EXPECT(list, "AARRCsA", "f6 f6 a6 ");
}

static void test_empty_cache(void **state)
{
	/* followed by a free, by an alloc that needs no segment, by the end */
	static const struct frag_raw_entry before_free[] = {
		E(ALLOC, S0, 512),
		E(ALLOC, S1, 512),
		E(FREE_REQUESTED, S0, 512),
		E(FREE_COMPLETED, S0, 512),
		E(SEGMENT_FREE, S2, 2 * MIB),
		E(SEGMENT_FREE, S0, 2 * MIB),
		E(FREE, S1, 512),
	};
	static const struct frag_raw_entry before_alloc[] = {
		E(ALLOC, S0, 512),
		E(SEGMENT_FREE, S2, 2 * MIB),
		E(ALLOC, S0 + 512, 512),
	};
	static const struct frag_raw_entry at_end[] = {
		E(ALLOC, S0, 512),
		E(FREE, S0, 512),
		E(SEGMENT_UNMAP, S0, 2 * MIB),
	};

	(void)state;
	EXPECT(before_free, "AARCTF", "f4 f4 ");
	EXPECT(before_alloc, "ATA", "f1 ");
	EXPECT(at_end, "AFT", "u2 ");
}

/* A release in front of a new segment, or of an oom, may be the malloc's own. */
static void test_ambiguous_releases(void **state)
{
	static const struct frag_raw_entry grown[] = {
		E(ALLOC, S0, 512),
		E(SEGMENT_FREE, S2, 2 * MIB),
		E(SEGMENT_ALLOC, S1, 20 * MIB),
		E(ALLOC, S1, 2 * MIB),
	};
	static const struct frag_raw_entry refused[] = {
		E(ALLOC, S0, 512),
		E(SEGMENT_FREE, S2, 2 * MIB),
		E(OOM, 12345, 1 << 30),
		E(FREE, S0, 512),
	};
	static const struct frag_raw_entry failed_map[] = {
		E(ALLOC, S0, 512),
		E(SEGMENT_MAP, S2, 20 * MIB),
		E(SEGMENT_UNMAP, S2, 20 * MIB),
		E(SEGMENT_MAP, S2, 40 * MIB),
		E(ALLOC, S2, 30 * MIB),
	};

	(void)state;
	EXPECT(grown, "AA", "f1 a1 ");
	EXPECT(refused, "AOF", "f1 o1 ");
	EXPECT(failed_map, "AA", "m1 u1 m1 ");
}

static void test_oom(void **state)
{
	static const struct frag_raw_entry list[] = {
		E_ON(OOM, 777, 1 << 20, 1),
		E(OOM, 778, 1ull << 60),
	};
	struct frag_raw_dev raw = raw_of(list, 2);
	struct frag_trace_dev dev = build(&raw);

	(void)state;
	assert_int_equal(dev.events_count, 2);
	assert_int_equal(dev.events[0].kind, FRAG_EV_REFUSED);
	assert_int_equal(dev.events[0].bytes, 1 << 20);
	assert_int_equal(dev.streams[dev.events[0].stream], 900);
	assert_int_equal(dev.seen[0].addr, 777);
	/* more than an event can say: as much as it can; the evidence keeps it all */
	assert_true(dev.events[1].bytes == FRAG_MAX_REQUEST);
	assert_true(dev.seen[1].bytes == 1ull << 60);
	frag_trace_dev_release(&dev);
}

static void test_snapshots_and_unknown_kinds(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(OTHER, 1, 2),
		E(SNAPSHOT, 0, 0),
		E(ALLOC, S0, 512),
		E(OTHER, S0, 512),
		E(SNAPSHOT, 0, 512),
		E(FREE_REQUESTED, S0, 512),
		E(FREE_COMPLETED, S0, 512),
		E(SNAPSHOT, 0, 0),
		E(SEGMENT_FREE, S0, 2 * MIB),
	};

	(void)state;
	EXPECT(list, "ARCT", "s0 s1 s3 f3 ");
}

/* Recorded with skip_actions: one kind of free does for both. */
static void test_one_kind_of_free(void **state)
{
	static const struct frag_raw_entry requested[] = {
		E(ALLOC, S0, 512),
		E(FREE_REQUESTED, S0, 512),
		E(ALLOC, S0, 512),
	};
	static const struct frag_raw_entry completed[] = {
		E(ALLOC, S0, 512),
		E(FREE_COMPLETED, S0, 512),
		E(ALLOC, S0, 512),
	};

	(void)state;
	EXPECT(requested, "AFA", "");
	EXPECT(completed, "AFA", "");
}

/* A capture of a graph: nothing completes, and at the end all still wait. */
static void test_all_wait(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(ALLOC, S0, 512),
		E(FREE_REQUESTED, S0, 512),
		E(ALLOC, S0 + 512, 512),
	};
	struct frag_final_block blocks[] = { { S0, 512, 512, FRAG_STATE_WAITING },
					     { S0 + 512, 512, 512, FRAG_STATE_LIVE },
					     { S0 + 1024, 2 * MIB - 1024, 0, FRAG_STATE_FREE } };
	const struct frag_raw_segment segment = {
		.addr = S0, .bytes = 2 * MIB, .blocks_count = 3, .small = true
	};
	struct frag_raw_dev raw = raw_of(list, 3);
	struct frag_trace_dev dev;

	(void)state;
	raw.finals_known = true;
	raw.segments = &segment;
	raw.segments_count = 1;
	raw.blocks = blocks;
	dev = build(&raw);
	assert_int_equal(dev.events[dev.events_count - 2].kind, FRAG_EV_FREE_REQUESTED);
	assert_int_equal(dev.events[dev.events_count - 1].kind, FRAG_EV_ALLOC);
	frag_trace_dev_release(&dev);
	/* it is gone: completions were left out */
	blocks[0].state = FRAG_STATE_FREE;
	dev = build(&raw);
	assert_int_equal(dev.events[dev.events_count - 2].kind, FRAG_EV_FREE);
	frag_trace_dev_release(&dev);
}

static void test_streams(void **state)
{
	static const struct frag_raw_entry list[] = {
		E_ON(ALLOC, S0, 512, 1),
		E_ON(ALLOC, S1, 512, 2),
		E_ON(FREE, S0, 512, 1),
	};
	struct frag_raw_dev raw = raw_of(list, 3);
	struct frag_trace_dev dev = build(&raw);

	(void)state;
	/* ascending, with the default stream, without one that does not occur */
	assert_int_equal(dev.streams_count, 3);
	assert_int_equal(dev.streams[0], 0);
	assert_int_equal(dev.streams[1], 500);
	assert_int_equal(dev.streams[2], 900);
	assert_int_equal(dev.events[0].stream, 2);
	assert_int_equal(dev.events[1].stream, 1);
	assert_int_equal(dev.events[2].stream, 2);
	frag_trace_dev_release(&dev);
}

static void test_times_and_marks(void **state)
{
	static struct frag_raw_entry list[] = { E(ALLOC, S0, 1), E(ALLOC, S1, 1), E(FREE, S0, 1),
						E(FREE, S1, 1) };
	static const struct frag_raw_mark marks[] = {
		{ 100, 7, FRAG_EVF_STEP }, { 205, 8, 0 }, { 205, 7, FRAG_EVF_END }, { 999, 9, 0 }
	};
	static const uint64_t times[] = { 100, 210, 205, 1ull << 41 };
	static const uint64_t expected[] = { 0, 0, 105, 105, 110, 110, 899, (1ull << 40) - 1 };
	struct frag_raw_dev raw = raw_of(list, 4);
	struct frag_trace_dev dev;

	(void)state;
	for (int i = 0; i < 4; i++)
		list[i].time_us = times[i];
	raw.marks = marks;
	raw.marks_count = 4;
	dev = build(&raw);
	assert_int_equal(dev.events_count, 8);
	for (size_t i = 0; i < 8; i++)
		assert_true(dev.events[i].time_us == expected[i]);
	assert_int_equal(dev.events[0].kind, FRAG_EV_MARK);
	assert_int_equal(dev.events[0].slot, 7);
	assert_int_equal(dev.events[0].flags, FRAG_EVF_STEP);
	assert_int_equal(dev.events[3].slot, 7);
	assert_int_equal(dev.events[3].flags, FRAG_EVF_END);
	frag_trace_dev_release(&dev);
}

/* Marks never come between a malloc's segment and the malloc. */
static void test_marks_keep_out_of_groups(void **state)
{
	static struct frag_raw_entry list[] = { E(ALLOC, S0, 1), E(SEGMENT_ALLOC, S1, 2 * MIB),
						E(ALLOC, S1, 1) };
	static const struct frag_raw_mark marks[] = { { 150, 7, 0 }, { 250, 8, 0 } };
	struct frag_raw_dev raw = raw_of(list, 3);
	struct frag_trace_dev dev;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		list[i].time_us = 100 * (i + 1);
	raw.marks = marks;
	raw.marks_count = 2;
	dev = build(&raw);
	assert_int_equal(dev.events_count, 4);
	assert_int_equal(dev.events[1].kind, FRAG_EV_MARK);
	assert_int_equal(dev.events[2].kind, FRAG_EV_ALLOC);
	assert_int_equal(dev.seen[0].before, 2);
	assert_int_equal(dev.events[3].kind, FRAG_EV_MARK);
	frag_trace_dev_release(&dev);
}

/* ---- pools --------------------------------------------------------------------------- */

static void test_recorded_pools(void **state)
{
	struct frag_raw_entry list[] = {
		E(ALLOC, S0, 512),
		E(ALLOC, S1, 512),
		E(FREE, S0, 512),
		E(FREE, S1, 512),
		E(SEGMENT_FREE, S2, 2 * MIB),
		E(SEGMENT_FREE, S0, 2 * MIB),
		E(SEGMENT_FREE, S1, 2 * MIB),
	};
	static const uint16_t of[] = { 0, 2, 0, 2, 0, 0, 2 };
	struct frag_raw_dev raw = raw_of(list, FRAG_ARRAY_LEN(list));
	struct frag_trace_dev dev;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(list); i++)
		list[i].pool = of[i];
	raw.pools_count = 3;
	dev = build(&raw);
	/* one TRIM per pool */
	assert_int_equal(dev.events_count, 6);
	assert_int_equal(dev.events[1].pool, 2);
	assert_int_equal(dev.events[3].pool, 2);
	assert_int_equal(dev.events[4].kind, FRAG_EV_TRIM);
	assert_int_equal(dev.events[4].pool, 0);
	assert_int_equal(dev.events[5].kind, FRAG_EV_TRIM);
	assert_int_equal(dev.events[5].pool, 2);
	assert_int_equal(dev.seen[1].before, 4);
	assert_int_equal(dev.seen[2].before, 5);
	assert_int_equal(dev.pools_count, 3);
	frag_trace_dev_release(&dev);
}

/* ---- contradictions ---------------------------------------------------------------------- */

static void test_contradictions(void **state)
{
	static const struct frag_raw_entry twice[] = { E(ALLOC, S0, 1), E(ALLOC, S0, 2) };
	static const struct frag_raw_entry zero[] = { E(ALLOC, S0, 1), E(ALLOC, S1, 0) };
	static const struct frag_raw_entry huge[] = { E(ALLOC, S0, 1ull << 48) };
	static const struct frag_raw_entry again[] = { E(ALLOC, S0, 1), E(FREE_REQUESTED, S0, 1),
						       E(FREE_REQUESTED, S0, 1),
						       E(FREE_COMPLETED, S0, 1) };
	static const struct frag_raw_entry alone[] = { E(ALLOC, S0, 1), E(FREE, S1, 1),
						       E(FREE, S1, 1) };
	static const struct frag_raw_entry late[] = { E(ALLOC, S0, 1), E(FREE, S0, 1),
						      E(ALLOC, S0, 1), E(ALLOC, S0, 1) };

	(void)state;
	EXPECT_FAIL(twice, 1, "still live");
	EXPECT_FAIL(zero, 1, "impossible size");
	EXPECT_FAIL(huge, 0, "impossible size");
	EXPECT_FAIL(again, 1, "not waiting behind it");
	EXPECT_FAIL(alone, 1, "live behind it");
	/* a FREE is two entries of the recording, and messages count as it did */
	EXPECT_FAIL(late, 4, "still live");
}

static void test_nothing(void **state)
{
	struct frag_raw_dev raw = raw_of(NULL, 0);
	struct frag_trace_dev dev = build(&raw);

	(void)state;
	assert_int_equal(dev.events_count, 0);
	assert_int_equal(dev.streams_count, 1);
	assert_int_equal(dev.pools_count, 1);
	frag_trace_dev_release(&dev);
}

static void test_out_of_memory(void **state)
{
	static const struct frag_raw_entry list[] = {
		E(SEGMENT_ALLOC, S0, 2 * MIB), E(ALLOC, S0, 100),
		E_ON(ALLOC, S1, 600, 2),       E(FREE, S0, 100),
		E(SEGMENT_FREE, S0, 2 * MIB),
	};
	int rc = FRAG_ENOMEM;

	(void)state;
	for (uint64_t n = 1; rc; n++) {
		struct frag_raw_dev raw = raw_of(list, FRAG_ARRAY_LEN(list));
		struct frag_trace_dev dev;

		raw.finals_known = true; /* S1 was there before: rewinding too */
		assert_true(n < 100);
		frag_host_fail_after(n);
		rc = frag_build_dev(&raw, &dev, NULL);
		frag_host_fail_after(0);
		assert_true(rc == 0 || rc == FRAG_ENOMEM || rc == FRAG_EINPUT);
		if (rc == FRAG_EINPUT)
			break; /* S1's block is in no segment: it got that far */
		if (!rc)
			frag_trace_dev_release(&dev);
	}
	assert_int_not_equal(rc, FRAG_ENOMEM);
}

/* A pool in which a block is much larger than what was asked for, and none is cut, never splits. */
static void test_no_split(void **state)
{
	static const struct frag_raw_entry e[] = {
		E(SEGMENT_ALLOC, S0, 20 * MIB), E(ALLOC, S0, 3 * MIB),
		E(SEGMENT_ALLOC, S1, 20 * MIB), E(ALLOC, S1, 3 * MIB),
		E(SEGMENT_ALLOC, S2, 20 * MIB), E(ALLOC, S2, 15 * MIB),
	};
	static const struct frag_final_block blocks[] = {
		{ S0, 20 * MIB, 3 * MIB, FRAG_STATE_LIVE },
		{ S1, 3 * MIB, 3 * MIB, FRAG_STATE_LIVE },
		{ S1 + 3 * MIB, 17 * MIB, 0, FRAG_STATE_FREE },
		{ S2, 20 * MIB, 15 * MIB, FRAG_STATE_LIVE },
	};
	struct frag_raw_segment segments[] = {
		{ S0, 20 * MIB, 0, 1, 0, 1, false, false },
		{ S1, 20 * MIB, 1, 2, 0, 2, false, false },
		{ S2, 20 * MIB, 3, 1, 0, 1, false, false },
	};
	struct frag_raw_dev raw = raw_of(e, FRAG_ARRAY_LEN(e));
	struct frag_trace_dev dev;

	(void)state;
	raw.pools_count = 3;
	raw.finals_known = true;
	raw.segments = segments;
	raw.segments_count = 3;
	raw.blocks = blocks;
	dev = build(&raw);
	assert_true(dev.pools[1].b & FRAG_POOL_NO_SPLIT);
	assert_false(dev.pools[2].b & FRAG_POOL_NO_SPLIT);
	assert_false(dev.pools[0].b & FRAG_POOL_NO_SPLIT);
	frag_trace_dev_release(&dev);
	/* one that is cut in the same pool says the contrary */
	segments[1].pool = 1;
	dev = build(&raw);
	assert_false(dev.pools[1].b & FRAG_POOL_NO_SPLIT);
	frag_trace_dev_release(&dev);
	/* nor is one with nothing but whole requests told */
	segments[0].pool = segments[1].pool = 2;
	dev = build(&raw);
	assert_false(dev.pools[1].b & FRAG_POOL_NO_SPLIT);
	frag_trace_dev_release(&dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_operations),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_deferred_frees),
		cmocka_unit_test(test_synchronised_frees),
		cmocka_unit_test(test_empty_cache),
		cmocka_unit_test(test_ambiguous_releases),
		cmocka_unit_test(test_oom),
		cmocka_unit_test(test_snapshots_and_unknown_kinds),
		cmocka_unit_test(test_one_kind_of_free),
		cmocka_unit_test(test_all_wait),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_times_and_marks),
		cmocka_unit_test(test_marks_keep_out_of_groups),
		cmocka_unit_test(test_recorded_pools),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_no_split),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
