/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories that began late: what their choices show of the state that they began with is found; a
 * difference that no such state explains is one; what is left open is undetermined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <frag/replay.h>
#include <frag/torch.h>

#include "trace/build/build.h"
#include "verify/follow.h"

#define MIB FRAG_MIB
#define S 0x7f0000000000ull
#define S1 (S + 64 * MIB)
#define S2 (S + 128 * MIB)
#define R 0x302000000ull /* a reservation, with pages of 20 MiB */
#define P (20 * MIB)
#define ENTRY(kind, at, size) \
	{ \
		.addr = (at), .bytes = (size), .action = FRAG_RAW_##kind, .pool = FRAG_RAW_NO_POOL \
	}

struct story {
	const struct frag_raw_entry *list;
	size_t count;
	const struct frag_raw_segment *segments;
	size_t segments_count;
	const struct frag_final_block *blocks;
	const char *conf;
	unsigned release;
	uint64_t limit_bytes; /* 0 = none */
	double gc_threshold;
};

/* A replay of what was recorded that begins as it began reserves as much as it did. */
static void replays(const struct frag_trace *trace, const struct frag_sim_config *card)
{
	const struct frag_trace_dev *dev = &trace->devs[0];
	struct frag_run_options opt;
	struct frag_policy_spec *spec;
	struct frag_result r = { 0 };

	frag_run_options_defaults(&opt);
	opt.limit_bytes = dev->settled.limit_bytes;
	opt.restore = true;
	assert_int_equal(follow_spec(trace, NULL, &spec, NULL), 0);
	assert_int_equal(frag_replay_sim(spec, card, dev, &opt, &r, NULL), 0);
	assert_int_equal(r.m.peak_reserved_bytes, dev->settled.peak_bytes);
	frag_result_release(&r);
	frag_policy_spec_destroy(spec);
}

