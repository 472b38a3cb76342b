/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated traces: valid whatever is repeated, once is the recording, and every round is one. */
#include <glob.h>
#include "test.h"

#include <unistd.h>

#include <frag/trace.h>

#include "trace/cft/cft_write.h"
#include "trace/gen/gen_repeat.h"
#include "packed.h"
#include "must.h"
#include "sample_trace.h"

static int to_stream(void *ctx, const struct frag_event *events, size_t count, struct frag_err *err)
{
	return frag_cft_stream_put(ctx, events, count, err);
}

/* Makes, writes and reads it back: the reader checks the rules of every event. */
static struct frag_trace *repeated(const struct frag_trace *t,
				   const struct frag_repeat_options *opt, struct frag_repeat *r)
{
	struct frag_cft_stream *s = NULL;
	struct frag_trace *back;
	const char *path;

	path = test_path("long.cft");
	if (frag_repeat_init(r, t, opt, &test_err) ||
	    frag_cft_stream_open(path, &r->head, &s, &test_err) ||
	    frag_repeat_run(r, to_stream, s, &test_err) || frag_cft_stream_close(s, &test_err))
		fail_msg("%s: %s", t->name, test_err.msg);
	back = must_read(path);
	unlink(path);
	assert_string_equal(back->format, "gen-repeat");
	for (uint32_t d = 0; d < t->devs_count; d++) {
		assert_false(back->devs[d].has_evidence);
		assert_int_equal(back->devs[d].ordinal, t->devs[d].ordinal);
	}
	return back;
}

/* What is live after events [0, end): size, pool, stream, waiting; sorted. */
struct block {
	uint64_t bytes;
	uint32_t pool, stream, waiting, live;
};

static int compare_blocks(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct block));
}

static size_t live_after(const struct frag_trace_dev *dev, size_t end, struct block **out,
			 uint64_t *peak)
{
	struct block *list = calloc(dev->slots_count + 1, sizeof(*list));
	uint64_t live = 0;
	size_t n = 0;

	*peak = 0;
	for (size_t i = 0; i < end; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			list[e->slot] = (struct block){ e->bytes, e->pool, e->stream, 0, 1 };
			live += e->bytes;
			*peak = FRAG_MAX(*peak, live);
		} else if (e->kind == FRAG_EV_FREE_REQUESTED) {
			list[e->slot].waiting = 1;
		} else if (e->kind <= FRAG_EV_FREE_COMPLETED) {
			list[e->slot].live = 0;
			live -= e->bytes;
		}
	}
	for (size_t i = 0; i < dev->slots_count; i++)
		if (list[i].live)
			list[n++] = list[i];
	qsort(list, n, sizeof(*list), compare_blocks);
	*out = list;
	return n;
}

/* At the end the same is live as in the recording, the peak is that of the recording, slots are
 * dense and taken by the rule, times do not go back where those of the recording do not.
 * void_: a block that was live at both ends of the window may be missing in the later rounds. */
static void check_device(const struct frag_trace_dev *dev, const struct frag_trace_dev *recorded,
			 bool void_)
{
	FRAG_AUTO(free_at) struct block *a = NULL, *b = NULL;
	uint64_t peak, peak_recorded;
	size_t n = live_after(dev, dev->events_count, &a, &peak);
	uint32_t *given = calloc(dev->slots_count + 1, sizeof(*given)), count = 0, used = 0;
	size_t back = 0, back_recorded = 0;

	if (void_) {
		assert_true(n <= live_after(recorded, recorded->events_count, &b, &peak_recorded));
		assert_true(peak <= peak_recorded);
		assert_true(dev->slots_count <= recorded->slots_count);
	} else {
		assert_int_equal(n,
				 live_after(recorded, recorded->events_count, &b, &peak_recorded));
		assert_memory_equal(a, b, n * sizeof(*a));
		assert_int_equal(peak, peak_recorded);
		assert_int_equal(dev->slots_count, recorded->slots_count);
	}
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			assert_int_equal(e->slot, count ? given[--count] : used++);
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			given[count++] = e->slot;
		back += i && e->time_us < e[-1].time_us;
	}
	for (size_t i = 1; i < recorded->events_count; i++)
		back_recorded += recorded->events[i].time_us < recorded->events[i - 1].time_us;
	assert_true(back_recorded || !back);
	assert_int_equal(used, dev->slots_count);
	free(given);
}

