/* SPDX-License-Identifier: Apache-2.0 */
/* The address-space map against a replay whose addresses are known, and its limits. */
#include "test.h"

#include "must.h"
#include "sample_report.h"

#include "report/charts/layout.h"

static const struct frag_sim_config card = { .total_bytes = 64 * GIB };

static void make(const char *policy, const struct frag_trace_dev *dev, struct frag_layout *out)
{
	AUTO_SPEC spec = must_parse_policy(policy);
	struct frag_run_options opt = default_run();

	assert_int_equal(frag_layout_make(spec, &card, dev, UINT64_MAX, &opt, out, NULL), 0);
}

static bool overlap(const struct frag_layout_box *a, const struct frag_layout_box *b)
{
	return a->low < b->high && b->low < a->high && a->from_event < b->to_event &&
	       b->from_event < a->to_event;
}

/* Inside of the sheet, and no two on the same spot. */
static void check_boxes(const struct frag_layout *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct frag_layout_box *a = &l->boxes[i];

		assert_true(a->low < a->high && a->high <= l->span_bytes);
		assert_true(a->from_event <= a->to_event);
		assert_true(a->from_us <= a->to_us);
		assert_true(a->use > FRAG_LAYOUT_NONE && a->use < FRAG_LAYOUT_USES);
		for (size_t k = 0; k < i; k++)
			assert_false(overlap(a, &l->boxes[k]));
	}
}

/* Three blocks in one segment of 20 MiB; the middle one is freed first. Looked at once a
 * microsecond, so every moment is seen. */
TEST(a_known_replay)
{
	static struct frag_event ev[] = {
		{ .time_us = 0, .bytes = 4 * MIB, .slot = 0, .kind = FRAG_EV_ALLOC },
		{ .time_us = 10, .bytes = 8 * MIB, .slot = 1, .kind = FRAG_EV_ALLOC },
		{ .time_us = 20, .bytes = 8 * MIB, .slot = 2, .kind = FRAG_EV_ALLOC },
		{ .time_us = 60, .bytes = 8 * MIB, .slot = 1, .kind = FRAG_EV_FREE },
		{ .time_us = 100, .bytes = 4 * MIB, .slot = 0, .kind = FRAG_EV_FREE },
		{ .time_us = 120, .bytes = 8 * MIB, .slot = 2, .kind = FRAG_EV_FREE },
		{ .time_us = 180, .kind = FRAG_EV_MARK },
	};
	struct frag_trace_dev dev = { .events = ev,
				      .events_count = FRAG_ARRAY_LEN(ev),
				      .slots_count = 3,
				      .streams_count = 1,
				      .pools_count = 1 };
	FRAG_AUTO(frag_layout_release) struct frag_layout l = { 0 };
	uint64_t area[FRAG_LAYOUT_USES] = { 0 };

	make("pytorch", &dev, &l);
	check_boxes(&l);
	assert_int_equal(l.span_bytes, 20 * MIB);
	for (size_t i = 0; i < l.count; i++)
		area[l.boxes[i].use] += (l.boxes[i].high - l.boxes[i].low) *
					(l.boxes[i].to_us - l.boxes[i].from_us) / MIB;
	/* MiB x us: 4 until 100, 8 from 10 to 60, 8 from 20 to 120 */
	assert_int_equal(area[FRAG_LAYOUT_LIVE], 4 * 100 + 8 * 50 + 8 * 100);
	/* the whole segment is free from 120 on, the rest of it before that is non-releasable */
	assert_int_equal(area[FRAG_LAYOUT_RELEASABLE], 20 * 60);
	assert_int_equal(area[FRAG_LAYOUT_NON_RELEASABLE], 20 * 120 - (4 * 100 + 8 * 50 + 8 * 100));
	assert_int_equal(area[FRAG_LAYOUT_WAITING], 0);
}

/* A ragged history is drawn coarser, not longer. */
TEST(bounded)
{
	static const char *const policies[] = { "pytorch", "native", "buddy",
						"pytorch:expandable_segments:True" };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_init(&s, 1, 20000, true);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(policies); i++) {
		FRAG_AUTO(frag_layout_release) struct frag_layout l = { 0 };

		make(policies[i], &s.trace->devs[0], &l);
		assert_string_equal(l.policy, policies[i]);
		assert_true(l.count > 10 && l.count <= 5000);
		assert_true(l.samples > 10);
		check_boxes(&l);
	}
}

TEST(without_times_or_events)
{
	struct frag_layout l;
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_init(&s, 1, 60, false);
	make("pytorch", &s.trace->devs[0], &l);
	assert_true(l.count > 0);
	check_boxes(&l);
	frag_layout_release(&l);
	s.trace->devs[0].events_count = 0;
	make("pytorch", &s.trace->devs[0], &l);
	assert_int_equal(l.count, 0);
	frag_layout_release(&l);
}

TEST(memory_short)
{
	AUTO_SPEC spec = must_parse_policy("native");
	struct frag_run_options opt = default_run();
	FRAG_AUTO(frag_layout_release) struct frag_layout l = { 0 };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_init(&s, 1, 300, true);
	FAIL_ALLOCATIONS(
		frag_layout_make(spec, &card, &s.trace->devs[0], UINT64_MAX, &opt, &l, NULL));
}
