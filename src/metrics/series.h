/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder of the time series, for the engine's loop.
 *
 * A window collects `events_per_window` calls of frag_series_add: smallest, largest and last value
 * of each curve. When all windows are used and another one is needed, neighbours merge and windows
 * become twice as long, so memory is bounded and no peak is lost. The result depends only on the
 * events: the window length is the smallest power of two that fits.
 *
 * Losses are samples taken at window ends; merging keeps those that are still at a window end.
 *
 * 	frag_series_add(&rec, i, ev->time_us, requested, allocated, active, reserved);
 * 	if (FRAG_UNLIKELY(frag_series_want_loss(&rec)))
 * 		frag_series_add_loss(&rec, &loss);
 *
 * Ownership: the recorder owns its arrays until frag_series_finish moves them into the result.
 * frag_series_release is for early exits and may follow finish, too.
 */
#ifndef FRAG_METRICS_SERIES_H
#define FRAG_METRICS_SERIES_H

#include <frag/metrics.h>

struct frag_recorder {
	struct frag_window now; /* being filled while filled > 0 */
	uint64_t filled;	/* calls so far in `now` */
	uint64_t per_window;
	struct frag_series series; /* closed windows */
};

/* cap: number of windows, 0 = 1024, at least 2, rounded to an even number. Errors: FRAG_ENOMEM. */
int frag_series_init(struct frag_recorder *rec, size_t cap, struct frag_err *err);
/* Optional, before the first add: the expected number of adds. Saves merging, and samples of losses
 * that would be dropped later; a correct number does not change the result. */
void frag_series_expect(struct frag_recorder *rec, uint64_t adds);
/* Opens the next window with this event, closing the full one. Called by add only. */
void frag_series_roll(struct frag_recorder *rec, uint64_t event, uint64_t time_us);
/* A sample after the last add. The last one per window end counts. */
void frag_series_add_loss(struct frag_recorder *rec, const struct frag_loss *loss);
/* Closes the last window and moves everything into *out. The recorder is empty after it. */
void frag_series_finish(struct frag_recorder *rec, struct frag_series *out);
void frag_series_release(struct frag_recorder *rec);

/* State after event number `event`. event and time must not go back. */
static inline void frag_series_add(struct frag_recorder *rec, uint64_t event, uint64_t time_us,
				   uint64_t requested, uint64_t allocated, uint64_t active,
				   uint64_t reserved)
{
	struct frag_window *w = &rec->now;

	if (FRAG_UNLIKELY(rec->filled == rec->per_window)) {
		frag_series_roll(rec, event, time_us);
		w->reserved_last = ~reserved;
	}
	rec->filled++;
	w->last_event = event;
	w->last_us = time_us;
	/* Branches, not conditional moves: new extremes are rare or come in runs. */
#define FRAG_X_(name) \
	w->name##_last = name; \
	if (name < w->name##_min) \
		w->name##_min = name; \
	if (name > w->name##_max) \
		w->name##_max = name;
	FRAG_X_(requested)
	FRAG_X_(allocated)
	FRAG_X_(active)
	if (reserved != w->reserved_last) {
		FRAG_X_(reserved)
	}
#undef FRAG_X_
}

/* Was the last add the end of a window? */
static inline bool frag_series_want_loss(const struct frag_recorder *rec)
{
	return rec->filled == rec->per_window;
}

#endif
