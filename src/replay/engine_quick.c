/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop for plain allocs and frees, which are nearly all events of a trace.
 *
 * Handles a span of events at once: at most to the end of the time series' window or of the batch,
 * or to the next sample of host latency. Within it, sums and extremes are local; they go into the
 * run when the span ends. It ends early before the first event that is not plain, and after the
 * first that called the driver, because only that can change reserved bytes and modelled times.
 *
 * The result equals frag_run_after for each event: an alloc can only raise a sum and a free only
 * lower it, as long as the policy does not synchronise, and the window already includes the state
 * before the span.
 */
#include "run.h"

#define HOT __attribute__((always_inline)) inline

/* Sums of the run, and extremes of the window, updated in this span. */
struct span {
	uint64_t requested, requested_min, requested_max;
	uint64_t allocated, allocated_min, allocated_max;
	uint64_t bound, peak_bound;
	uint64_t waiting; /* constant */
	size_t allocs;
	uint64_t releases_before;
	double reserved; /* constant */
};

/* Number of events to handle before the next check. */
static size_t span_length(const struct frag_run *run, size_t count)
{
	if (run->careful || run->held_count || !run->rec.filled)
		return 0;
	count = FRAG_MIN(count, run->rec.per_window - run->rec.filled);
	count = FRAG_MIN(count, run->stop_at - run->events);
	return run->sample ? FRAG_MIN(count, run->sample - 1u) : count;
}

static HOT struct span span_begin(const struct frag_run *run)
{
	uint64_t reserved = run->dev->reserved_bytes - run->start_reserved;
	const struct frag_window *w = &run->rec.now;
	uint64_t active_min = w->active_min - FRAG_MIN(w->active_min, run->waiting);

	/* values between these bounds change no extreme of allocated and active */
	return (struct span){ .requested = run->requested,
			      .requested_min = w->requested_min,
			      .requested_max = w->requested_max,
			      .allocated = run->allocated,
			      .allocated_min = FRAG_MAX(w->allocated_min, active_min),
			      .allocated_max =
				      FRAG_MIN(w->allocated_max, w->active_max - run->waiting),
			      .bound = run->bound,
			      .peak_bound = run->peak_bound,
			      .waiting = run->waiting,
			      .releases_before = run->class_zero[FRAG_CLASS_RELEASE],
			      .reserved = (double)(int64_t)reserved };
}

/* Writes the sums into the run, and the states after each of the n events into the series. */
static void span_end(struct frag_run *run, struct span t, size_t n)
{
	struct frag_window *w = &run->rec.now;

	run->requested = w->requested_last = t.requested;
	run->allocated = w->allocated_last = t.allocated;
	w->active_last = t.allocated + t.waiting;
	run->bound = t.bound;
	run->peak_bound = t.peak_bound;
	run->retries += run->class_zero[FRAG_CLASS_RELEASE] - t.releases_before;
	if (!n)
		return;
	run->events += n;
	run->ops += n;
	run->allocs += t.allocs;
	run->frees += n - t.allocs;
	run->free_zero += n - t.allocs;
	run->sample -= run->sample ? (uint32_t)FRAG_MIN(n, run->sample - 1u) : 0;
	run->rec.filled += n;
	w->last_event = run->events - 1;
	w->last_us = run->last_us;
	w->requested_min = t.requested_min;
	w->requested_max = t.requested_max;
	w->allocated_min = FRAG_MIN(w->allocated_min, t.allocated_min);
	w->allocated_max = FRAG_MAX(w->allocated_max, t.allocated_max);
	w->active_min = FRAG_MIN(w->active_min, t.allocated_min + t.waiting);
	w->active_max = FRAG_MAX(w->active_max, t.allocated_max + t.waiting);
}

/* After span_end: an alloc that called the driver or was refused. */
static int hard_alloc(struct frag_run *run, const struct frag_event *e, struct frag_run_slot *s,
		      int rc)
{
	uint64_t ns = run->dev->driver_ns - run->seen_ns;

	if (rc < 0)
		return rc;
	run->sample -= run->sample > 1;
	frag_run_note_class(run, rc ? FRAG_CLASS_REFUSED : s->b.cls, ns);
	if (rc) {
		frag_run_dropped(run, e);
	} else {
		run->allocs++;
		run->ops++;
	}
	if (run->upcall_rc)
		return run->upcall_rc;
	frag_run_after(run, e);
	return 0;
}

