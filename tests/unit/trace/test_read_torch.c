/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of PyTorch: formats of all ages, and what may be missing in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/torch/torch_parts.h"
#include "snapshot_bytes.h"

static void test_everything(void **state)
{
	static const uint8_t kinds[] = { FRAG_EV_ALLOC, FRAG_EV_ALLOC, FRAG_EV_MARK,
					 FRAG_EV_MARK,	FRAG_EV_FREE,  FRAG_EV_REFUSED };

	(void)state;
	for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
		struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };
		struct frag_trace *t;
		struct frag_trace_dev *d;

		sb_everything(&b);
		assert_true(frag_reader_torch.probe(b.bytes, b.len) > 90);
		t = sb_read_good(&b);
		assert_int_equal(t->devs_count, 1);
		assert_true(t->start_us == T0);
		assert_int_equal(t->file_bytes, b.len);
		d = &t->devs[0];
		assert_int_equal(d->recorded_count, 7);
		assert_int_equal(d->events_count, FRAG_ARRAY_LEN(kinds));
		for (size_t i = 0; i < FRAG_ARRAY_LEN(kinds); i++)
			assert_int_equal(d->events[i].kind, kinds[i]);
		assert_string_equal(frag_trace_string(t, d->events[2].slot), "Optimizer.step#AdamW."
									     "step");
		assert_int_equal(d->events[2].flags, FRAG_EVF_STEP);
		assert_int_equal(d->events[3].flags, FRAG_EVF_STEP | FRAG_EVF_END);
		assert_int_equal(d->events[4].time_us, 10);
		assert_true(d->events[5].bytes == 1ull << 40);
		assert_int_equal(d->streams_count, 2);
		assert_int_equal(d->streams[1], 77);
		assert_int_equal(d->events[0].stream, 1);
		assert_int_equal(d->seen_count, 2);
		assert_int_equal(d->seen[1].kind, FRAG_SEEN_OOM);
		assert_int_equal(d->seen[1].addr, 123456789);
		assert_int_equal(d->final_segments_count, 1);
		assert_true(d->final_segments[0].small);
		assert_int_equal(d->final_blocks_count, 2);
		assert_int_equal(d->final_blocks[0].state, FRAG_STATE_LIVE);
		assert_int_equal(d->final_blocks[1].requested, 512);
		assert_int_equal(d->initial.blocks_count + d->initial.segments_count, 0);
		frag_trace_destroy(t);
		pb_release(&b);
	}
}

