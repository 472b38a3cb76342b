/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder against the full list of points: windows tile the events, hold
 * the true extremes and last values, stay within the bound, and the overall
 * peaks survive any number of merges.
 */
#include "test.h"

#include "metrics/series.h"

struct point {
	uint64_t time, v[4];
};

static struct point *make_points(size_t n, uint64_t seed)
{
	struct point *p = calloc(n + 1, sizeof(*p));
	uint64_t t = 0;

	for (size_t i = 0; i < n; i++) {
		t += test_roll(&seed) % 50;
		p[i].time = t;
		for (int k = 0; k < 4; k++)
			p[i].v[k] = test_roll(&seed) % 1000000 + 1;
	}
	return p;
}

static void record(struct frag_recorder *rec, const struct point *p, size_t n, size_t cap,
		   uint64_t expect)
{
	assert_int_equal(frag_series_init(rec, cap, NULL), 0);
	if (expect)
		frag_series_expect(rec, expect);
	for (size_t i = 0; i < n; i++) {
		frag_series_add(rec, i, p[i].time, p[i].v[0], p[i].v[1], p[i].v[2], p[i].v[3]);
		if (frag_series_want_loss(rec))
			frag_series_add_loss(rec,
					     &(struct frag_loss){ .event = i,
								  .time_us = p[i].time,
								  .reserved_bytes = p[i].v[3] });
	}
}

static void check_window(const struct frag_window *w, const struct point *p)
{
	const uint64_t *got = &w->requested_min; /* min, max, last of the four curves */

	assert_int_equal(w->first_us, p[w->first_event].time);
	assert_int_equal(w->last_us, p[w->last_event].time);
	for (int k = 0; k < 4; k++) {
		uint64_t lo = UINT64_MAX, hi = 0;

		for (uint64_t e = w->first_event; e <= w->last_event; e++) {
			lo = FRAG_MIN(lo, p[e].v[k]);
			hi = FRAG_MAX(hi, p[e].v[k]);
		}
		assert_int_equal(got[3 * k], lo);
		assert_int_equal(got[3 * k + 1], hi);
		assert_int_equal(got[3 * k + 2], p[w->last_event].v[k]);
	}
}

static void release(struct frag_series *s)
{
	FRAG_FREE(s->windows, s->losses);
}

static void check_series(const struct frag_series *s, const struct point *p, size_t n, size_t cap)
{
	uint64_t next = 0;

	assert_true(s->count <= cap);
	for (size_t i = 0; i < s->count; i++) {
		assert_int_equal(s->windows[i].first_event, next);
		check_window(&s->windows[i], p);
		next = s->windows[i].last_event + 1;
		if (i + 1 < s->count)
			assert_int_equal(next, (i + 1) * s->events_per_window);
	}
	assert_int_equal(next, n);
	/* every full window has its sample, and only window ends have one */
	assert_int_equal(s->losses_count, n / s->events_per_window);
	for (size_t i = 0; i < s->losses_count; i++) {
		assert_int_equal(s->losses[i].event, s->windows[i].last_event);
		assert_int_equal(s->losses[i].reserved_bytes, s->windows[i].reserved_last);
	}
}

TEST(windows_hold_the_truth)
{
	static const struct {
		size_t n, cap, kept;
	} rows[] = {
		{ 0, 8, 8 },	     { 1, 8, 8 },      { 8, 8, 8 },	 { 9, 8, 8 },
		{ 16, 8, 8 },	     { 17, 8, 8 },     { 1000, 8, 8 },	 { 1000, 7, 8 },
		{ 1000, 1, 2 },	     { 4096, 64, 64 }, { 4097, 64, 64 }, { 5000, 0, 1024 },
		{ 65536, 256, 256 },
	};

	for (size_t r = 0; r < FRAG_ARRAY_LEN(rows); r++) {
		FRAG_AUTO(free_at) struct point *p = make_points(rows[r].n, r + 1);
		struct frag_recorder rec;
		FRAG_AUTO(release) struct frag_series s = { 0 };
		uint64_t per = 1;

		record(&rec, p, rows[r].n, rows[r].cap, 0);
		frag_series_finish(&rec, &s);
		while (per * rows[r].kept < rows[r].n)
			per *= 2;
		assert_int_equal(s.cap, rows[r].kept);
		assert_int_equal(s.events_per_window, per);
		check_series(&s, p, rows[r].n, rows[r].kept);
		frag_series_release(&rec); /* allowed after finish */
	}
}

/* A true estimate saves work and changes nothing; a wrong one loses nothing. */
TEST(an_estimate)
{
	enum { N = 10000, CAP = 32 };
	FRAG_AUTO(free_at) struct point *p = make_points(N, 99);
	struct frag_recorder rec;
	FRAG_AUTO(release) struct frag_series plain = { 0 }, told = { 0 }, low = { 0 };

	record(&rec, p, N, CAP, 0);
	frag_series_finish(&rec, &plain);
	record(&rec, p, N, CAP, N);
	frag_series_finish(&rec, &told);
	record(&rec, p, N, CAP, 100);
	frag_series_finish(&rec, &low);
	assert_int_equal(plain.count, told.count);
	assert_int_equal(plain.losses_count, told.losses_count);
	assert_memory_equal(plain.windows, told.windows, plain.count * sizeof(*plain.windows));
	assert_memory_equal(plain.losses, told.losses, plain.losses_count * sizeof(*plain.losses));
	check_series(&low, p, N, CAP);
}

TEST(memory_short)
{
	struct frag_recorder rec;

	FAIL_ALLOCATIONS(frag_series_init(&rec, 8, &test_err));
	frag_series_release(&rec);
}