/* After span_end: a free that called the driver or failed. */
static int hard_free(struct frag_run *run, const struct frag_event *e, int rc)
{
	uint64_t ns = run->dev->driver_ns - run->seen_ns;

	run->sample -= run->sample > 1;
	run->frees++;
	run->ops++;
	if (ns)
		frag_hist_add(&run->r.free_modelled_ns, ns);
	else
		run->free_zero++;
	if (rc)
		return rc;
	frag_run_after(run, e);
	return 0;
}

static HOT int quick_alloc(struct frag_run *run, const struct frag_event *e,
			   struct frag_run_slot *s, struct span *t)
{
	uint64_t bytes = e->bytes;
	struct frag_request req = { .bytes = bytes, .stream = e->stream, .pool = e->pool };
	int rc = run->policy.ops->alloc(run->policy.self, &req, &s->b, run->err);

	/* after the call, because a policy may write the whole block */
	s->b.stream = e->stream;
	s->b.requested = bytes;
	if (FRAG_UNLIKELY(rc))
		return rc;
	s->state = SLOT_LIVE;
	t->requested += bytes;
	t->allocated += s->b.granted;
	t->bound += (bytes + 511) & ~511ull;
	if (FRAG_UNLIKELY(t->bound > t->peak_bound))
		t->peak_bound = t->bound;
	return 0;
}

static HOT int quick_free(struct frag_run *run, struct frag_run_slot *s, struct span *t)
{
	t->requested -= s->b.requested;
	t->allocated -= s->b.granted;
	t->bound -= (s->b.requested + 511) & ~511ull;
	s->state = SLOT_EMPTY;
	return run->policy.ops->free(run->policy.self, &s->b, run->err);
}

/* Advances recorded time, like frag_run_after. */
static HOT void quick_time(struct frag_run *run, uint64_t us, const struct span *t)
{
	if (us > run->last_us) {
		double dt = (double)(int64_t)(us - run->last_us);

		run->active_time += dt * (double)(int64_t)(t->allocated + t->waiting);
		run->reserved_time += dt * t->reserved;
	}
	run->last_us = us;
}

/* Kind and flags together: an event with a flag is not plain. */
static HOT unsigned kind_and_flags(const struct frag_event *e)
{
	return e->kind | (unsigned)e->flags << 8;
}

/* -1: not plain, nothing done. 0: done. 1: done, with *rc, but not plain after all. */
static HOT int quick_event(struct frag_run *run, const struct frag_event *e, struct span *t,
			   int *rc)
{
	unsigned what = kind_and_flags(e);
	struct frag_device *dev = run->dev;
	struct frag_run_slot *s = &run->slots[e->slot];

	if (what > FRAG_EV_FREE)
		return -1;
	FRAG_ASSERT(e->slot < run->slots_count);
	if (FRAG_UNLIKELY(s->state != (what == FRAG_EV_FREE ? SLOT_LIVE : SLOT_EMPTY)))
		return -1;
	dev->now_ns = (uint64_t)e->time_us * 1000; /* else 40 bits wide */
	if (what == FRAG_EV_ALLOC) {
		*rc = quick_alloc(run, e, s, t);
		if (FRAG_UNLIKELY(*rc || dev->driver_calls != run->seen_calls))
			return 1;
		run->class_zero[s->b.cls]++;
		t->allocs++;
		if (t->requested > t->requested_max)
			t->requested_max = t->requested;
		if (t->allocated > t->allocated_max)
			t->allocated_max = t->allocated;
	} else {
		*rc = quick_free(run, s, t);
		if (FRAG_UNLIKELY(*rc || dev->driver_calls != run->seen_calls))
			return 1;
		if (t->requested < t->requested_min)
			t->requested_min = t->requested;
		if (t->allocated < t->allocated_min)
			t->allocated_min = t->allocated;
	}
	quick_time(run, e->time_us, t);
	return 0;
}

size_t frag_run_quick(struct frag_run *run, const struct frag_event *events, size_t count, int *rc)
{
	const struct frag_event *e = events, *end = events + span_length(run, count);
	struct span t = span_begin(run);
	int how = 0, result = 0;

	_Static_assert(FRAG_EV_ALLOC == 0 && FRAG_EV_FREE == 1, "plain kinds come first");
	*rc = 0;
	if (e == end)
		return 0;
	for (; e != end; e++) {
		how = quick_event(run, e, &t, &result);
		if (FRAG_UNLIKELY(how))
			break;
	}
	span_end(run, t, (size_t)(e - events));
	if (how > 0) {
		*rc = e->kind == FRAG_EV_ALLOC ? hard_alloc(run, e, &run->slots[e->slot], result)
					       : hard_free(run, e, result);
		run->events += !*rc;
		return (size_t)(e - events) + 1;
	}
	if (e != events)
		frag_run_sample_loss(run, e - 1);
	return (size_t)(e - events);
}