static void test_settings(void **state)
{
	struct pickle_bytes b = { 0 };
	struct frag_trace *t;

	(void)state;
	sb_everything(&b);
	t = sb_read_good(&b);
	assert_true(t->settings.present);
	assert_string_equal(t->settings.conf, "max_split_size_mb:64,expandable_segments:True");
	assert_true(t->settings.max_split_bytes == 64 * MIB);
	assert_true(t->settings.gc_threshold == 0.6);
	assert_true(t->settings.expandable);
	assert_false(t->settings.limit_known);
	assert_int_equal(t->settings.roundup[0], 4);
	assert_int_equal(t->settings.roundup[1], 0);
	assert_int_equal(t->settings.roundup[8], 8);
	assert_int_equal(t->settings.roundup[15], 2);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* Everything that came after 2.0 left out, and blocks as 2.0 had them. */
static void test_format_of_2_0(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;
	struct frag_trace_dev *d;

	(void)state;
	sb_top(&b);
	pb_text(&b, "segments");
	pb_list(&b);
	pb_dict(&b);
	pb_text_int(&b, "address", S0);
	pb_text_int(&b, "total_size", 2 * MIB);
	pb_text(&b, "blocks");
	pb_list(&b);
	pb_dict(&b);
	pb_text_int(&b, "size", 1024);
	pb_text_text(&b, "state", "active_allocated");
	pb_text(&b, "history");
	pb_list(&b);
	pb_dict(&b);
	pb_text_int(&b, "addr", S0);
	pb_text_int(&b, "real_size", 700);
	pb_close_dict(&b);
	pb_close_list(&b);
	pb_close_dict(&b);
	pb_dict(&b);
	pb_text_int(&b, "size", 2 * MIB - 1024);
	pb_text_text(&b, "state", "inactive");
	pb_close_dict(&b);
	pb_close_list(&b);
	pb_close_dict(&b);
	pb_close_list(&b);
	sb_open_traces(&b);
	pb_dict(&b);
	pb_text_text(&b, "action", "segment_alloc");
	pb_text_int(&b, "addr", S0);
	pb_text_int(&b, "size", 2 * MIB);
	pb_text_int(&b, "stream", 0);
	pb_close_dict(&b);
	pb_dict(&b);
	pb_text_int(&b, "size", 700);
	pb_text_int(&b, "addr", S0);
	pb_text_text(&b, "action", "alloc");
	pb_close_dict(&b);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	d = &t->devs[0];
	assert_false(t->settings.present);
	assert_true(t->settings.max_split_bytes == UINT64_MAX);
	assert_int_equal(t->start_us, 0);
	assert_int_equal(d->events_count, 1);
	assert_int_equal(d->initial.blocks_count, 0);
	assert_true(d->final_segments[0].small);
	assert_int_equal(d->final_blocks[0].requested, 700);
	assert_true(d->final_blocks[1].addr == S0 + 1024);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* Without a history the snapshot is the state to start from. */
static void test_segments_only(void **state)
{
	(void)state;
	for (int bare = 0; bare < 2; bare++) {
		struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
		struct frag_trace *t;
		struct frag_trace_dev *d;

		pb_begin(&b);
		if (!bare) {
			pb_dict(&b);
			pb_text(&b, "device_traces");
			pb_list(&b);
			pb_close_list(&b);
			pb_text(&b, "segments");
		}
		pb_list(&b);
		sb_open_segment(&b, 3, S1, 20 * MIB, "large", 5, 9);
		sb_block(&b, S1, 3 * MIB, 3 * MIB - 7, "active_allocated");
		sb_block(&b, S1 + 3 * MIB, 2 * MIB, 2 * MIB, "active_pending_free");
		sb_block(&b, S1 + 5 * MIB, 15 * MIB, 0, "inactive");
		sb_close_segment(&b);
		pb_close_list(&b);
		if (!bare)
			pb_close_dict(&b);
		pb_end(&b);
		t = sb_read_good(&b);
		assert_int_equal(t->devs_count, 1);
		d = &t->devs[0];
		assert_int_equal(d->ordinal, 3);
		assert_int_equal(d->initial.segments_count, 1);
		assert_int_equal(d->initial.blocks_count, 2);
		/* the pending one is let go by an event, so that all frees look alike */
		assert_int_equal(d->events_count, 3);
		assert_int_equal(d->events[1].flags, FRAG_EVF_INITIAL);
		assert_int_equal(d->events[2].kind, FRAG_EV_FREE_REQUESTED);
		assert_int_equal(d->events[2].slot, 1);
		assert_false(d->initial.blocks[1].waiting);
		assert_int_equal(d->pools_count, 2);
		assert_int_equal(d->events[0].pool, 1);
		frag_trace_destroy(t);
		pb_release(&b);
	}
}

static void test_late_history(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;
	struct frag_trace_dev *d;

	(void)state;
	sb_top(&b);
	pb_text(&b, "segments");
	pb_list(&b);
	sb_open_segment(&b, 0, S0, 2 * MIB, "small", 0, 0);
	sb_block(&b, S0, 2 * MIB, 100, "inactive");
	sb_close_segment(&b);
	pb_close_list(&b);
	sb_open_traces(&b);
	pb_entry(&b, "free_completed", S0, 600, 0, T0);
	pb_entry(&b, "free_requested", S0 + 1024, 100, 0, T0 + 1);
	pb_entry(&b, "free_completed", S0 + 1024, 100, 0, T0 + 1);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	d = &t->devs[0];
	assert_int_equal(d->initial.blocks_count, 2);
	assert_int_equal(d->initial.blocks[0].bytes, 1024);
	assert_int_equal(d->initial.blocks[0].requested, 600);
	assert_int_equal(d->initial.segments_count, 1);
	assert_int_equal(d->uncertain_blocks, 0);
	assert_true(d->truncated); /* it begins within a free */
	assert_int_equal(d->events_count, 5);
	assert_int_equal(d->events[2].kind, FRAG_EV_FREE_REQUESTED);
	assert_int_equal(d->events[3].kind, FRAG_EV_FREE_COMPLETED);
	assert_int_equal(d->events[4].kind, FRAG_EV_FREE);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* ---- stacks -------------------------------------------------------------------------- */

static void frame(struct pickle_bytes *b, const char *name, const char *file, int64_t line)
{
	pb_dict(b);
	pb_text_text(b, "filename", file);
	pb_text_int(b, "line", line);
	pb_text_text(b, "name", name);
	pb_close_dict(b);
}

static void entry_with_frames(struct pickle_bytes *b, const char *action, int64_t addr,
			      int64_t *list_memo)
{
	pb_dict(b);
	pb_text_text(b, "action", action);
	pb_text(b, "frames");
	if (*list_memo < 0) {
		*list_memo = b->memo;
		pb_list(b);
		frame(b, "inner", "a.py", 3);
		frame(b,
		      "out\xff"
		      "er\n",
		      "b.py", 300);
		pb_close_list(b);
	} else {
		pb_op(b, 'j');
		pb_le(b, (uint64_t)*list_memo, 4);
	}
	pb_text_int(b, "addr", addr);
	pb_text_int(b, "size", 512);
	pb_text_int(b, "time_us", T0);
	pb_close_dict(b);
}

static void test_stacks(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;
	const struct frag_stacks *s;
	int64_t first = -1, second = -1;

	(void)state;
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	entry_with_frames(&b, "alloc", S0, &first);
	entry_with_frames(&b, "alloc", S1, &second); /* an equal list of its own */
	entry_with_frames(&b, "free_requested", S0, &first);
	entry_with_frames(&b, "free_completed", S0, &first);
	pb_entry(&b, "free_requested", S1, 512, 0, T0);
	pb_entry(&b, "free_completed", S1, 512, 0, T0);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	s = &t->stacks;
	assert_int_equal(s->count, 2);
	assert_int_equal(s->frames_count, 2);
	assert_int_equal(s->first[2] - s->first[1], 2);
	assert_string_equal(frag_trace_string(t, s->frames[s->index[s->first[1]]].name), "inner");
	assert_string_equal(frag_trace_string(t, s->frames[s->index[s->first[1] + 1]].name), "out?"
											     "er?");
	assert_int_equal(s->frames[1].line, 300);
	assert_int_equal(t->devs[0].events[0].stack, 1);
	assert_int_equal(t->devs[0].events[1].stack, 1);
	assert_int_equal(t->devs[0].events[2].stack, 1);
	assert_int_equal(t->devs[0].events[3].stack, 0);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* ---- devices ---------------------------------------------------------------------------- */

static void two_devices(struct pickle_bytes *b)
{
	sb_top(b);
	sb_no_segments(b);
	sb_open_traces(b);
	pb_entry(b, "alloc", S0, 1, 0, T0 + 50);
	pb_close_list(b);
	pb_list(b);
	pb_entry(b, "snapshot", 0, 0, 0, T0); /* 2.15 begins so, also where nothing follows */
	pb_close_list(b);
	pb_list(b);
	pb_entry(b, "alloc", S0, 2, 0, T0);
	sb_close_traces(b);
	pb_text(b, "external_annotations");
	pb_list(b);
	sb_annotation(b, "step", "START", T0 + 1);
	pb_close_list(b);
	sb_finish(b);
}

static void test_devices(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;
	struct frag_err err = { 0 };

	(void)state;
	two_devices(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs_count, 2);
	assert_int_equal(t->devs[0].ordinal, 0);
	assert_int_equal(t->devs[1].ordinal, 2);
	/* one clock, and marks for everybody */
	assert_true(t->start_us == T0);
	assert_int_equal(t->devs[0].events[1].time_us, 50);
	assert_int_equal(t->devs[0].events[0].kind, FRAG_EV_MARK);
	assert_int_equal(t->devs[1].events[1].kind, FRAG_EV_MARK);
	frag_trace_destroy(t);
	assert_int_equal(sb_read(b.bytes, b.len, "device=2", &t, &err), 0);
	assert_int_equal(t->devs_count, 1);
	assert_int_equal(t->devs[0].ordinal, 2);
	frag_trace_destroy(t);
	assert_int_equal(sb_read(b.bytes, b.len, "device=1", &t, &err), FRAG_EUSAGE);
	assert_int_equal(sb_read(b.bytes, b.len, "device=", &t, &err), FRAG_EUSAGE);
	assert_int_equal(sb_read(b.bytes, b.len, "device=-3", &t, &err), FRAG_EUSAGE);
	assert_int_equal(sb_read(b.bytes, b.len, "late=yes", &t, &err), FRAG_EUSAGE);
	assert_null(t);
	pb_release(&b);
}

static void test_recorded_pool_ids(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	for (int i = 0; i < 4; i++) {
		pb_dict(&b);
		pb_text_text(&b, "action", "alloc");
		pb_text_int(&b, "addr", S0 + 512 * i);
		pb_text_int(&b, "size", 512);
		pb_text(&b, "pool_id");
		pb_int(&b, i / 2 ? 4 : 0);
		pb_int(&b, 0);
		pb_op(&b, 0x86);
		pb_remember(&b);
		pb_close_dict(&b);
	}
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs[0].pools_count, 2);
	assert_int_equal(t->devs[0].pools[1].a, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(t->devs[0].events[i].pool, i / 2);
	frag_trace_destroy(t);
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),    cmocka_unit_test(test_settings),
		cmocka_unit_test(test_format_of_2_0), cmocka_unit_test(test_segments_only),
		cmocka_unit_test(test_late_history),  cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_devices),	      cmocka_unit_test(test_recorded_pool_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
