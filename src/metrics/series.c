/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder of the time series: closing, merging and thinning of windows.
 *
 * Invariants: windows 0 .. count-1 are closed and hold per_window adds each; `now` is the next one.
 * cap is even, so all windows pair up when they are full. Losses are in event order, none later
 * than `now`.
 */
#include "series.h"

#include <string.h>

#define CAP_DEFAULT 1024u

int frag_series_init(struct frag_recorder *rec, size_t cap, struct frag_err *err)
{
	struct frag_series *s = &rec->series;

	memset(rec, 0, sizeof(*rec));
	if (cap == 0)
		cap = CAP_DEFAULT;
	cap += cap & 1;
	s->cap = cap;
	s->windows = frag_host_calloc(cap, sizeof(*s->windows));
	s->losses = frag_host_calloc(cap, sizeof(*s->losses));
	if (!s->windows || !s->losses) {
		frag_series_release(rec);
		return frag_fail_nomem(err, "time series");
	}
	/* Equal: the first add opens the first window. want_loss is only called after an add. */
	rec->per_window = 1;
	rec->filled = 1;
	rec->now.first_event = UINT64_MAX; /* nothing recorded yet */
	return 0;
}

void frag_series_expect(struct frag_recorder *rec, uint64_t adds)
{
	FRAG_ASSERT(rec->series.count == 0 && rec->now.first_event == UINT64_MAX);
	while (rec->per_window * rec->series.cap < adds)
		rec->per_window *= 2;
	rec->filled = rec->per_window;
}

static void merge_window(struct frag_window *a, const struct frag_window *b)
{
	a->last_event = b->last_event;
	a->last_us = b->last_us;
#define FRAG_X_(name) \
	a->name##_min = FRAG_MIN(a->name##_min, b->name##_min); \
	a->name##_max = FRAG_MAX(a->name##_max, b->name##_max); \
	a->name##_last = b->name##_last;
	FRAG_SERIES_LIST(FRAG_X_)
#undef FRAG_X_
}

/* Keeps the losses at window ends. */
static void thin_losses(struct frag_series *s)
{
	size_t kept = 0, w = 0;

	for (size_t i = 0; i < s->losses_count; i++) {
		while (w < s->count && s->windows[w].last_event < s->losses[i].event)
			w++;
		if (w < s->count && s->windows[w].last_event == s->losses[i].event)
			s->losses[kept++] = s->losses[i];
	}
	s->losses_count = kept;
}

static void merge_all(struct frag_recorder *rec)
{
	struct frag_series *s = &rec->series;

	for (size_t i = 0; i < s->count / 2; i++) {
		s->windows[i] = s->windows[2 * i];
		merge_window(&s->windows[i], &s->windows[2 * i + 1]);
	}
	s->count /= 2;
	rec->per_window *= 2;
	thin_losses(s);
}

/* Moves `now` after the closed windows. */
static void close_window(struct frag_recorder *rec)
{
	if (rec->now.first_event != UINT64_MAX)
		rec->series.windows[rec->series.count++] = rec->now;
}

void frag_series_roll(struct frag_recorder *rec, uint64_t event, uint64_t time_us)
{
	struct frag_window *w = &rec->now;

	close_window(rec);
	if (rec->series.count == rec->series.cap)
		merge_all(rec);
	w->first_event = event;
	w->first_us = time_us;
#define FRAG_X_(name) \
	w->name##_min = UINT64_MAX; \
	w->name##_max = 0;
	FRAG_SERIES_LIST(FRAG_X_)
#undef FRAG_X_
	rec->filled = 0;
}

void frag_series_add_loss(struct frag_recorder *rec, const struct frag_loss *loss)
{
	struct frag_series *s = &rec->series;

	if (s->losses_count && s->losses[s->losses_count - 1].event == loss->event)
		s->losses_count--;
	/* Samples off window ends could fill the array; drops the newest, which matters least. */
	if (s->losses_count == s->cap)
		s->losses_count--;
	s->losses[s->losses_count++] = *loss;
}

void frag_series_finish(struct frag_recorder *rec, struct frag_series *out)
{
	close_window(rec);
	rec->series.events_per_window = rec->per_window;
	*out = rec->series;
	memset(rec, 0, sizeof(*rec));
}

void frag_series_release(struct frag_recorder *rec)
{
	FRAG_FREE(rec->series.windows, rec->series.losses);
	memset(rec, 0, sizeof(*rec));
}