/* Requests of every round are those of the window: number and bytes. */
static void check_requests(const struct frag_trace_dev *dev, const struct frag_trace_dev *recorded,
			   const struct frag_window_of_dev *w, uint64_t times)
{
	unsigned __int128 want = 0, got = 0;
	uint64_t allocs = 0;

	for (size_t i = 0; i < recorded->events_count; i++) {
		uint64_t n = i >= w->from && i < w->to ? times : 1;

		if (recorded->events[i].kind != FRAG_EV_ALLOC)
			continue;
		allocs += n;
		want += (unsigned __int128)recorded->events[i].bytes * n;
	}
	for (size_t i = 0; i < dev->events_count; i++) {
		if (dev->events[i].kind != FRAG_EV_ALLOC)
			continue;
		allocs--;
		got += dev->events[i].bytes;
	}
	assert_int_equal(allocs, 0);
	assert_true(got == want);
}

static void repeat_and_check(const struct frag_trace *t, const struct frag_repeat_options *opt)
{
	FRAG_AUTO(frag_repeat_release) struct frag_repeat r = { 0 };
	AUTO_TRACE made = repeated(t, opt, &r);

	for (uint32_t d = 0; d < t->devs_count; d++) {
		const struct frag_trace_dev *dev = &made->devs[d], *recorded = &t->devs[d];

		check_device(dev, recorded, r.times > 1 && r.windows[d].void_count);
		check_requests(dev, recorded, &r.windows[d], r.times);
		if (r.times > 1)
			continue;
		assert_int_equal(dev->events_count, recorded->events_count);
		assert_memory_equal(dev->events, recorded->events,
				    dev->events_count * sizeof(*dev->events));
	}
}

TEST(test_recorded)
{
	static const uint64_t times[] = { 1, 2, 3, 4, 7 };
	glob_t g = { 0 };

	assert_int_equal(glob("traces/*.cft", 0, NULL, &g), 0);
	assert_int_equal(glob("tests/golden/recorded/*.cft", GLOB_APPEND, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		AUTO_TRACE t = must_read(g.gl_pathv[i]);
		size_t some = t->devs[0].events_count > 50000 ? 3 : 1;
		size_t count = some == 3 && test_is_quick() ? 0 : FRAG_ARRAY_LEN(times);

		for (size_t k = 0; k < count; k += some)
			repeat_and_check(t, &(struct frag_repeat_options){ .times = times[k] });
	}
	globfree(&g);
}

TEST(test_steps)
{
	static const uint32_t steps[][2] = {
		{ 1, 1 }, { 1, 120 }, { 7, 7 }, { 30, 61 }, { 120, 120 }
	};
	AUTO_TRACE t = must_read("traces/gnn.default.cft");

	for (size_t i = 0; i < FRAG_ARRAY_LEN(steps); i++)
		for (uint64_t times = 1; times < 5; times++)
			repeat_and_check(t, &(struct frag_repeat_options){ .times = times,
									   .first = steps[i][0],
									   .last = steps[i][1] });
}

/* Any window of any trace: cut where step marks were put at random. */
TEST(test_random)
{
	for (uint64_t seed = 1; seed <= test_rounds(60); seed++) {
		AUTO_TRACE t = sample_trace_random(seed, 400 + 37 * seed, false, false);
		struct frag_trace_dev *dev = &t->devs[0];
		uint64_t x = seed * 0x9E3779B97F4A7C15ull;
		uint32_t steps = 0;

		for (size_t i = 0; i < dev->events_count; i++) {
			struct frag_event *e = &dev->events[i];

			x = x * 6364136223846793005ull + 1442695040888963407ull;
			if (e->kind != FRAG_EV_MARK && e->kind != FRAG_EV_TRIM)
				continue;
			*e = (struct frag_event){ .kind = FRAG_EV_MARK,
						  .time_us = e->time_us,
						  .flags = x >> 62 ? FRAG_EVF_STEP | FRAG_EVF_END
								   : 0 };
			steps += e->flags != 0;
		}
		for (uint32_t first = 0; first <= steps && first < 4; first++) {
			struct frag_repeat_options o = { .first = first,
							 .last = first ? steps : 0 };

			for (o.times = 1; o.times < 6; o.times++)
				repeat_and_check(t, &o);
		}
	}
}

TEST(test_events)
{
	struct frag_trace *t = must_read("traces/modelpar.default.cft"), *made;
	struct frag_repeat_options o = { .events = 1000000 };
	uint64_t sum = 0, rounds;
	struct frag_repeat r;

	made = repeated(t, &o, &r);
	for (uint32_t d = 0; d < made->devs_count; d++)
		sum += made->devs[d].events_count;
	rounds = r.times;
	assert_int_equal(sum, r.events);
	assert_true(sum >= 1000000);
	frag_repeat_release(&r);
	frag_trace_destroy(made);
	/* one round less is too short */
	SUCCEEDS(frag_repeat_init(&r, t, &(struct frag_repeat_options){ .times = rounds - 1 },
				  NULL));
	assert_true(r.events < 1000000);
	frag_repeat_release(&r);
	/* as many as the recording has: once */
	o.events = 1;
	SUCCEEDS(frag_repeat_init(&r, t, &o, NULL));
	assert_int_equal(r.times, 1);
	frag_repeat_release(&r);
	frag_trace_destroy(t);
}

/* Every allocation that can fail does so once; nothing is lost. */
TEST(test_out_of_memory)
{
	AUTO_TRACE t = must_read("traces/mempool.default.cft");
	struct frag_repeat_options o = { .times = 3 };
	FRAG_AUTO(frag_repeat_release) struct frag_repeat r = { 0 };

	FAIL_ALLOCATIONS(frag_repeat_init(&r, t, &o, NULL));
}

/* ---- the stream it is written with -------------------------------------------------- */

static void same_bytes(struct frag_trace *t, size_t piece)
{
	FRAG_AUTO(blob_release) struct blob whole = cft_image_of(t);
	struct frag_cft_stream *s = NULL;
	unsigned char *bytes;
	const char *path = test_path("piece.cft");
	FILE *f;

	SUCCEEDS(frag_cft_stream_open(path, t, &s, &test_err));
	for (uint32_t d = 0; d < t->devs_count; d++)
		for (size_t i = 0, n; i < t->devs[d].events_count; i += n) {
			n = FRAG_MIN(piece, t->devs[d].events_count - i);
			SUCCEEDS(frag_cft_stream_put(s, t->devs[d].events + i, n, &test_err));
		}
	SUCCEEDS(frag_cft_stream_close(s, &test_err));
	bytes = malloc(whole.len + 1);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, whole.len + 1, f), whole.len);
	assert_memory_equal(bytes, whole.bytes, whole.len);
	fclose(f);
	unlink(path);
	free(bytes);
	frag_trace_destroy(t);
}

