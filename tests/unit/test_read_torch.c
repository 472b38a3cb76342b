/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of PyTorch: formats of all ages, what may be missing, odd ones, real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/trace/torch_parts.h"
#include "../support/snapshot_bytes.h"

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
		assert_int_equal(d->seed.blocks_count + d->seed.segments_count, 0);
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
	assert_int_equal(d->seed.blocks_count, 0);
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
		assert_int_equal(d->seed.segments_count, 1);
		assert_int_equal(d->seed.blocks_count, 2);
		/* the pending one is let go by an event, so that all frees look alike */
		assert_int_equal(d->events_count, 3);
		assert_int_equal(d->events[1].flags, FRAG_EVF_SEED);
		assert_int_equal(d->events[2].kind, FRAG_EV_FREE_REQUESTED);
		assert_int_equal(d->events[2].slot, 1);
		assert_false(d->seed.blocks[1].waiting);
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
	assert_int_equal(d->seed.blocks_count, 2);
	assert_int_equal(d->seed.blocks[0].bytes, 1024);
	assert_int_equal(d->seed.blocks[0].requested, 600);
	assert_int_equal(d->seed.segments_count, 1);
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

/* ---- odd, but sound --------------------------------------------------------------------- */

/* Entries whose items come one by one, in any order, with unknown keys of any kind. */
static void test_entries_in_pieces(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	/* the action last: the dict is not known as an entry until it is listed */
	pb_op(&b, '}');
	pb_remember(&b);
	pb_text_int(&b, "size", 512);
	pb_op(&b, 's');
	pb_text_int(&b, "addr", S0);
	pb_op(&b, 's');
	pb_text_text(&b, "action", "alloc");
	pb_op(&b, 's');
	/* the action first: a record that is filled later */
	pb_op(&b, '}');
	pb_remember(&b);
	pb_text_text(&b, "action", "alloc");
	pb_op(&b, 's');
	pb_op(&b, '(');
	pb_text(&b, "extra");
	pb_dict(&b);
	pb_text(&b, "deep");
	pb_list(&b);
	pb_op(&b, 'N');
	pb_close_list(&b);
	pb_close_dict(&b);
	pb_text_int(&b, "addr", S1);
	pb_text_int(&b, "size", 7);
	pb_close_dict(&b);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 2);
	assert_int_equal(t->devs[0].events[0].bytes, 512);
	assert_true(t->devs[0].addrs[0] == S0);
	assert_int_equal(t->devs[0].events[1].bytes, 7);
	assert_true(t->devs[0].addrs[1] == S1);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* ---- many entries: templates -------------------------------------------------------------- */

enum style { ONE_BY_ONE, REMEMBERED, FAR_REMEMBERED, STYLES };

struct words {
	uint32_t key[8], action[8], none;
};

static uint64_t random_below(uint64_t *rng, uint64_t below)
{
	*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
	return (*rng >> 33) % below;
}

/* Keys by BINGET as Python writes them, some of them in another order now and then. */
static void remembered_entry(struct pickle_bytes *b, struct words *w, int action, int64_t addr,
			     int64_t size, int64_t stream, int64_t time, bool turned)
{
	static const char *const actions[] = { "alloc", "free_requested", "free_completed" };

	pb_dict(b);
	if (turned) {
		pb_text_once(b, "size", &w->key[2]);
		pb_int(b, size);
	}
	pb_text_once(b, "action", &w->key[0]);
	pb_text_once(b, actions[action], &w->action[action]);
	pb_text_once(b, "addr", &w->key[1]);
	pb_int(b, addr);
	if (!turned) {
		pb_text_once(b, "size", &w->key[2]);
		pb_int(b, size);
	}
	pb_text_once(b, "stream", &w->key[3]);
	pb_int(b, stream);
	pb_text_once(b, "time_us", &w->key[4]);
	pb_int(b, time);
	pb_text_once(b, "compile_context", &w->key[5]);
	pb_text(b, "N/A");
	pb_text_once(b, "user_metadata", &w->key[6]);
	pb_text_once(b, "", &w->none);
	pb_close_dict(b);
}