/* Settles the history: "identical", "undetermined" or "different", and the event. */
static const char *told(const struct story *t, uint64_t *event)
{
	static const uint64_t stream = 0;
	struct frag_trace_settings settings = { .present = true,
						.conf = (char *)t->conf,
						.max_split_bytes = UINT64_MAX,
						.gc_threshold = t->gc_threshold,
						.limit_bytes = UINT64_MAX };
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_raw_dev raw = { .entries = t->list,
				    .entries_count = t->count,
				    .recorded_count = t->count,
				    .streams = &stream,
				    .streams_count = 1,
				    .finals_known = true,
				    .segments = t->segments,
				    .segments_count = t->segments_count,
				    .blocks = t->blocks,
				    .settings = &settings };
	uint64_t limit = t->limit_bytes ? t->limit_bytes : UINT64_MAX;
	struct frag_verify_result r;
	struct frag_trace_dev dev;
	struct frag_trace trace = {
		.name = (char *)"made", .devs = &dev, .devs_count = 1, .settings = settings
	};
	struct frag_err err = { 0 };
	const char *word;
	char text[600];

	if (frag_build_dev(&raw, &dev, &err))
		fail_msg("%s", err.msg);
	frag_trace_set_torch(&trace, t->release, t->release);
	if (frag_settle(&trace, &card, limit, t->limit_bytes != 0, &err) ||
	    frag_verify(&trace, 0, &card, limit, NULL, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(r.identical, dev.settled.identical);
	assert_int_equal(r.undetermined, dev.settled.undetermined);
	frag_settled_text(&dev.settled, text, sizeof(text));
	assert_int_equal(strncmp(text, "undetermined from event", 23) == 0, r.undetermined);
	if (event)
		*event = dev.settled.event;
	if (r.identical && dev.initial.segments_count)
		replays(&trace, &card);
	word = r.identical ? "identical" : r.undetermined ? "undetermined" : "different";
	frag_verify_result_release(&r);
	frag_trace_dev_release(&dev);
	return word;
}

static const struct frag_final_block two_free[] = { { S, P, 0, FRAG_STATE_FREE },
						    { S1, P, 0, FRAG_STATE_FREE } };
static const struct frag_raw_segment two_segments[] = {
	{ S, P, 0, 1, 0, 0, false, false },
	{ S1, P, 1, 1, 0, 0, false, false },
};

/* From 2.12 on choices show the order of two free segments, and may not take it back. */
static void test_order(void **state)
{
	static const struct frag_raw_entry list[] = {
		ENTRY(ALLOC, S1, 15 * MIB), ENTRY(FREE, S1, 15 * MIB), ENTRY(ALLOC, S1, 15 * MIB),
		ENTRY(FREE, S1, 15 * MIB),  ENTRY(ALLOC, S, 15 * MIB), ENTRY(FREE, S, 15 * MIB),
	};
	struct story t = { .list = list,
			   .count = 4,
			   .segments = two_segments,
			   .segments_count = 2,
			   .blocks = two_free,
			   .conf = "",
			   .release = FRAG_TORCH(2, 13) };
	uint64_t event;

	(void)state;
	assert_string_equal(told(&t, NULL), "identical");
	t.count = 6;
	assert_string_equal(told(&t, &event), "different");
	assert_int_equal(event, 4);
	/* before, the lower address comes first */
	t.release = FRAG_TORCH(2, 11);
	t.count = 4;
	assert_string_equal(told(&t, &event), "different");
	assert_int_equal(event, 0);
}

/* In 2.12 each block has its own number, also those that come from one segment. */
static void test_order_of_blocks(void **state)
{
	static const struct frag_final_block blocks[] = {
		{ S, 2 * MIB, 0, FRAG_STATE_FREE },
		{ S + 2 * MIB, 4 * MIB, 4 * MIB, FRAG_STATE_LIVE },
		{ S + 6 * MIB, 2 * MIB, 0, FRAG_STATE_FREE },
		{ S + 8 * MIB, 12 * MIB, 12 * MIB, FRAG_STATE_LIVE },
	};
	static const struct frag_raw_segment segments[] = { { S, P, 0, 4, 0, 0, false, false } };
	static const struct frag_raw_entry list[] = { ENTRY(ALLOC, S + 6 * MIB, 2 * MIB),
						      ENTRY(FREE, S + 6 * MIB, 2 * MIB) };
	struct story t = { .list = list,
			   .count = 2,
			   .segments = segments,
			   .segments_count = 1,
			   .blocks = blocks,
			   .conf = "",
			   .release = FRAG_TORCH(2, 12) };

	(void)state;
	assert_string_equal(told(&t, NULL), "identical");
	/* from 2.13 on blocks of one segment go by address */
	t.release = FRAG_TORCH(2, 13);
	assert_string_equal(told(&t, NULL), "different");
}

/*
 * Of three free segments one is collected. None has been touched since the start, so any may be the
 * oldest; a block that was freed later never is.
 */
static void test_ages(void **state)
{
	static const struct frag_raw_segment segments[] = {
		{ S, P, 0, 1, 0, 0, false, false },
		{ S2, P, 1, 1, 0, 0, false, false },
		{ S2 + 64 * MIB, 40 * MIB, 2, 1, 0, 0, false, false },
	};
	static const struct frag_final_block blocks[] = { { S, P, 0, FRAG_STATE_FREE },
							  { S2, P, 0, FRAG_STATE_FREE },
							  { S2 + 64 * MIB, 40 * MIB, 40 * MIB,
							    FRAG_STATE_LIVE } };
	static const struct frag_raw_entry list[] = { ENTRY(SEGMENT_FREE, S1, P),
						      ENTRY(SEGMENT_ALLOC, S2 + 64 * MIB, 40 * MIB),
						      ENTRY(ALLOC, S2 + 64 * MIB, 40 * MIB) };
	static const struct frag_raw_entry used[] = {
		ENTRY(ALLOC, S1, 15 * MIB), ENTRY(FREE, S1, 15 * MIB), ENTRY(SEGMENT_FREE, S1, P),
		ENTRY(SEGMENT_ALLOC, S2 + 64 * MIB, 40 * MIB), ENTRY(ALLOC, S2 + 64 * MIB, 40 * MIB)
	};
	struct story t = { .list = list,
			   .count = FRAG_ARRAY_LEN(list),
			   .segments = segments,
			   .segments_count = 3,
			   .blocks = blocks,
			   .conf = "garbage_collection_threshold:0.5",
			   .release = FRAG_TORCH(2, 13),
			   .limit_bytes = 100 * MIB,
			   .gc_threshold = 0.5 };

	(void)state;
	assert_string_equal(told(&t, NULL), "identical");
	t.list = used;
	t.count = FRAG_ARRAY_LEN(used);
	assert_string_equal(told(&t, NULL), "different");
}

/* The first page of the reservation had been given back: a page is mapped there later. */
static void test_base(void **state)
{
	static const struct frag_raw_segment segments[] = { { R, 2 * P, 0, 2, 0, 0, false, true } };
	static const struct frag_final_block blocks[] = { { R, P, P, FRAG_STATE_LIVE },
							  { R + P, P, P, FRAG_STATE_LIVE } };
	static const struct frag_raw_entry list[] = { ENTRY(SEGMENT_MAP, R, P),
						      ENTRY(ALLOC, R, P) };
	struct story t = { .list = list,
			   .count = 2,
			   .segments = segments,
			   .segments_count = 1,
			   .blocks = blocks,
			   .conf = "expandable_segments:True",
			   .release = FRAG_TORCH(2, 11) };

	(void)state;
	assert_string_equal(told(&t, NULL), "identical");
}

/* Pages beyond others that were free: there may have been a reservation that nothing tells of. */
static void test_open_pages(void **state)
{
	static const struct frag_raw_segment segments[] = {
		{ R, 2 * P, 0, 1, 0, 0, false, true },
		{ R + 5 * P, P, 1, 1, 0, 0, false, true },
	};
	static const struct frag_final_block blocks[] = { { R, 2 * P, 2 * P, FRAG_STATE_LIVE },
							  { R + 5 * P, P, P, FRAG_STATE_LIVE } };
	static const struct frag_raw_entry list[] = { ENTRY(SEGMENT_MAP, R + 5 * P, P),
						      ENTRY(ALLOC, R + 5 * P, P) };
	struct story t = { .list = list,
			   .count = 2,
			   .segments = segments,
			   .segments_count = 2,
			   .blocks = blocks,
			   .conf = "expandable_segments:True",
			   .release = FRAG_TORCH(2, 11) };
	uint64_t event;

	(void)state;
	assert_string_equal(told(&t, &event), "undetermined");
	assert_int_equal(event, 1);
	/* a segment of another kind is no matter of what was there */
	t.conf = "";
	assert_string_equal(told(&t, NULL), "different");
}

/* How long the first block is nobody recorded, and the request came to lie just behind it. */
static void test_open_size(void **state)
{
	static const struct frag_final_block blocks[] = { { S, P, 0, FRAG_STATE_FREE },
							  { S1, P, 0, FRAG_STATE_FREE } };
	static const struct frag_raw_entry list[] = {
		ENTRY(ALLOC, S1, 16 * MIB + MIB / 2), /* S has room, unless its block is longer … */
		ENTRY(ALLOC, S + 3 * MIB, 2 * MIB),   /* … which it is not */
		ENTRY(FREE, S + 3 * MIB, 2 * MIB),    ENTRY(FREE, S, 3 * MIB),
		ENTRY(FREE, S1, 16 * MIB + MIB / 2),
	};
	/* far too large to be hidden behind it */
	static const struct frag_raw_entry other[] = { ENTRY(ALLOC, S1, 5 * MIB),
						       ENTRY(FREE, S, 3 * MIB),
						       ENTRY(FREE, S1, 5 * MIB) };
	struct story t = { .list = list,
			   .count = FRAG_ARRAY_LEN(list),
			   .segments = two_segments,
			   .segments_count = 2,
			   .blocks = blocks,
			   .conf = "",
			   .release = FRAG_TORCH(2, 11) };

	(void)state;
	assert_string_equal(told(&t, NULL), "different");
	t.list = other;
	t.count = FRAG_ARRAY_LEN(other);
	assert_string_equal(told(&t, NULL), "different");
}

/* Taken from the segment that something else lives in, so that the other can go before the next is asked for. */
static void test_order_decides_the_peak(void **state)
{
	static const struct frag_final_block blocks[] = { { S1, P, P, FRAG_STATE_LIVE },
							  { S1 + P, P, P, FRAG_STATE_LIVE },
							  { S2 + P, 3 * P, 3 * P,
							    FRAG_STATE_LIVE } };
	static const struct frag_raw_segment segments[] = {
		{ S1, 2 * P, 0, 2, 0, 0, false, false },
		{ S2 + P, 3 * P, 2, 1, 0, 0, false, false },
	};
	static const struct frag_raw_entry list[] = { ENTRY(ALLOC, S1 + P, P),
						      ENTRY(SEGMENT_FREE, S, P),
						      ENTRY(SEGMENT_ALLOC, S2 + P, 3 * P),
						      ENTRY(ALLOC, S2 + P, 3 * P) };
	struct story t = { .list = list,
			   .count = FRAG_ARRAY_LEN(list),
			   .segments = segments,
			   .segments_count = 2,
			   .blocks = blocks,
			   .conf = "",
			   .release = FRAG_TORCH(2, 13) };

	(void)state;
	assert_string_equal(told(&t, NULL), "identical");
	t.release = FRAG_TORCH(2, 12);
	assert_string_equal(told(&t, NULL), "identical");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_of_blocks),
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_open_pages),
		cmocka_unit_test(test_open_size),
		cmocka_unit_test(test_order_decides_the_peak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