static struct frag_trace *without_evidence(const char *path)
{
	struct frag_trace *t = must_read(path);

	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_trace_dev *dev = &t->devs[d];

		frag_host_free(dev->addrs);
		dev->addrs = NULL;
		dev->has_evidence = false;
		dev->seen_count = dev->final_segments_count = dev->final_blocks_count = 0;
	}
	return t;
}

TEST(test_same_bytes)
{
	static const size_t counts[] = { 0, 1, 65535, 65536, 65537, 262143, 262144, 300000 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(counts); i++) {
		same_bytes(sample_trace_random(i + 1, counts[i], false, true), 4096);
		same_bytes(sample_trace_random(i + 1, counts[i], false, false), 1000000);
	}
	same_bytes(sample_trace_empty(), 1);
	same_bytes(without_evidence("traces/modelpar.default.cft"), 777);
	same_bytes(without_evidence("traces/leak.frames.cft"), 1);
}

TEST(test_wrong_counts)
{
	AUTO_TRACE t = sample_trace_random(5, 1000, false, false);
	struct frag_cft_stream *s;
	const char *path = test_path("wrong.cft");

	SUCCEEDS(frag_cft_stream_open(path, t, &s, NULL));
	SUCCEEDS(frag_cft_stream_put(s, t->devs[0].events, t->devs[0].events_count - 1, NULL));
	assert_int_equal(frag_cft_stream_close(s, NULL), FRAG_EINPUT);
	SUCCEEDS(frag_cft_stream_open(path, t, &s, NULL));
	SUCCEEDS(frag_cft_stream_put(s, t->devs[0].events, t->devs[0].events_count, NULL));
	assert_int_equal(frag_cft_stream_put(s, t->devs[0].events, 1, NULL), FRAG_EINPUT);
	frag_cft_stream_abort(s);
	assert_int_equal(access(path, F_OK), -1);
}