static void many_entries(struct pickle_bytes *b, enum style style, size_t n)
{
	static const char *const actions[] = { "alloc", "free_requested", "free_completed" };
	struct words w = { 0 };
	uint64_t rng = 5;

	sb_top(b);
	sb_no_segments(b);
	if (style == FAR_REMEMBERED) { /* memo indices that need LONG_BINGET */
		pb_text(b, "filler");
		pb_list(b);
		for (int i = 0; i < 300; i++)
			pb_text(b, "x");
		pb_close_list(b);
	}
	sb_open_traces(b);
	for (size_t i = 0; i < n; i++) {
		int64_t size =
			1 + (int64_t)random_below(&rng, 1ull << (4 + random_below(&rng, 34)));
		int64_t addr =
			random_below(&rng, 3) ? S0 + 512 * (int64_t)i : 512 * (int64_t)(i + 1);
		int64_t stream = random_below(&rng, 9) ? 0 : 70000;
		bool freed = random_below(&rng, 2), turned = !random_below(&rng, 50);

		for (int a = 0; a < (freed ? 3 : 1); a++) {
			if (style == ONE_BY_ONE)
				pb_entry(b, actions[a], addr, size, stream,
					 T0 + (int64_t)(3 * i) + a);
			else
				remembered_entry(b, &w, a, addr, size, stream,
						 T0 + (int64_t)(3 * i) + a, turned);
		}
		if (i % 1000 == 999) {
			pb_close_list(b);
			pb_op(b, '(');
		}
	}
	sb_close_traces(b);
	sb_finish(b);
}

/* However it is written, it reads the same. Protocol 2 of Python knows no templates. */
static void test_many_entries(void **state)
{
	struct frag_trace *first = NULL;

	(void)state;
	for (int style = 0; style < STYLES; style++) {
		for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
			struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };
			struct frag_trace *t;
			struct frag_trace_dev *d, *f;

			many_entries(&b, (enum style)style, 6000);
			t = sb_read_good(&b);
			d = &t->devs[0];
			if (!first)
				first = t;
			f = &first->devs[0];
			assert_int_equal(d->recorded_count, f->recorded_count);
			assert_int_equal(d->events_count, f->events_count);
			assert_memory_equal(d->events, f->events,
					    f->events_count * sizeof(*f->events));
			assert_memory_equal(d->addrs, f->addrs,
					    f->events_count * sizeof(*f->addrs));
			if (t != first)
				frag_trace_destroy(t);
			pb_release(&b);
		}
	}
	assert_true(first->devs[0].events_count > 8000);
	frag_trace_destroy(first);
}

/* A dict somewhere else that happens to have the key "action" is nobody's entry. */
static void test_foreign_actions(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	pb_text(&b, "notes");
	pb_dict(&b);
	pb_text_text(&b, "action", "alloc");
	pb_text_text(&b, "addr", "elsewhere");
	pb_close_dict(&b);
	pb_text(&b, "other");
	pb_dict(&b);
	pb_text_text(&b, "action", "free_requested");
	pb_text_int(&b, "addr", S0);
	pb_close_dict(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	pb_entry(&b, "alloc", S0, 1, 0, T0);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 1);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* ---- frag_trace_read ------------------------------------------------------------------------ */

static void test_from_files(void **state)
{
	char dir[] = "/tmp/frag-torch-XXXXXX", path[64];
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t = NULL;
	struct frag_err err = { 0 };
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/job.7.pickle", dir);
	sb_everything(&b);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(b.bytes, 1, b.len, f), b.len);
	fclose(f);
	assert_int_equal(frag_trace_read(path, NULL, &t, &err), 0);
	assert_string_equal(t->name, "job.7");
	assert_string_equal(t->format, "torch-snapshot");
	frag_trace_destroy(t);
	f = fopen(path, "wb");
	assert_non_null(f);
	fputs("this is no trace\n", f);
	fclose(f);
	assert_int_equal(frag_trace_read(path, NULL, &t, &err), FRAG_EINPUT);
	assert_non_null(strstr(err.msg, "no known format"));
	unlink(path);
	assert_int_equal(frag_trace_read(path, NULL, &t, &err), FRAG_EINPUT);
	rmdir(dir);
	pb_release(&b);
}

/* ---- recordings --------------------------------------------------------------------------------- */

struct recording {
	const char *name;
	uint32_t dev;
	uint64_t allocs, events, segment_events, ooms;
};

