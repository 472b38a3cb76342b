/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of `cufrag info`, against values computed by hand. */
#include "test.h"

#include "explain/info/info.h"
#include "sample_trace.h"

static void scan(struct frag_info *info, const struct frag_trace_dev *dev, size_t at_a_time)
{
	frag_info_init(info, dev);
	for (size_t i = 0; i < dev->events_count; i += at_a_time)
		assert_int_equal(frag_info_add(info, dev->events + i,
					       FRAG_MIN(at_a_time, dev->events_count - i), NULL),
				 0);
}

/* The trace by hand: seeds 1000 and 5000, then 77 and 2^48-1; see sample_trace.c. */
TEST(test_by_hand)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = sample_trace_small();
	struct frag_info info;

	for (size_t at_a_time = 1; at_a_time <= 12; at_a_time++) {
		scan(&info, &t->devs[0], at_a_time);
		assert_int_equal(info.events, 12);
		assert_int_equal(info.kinds[FRAG_EV_ALLOC], 4);
		assert_int_equal(info.kinds[FRAG_EV_FREE_COMPLETED], 2);
		assert_int_equal(info.kinds[FRAG_EV_MARK], 2);
		assert_int_equal(info.initial_blocks_count, 2);
		assert_int_equal(info.initial_bytes, 6000);
		assert_int_equal(info.unsure_count, 1);
		assert_int_equal(info.steps_count, 0);
		assert_int_equal(info.duration_us, (1ull << 40) - 1);
		/* 1024 + 512 + 2^48 at the fourth alloc */
		assert_int_equal(info.peak.bytes, 1536 + (1ull << 48));
		assert_int_equal(info.peak.requested_bytes, 1077 + FRAG_MAX_REQUEST);
		assert_int_equal(info.peak.blocks_count, 3);
		assert_int_equal(info.peak.event, 4);
		assert_int_equal(info.peak.time_us, 300);
		assert_int_equal(info.live.bytes, 1ull << 48);
		assert_int_equal(info.kept_count, 1);
		/* lifetimes in events: 5000 from 1 to 2, 77 from 3 to 6, 1000 from 0 to 11 */
		assert_int_equal(info.life_events.count, 3);
		assert_int_equal(info.life_events.min, 1);
		assert_int_equal(frag_hist_quantile(&info.life_events, 0.5), 3);
		assert_int_equal(info.life_events.max, 11);
		assert_int_equal(info.class_count[0], 1);
		assert_int_equal(info.class_count[1], 1);
		assert_int_equal(info.class_count[2], 1);
		assert_int_equal(info.class_count[9], 1);
		frag_info_release(&info);
	}
}

TEST(test_marks)
{
	static const struct {
		uint32_t name;
		uint8_t flags;
	} marks[] = { { 3, FRAG_EVF_STEP },
		      { 3, FRAG_EVF_STEP | FRAG_EVF_END },
		      { 1, 0 },
		      { 2, 0 },
		      { 2, FRAG_EVF_END },
		      { 2, 0 },
		      { 200, 0 },
		      { 200, 0 },
		      { 200, 0 } };
	struct frag_event events[FRAG_ARRAY_LEN(marks)] = { 0 };
	struct frag_trace_dev dev = { .events = events, .events_count = FRAG_ARRAY_LEN(marks) };
	uint32_t names[3], counts[3];
	struct frag_info info;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(marks); i++)
		events[i] = (struct frag_event){ .kind = FRAG_EV_MARK,
						 .slot = marks[i].name,
						 .flags = marks[i].flags };
	scan(&info, &dev, 2);
	assert_int_equal(info.steps_count, 1);
	assert_int_equal(frag_info_marks(&info, 2, names, counts), 2);
	assert_int_equal(names[0], 200);
	assert_int_equal(counts[0], 3);
	assert_int_equal(names[1], 2);
	assert_int_equal(counts[1], 2);
	assert_int_equal(frag_info_marks(&info, 3, names, counts), 3);
	frag_info_release(&info);
	scan(&info, &dev, 100);
	frag_info_release(&info);
}