static void check_recording(const struct recording *r, const struct frag_trace_dev *d)
{
	uint64_t allocs = 0, segments = 0, ooms = 0;

	for (size_t i = 0; i < d->events_count; i++)
		allocs +=
			d->events[i].kind == FRAG_EV_ALLOC && !(d->events[i].flags & FRAG_EVF_SEED);
	for (size_t i = 0; i < d->seen_count; i++) {
		segments += d->seen[i].kind <= FRAG_SEEN_SEGMENT_UNMAP;
		ooms += d->seen[i].kind == FRAG_SEEN_OOM;
	}
	assert_int_equal(allocs, r->allocs);
	assert_int_equal(d->recorded_count, r->events);
	assert_int_equal(segments, r->segment_events);
	assert_int_equal(ooms, r->ooms);
}

/* Counts as the recordings' own list has them. */
static void test_recordings(void **state)
{
	static const struct recording rows[] = {
		{ "cudagraph.default", 0, 2069, 6514, 335, 0 },
		{ "fsdp2x2.default.rank1", 1, 14972, 44954, 268, 0 },
		{ "gnn.expandable", 0, 9630, 28919, 35, 0 },
		{ "gnn.late", 0, 6400, 19264, 2, 0 },
		{ "leak.frames", 0, 2457, 7579, 214, 0 },
		{ "mempool.default", 0, 200, 668, 68, 0 },
		{ "modelpar.default", 0, 12951, 39135, 288, 0 },
		{ "modelpar.default", 1, 5667, 17121, 126, 0 },
		{ "oomcap.expandable", 0, 34708, 104446, 317, 9 },
		{ "seeddemo.default", 0, 2, 8, 2, 0 },
		{ "streams.default", 0, 8673, 26196, 221, 0 },
		{ "varlen.ring", 0, 1402, 6000, 0, 0 },
		{ "vision.default", 0, 52897, 158835, 151, 0 },
	};
	bool any = false;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		char path[512];
		struct frag_trace *t = NULL;
		struct frag_err err = { 0 };
		bool found = false;

		snprintf(path, sizeof(path), FRAG_SHARED_TRACES "/torch/%s.pickle.xz",
			 rows[i].name);
		if (access(path, R_OK))
			continue;
		any = true;
		if (frag_trace_read(path, NULL, &t, &err))
			fail_msg("%s", err.msg);
		for (uint32_t d = 0; d < t->devs_count; d++)
			if (t->devs[d].ordinal == rows[i].dev) {
				check_recording(&rows[i], &t->devs[d]);
				found = true;
			}
		assert_true(found);
		frag_trace_destroy(t);
	}
	if (!any)
		skip();
}

/* A MemPool's pools are gone at the end of this one, yet they are found: who served what is
 * known from the program that was recorded (its random choices can be repeated). */
static void test_recorded_mempool(void **state)
{
	static const char path[] = FRAG_SHARED_TRACES "/torch/mempool.default.pickle.xz";
	struct frag_trace *t = NULL;
	size_t of_pool[3] = { 0 };

	(void)state;
	if (access(path, R_OK))
		skip();
	assert_int_equal(frag_trace_read(path, NULL, &t, NULL), 0);
	assert_int_equal(t->devs[0].pools_count, 3);
	for (size_t i = 0; i < t->devs[0].events_count; i++)
		if (t->devs[0].events[i].kind == FRAG_EV_ALLOC)
			of_pool[t->devs[0].events[i].pool]++;
	assert_int_equal(of_pool[0], 99);
	assert_int_equal(of_pool[1], 55);
	assert_int_equal(of_pool[2], 46);
	frag_trace_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),	  cmocka_unit_test(test_settings),
		cmocka_unit_test(test_format_of_2_0),	  cmocka_unit_test(test_segments_only),
		cmocka_unit_test(test_late_history),	  cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_devices),		  cmocka_unit_test(test_recorded_pool_ids),
		cmocka_unit_test(test_entries_in_pieces), cmocka_unit_test(test_many_entries),
		cmocka_unit_test(test_foreign_actions),	  cmocka_unit_test(test_from_files),
		cmocka_unit_test(test_recordings),	  cmocka_unit_test(test_recorded_mempool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
