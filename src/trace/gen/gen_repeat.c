/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats a window of a trace; see gen_repeat.h.
 *
 * The same code counts and generates: it counts three rounds without output. From the second round
 * on, all rounds have the same events except for slots and times, so the third is representative.
 */
#include "gen_repeat.h"

#include <stdio.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/term.h"
#include "trace/cft/cft.h"

#define TIME_END (1ull << 40)	   /* of an event's time, in microseconds */
#define ROOM (2u * FRAG_CFT_BATCH) /* events that wait for a block */
#define COUNTED 3u		   /* rounds */

enum life { LIFE_NONE, LIFE_LIVE, LIFE_WAITING, LIFE_VOID };

/* What a slot of the recording stands for now. */
struct now {
	struct frag_event alloc;
	uint32_t slot; /* in the result */
	uint8_t life;
	bool initial; /* may complete without a request */
};

struct maker {
	const struct frag_window_of_dev *window;
	const struct frag_trace_dev *dev;
	struct now *now;   /* [dev->slots_count] */
	struct now *moved; /* [carried_count] */
	/* slots of the result: the one freed last is reused first */
	uint32_t *given;
	uint32_t given_count, used;
	uint64_t shift_us;
	struct frag_event *waiting; /* [ROOM] */
	size_t waiting_count;
	uint64_t made;	    /* without those that wait */
	struct output *out; /* NULL: only counted */
};

struct output {
	struct frag_cft_writer *writer;
	uint32_t dev; /* an index */
	struct frag_progress *progress;
	uint64_t done, total;
};

/* Hands events over: all of them at the end of a device. */
static int flush(struct maker *m, bool end, struct frag_err *err)
{
	struct output *o = m->out;
	size_t taken = m->waiting_count;

	if (o) {
		FRAG_TRY(frag_cft_put_events(o->writer, o->dev, m->waiting, NULL, m->waiting_count,
					     end, &taken, err));
		o->done += taken;
		frag_progress_update(o->progress, o->done, o->total);
		if (frag_interrupted())
			return frag_fail(err, FRAG_EINTR, "interrupted");
	}
	m->made += taken;
	m->waiting_count -= taken;
	memmove(m->waiting, m->waiting + taken, m->waiting_count * sizeof(*m->waiting));
	return 0;
}

/* e, but with this slot and the time of the round. */
static int put(struct maker *m, const struct frag_event *e, uint32_t slot, struct frag_err *err)
{
	struct frag_event *out = &m->waiting[m->waiting_count++];

	*out = *e;
	out->slot = slot;
	out->time_us = e->time_us + m->shift_us;
	return m->waiting_count == ROOM ? flush(m, false, err) : 0;
}

static uint32_t take_slot(struct maker *m)
{
	return m->given_count ? m->given[--m->given_count] : m->used++;
}

static int do_alloc(struct maker *m, const struct frag_event *e, struct frag_err *err)
{
	struct now *n = &m->now[e->slot];

	*n = (struct now){ .alloc = *e,
			   .slot = take_slot(m),
			   .life = LIFE_LIVE,
			   .initial = e->flags & FRAG_EVF_INITIAL };
	return put(m, e, n->slot, err);
}

static int do_free(struct maker *m, const struct frag_event *e, struct frag_err *err)
{
	struct now *n = &m->now[e->slot];
	struct frag_event copy = *e;

	if (n->life == LIFE_VOID) {
		if (e->kind != FRAG_EV_FREE_REQUESTED)
			n->life = LIFE_NONE;
		return 0;
	}
	FRAG_ASSERT(n->life != LIFE_NONE);
	if (e->kind == FRAG_EV_FREE_REQUESTED) {
		n->life = LIFE_WAITING;
		return put(m, e, n->slot, err);
	}
	/* a block from before the history could complete without a request; not one made here */
	if (e->kind == FRAG_EV_FREE_COMPLETED && n->life == LIFE_LIVE && !n->initial) {
		copy.kind = FRAG_EV_FREE;
		copy.flags = 0;
	}
	n->life = LIFE_NONE;
	m->given[m->given_count++] = n->slot;
	return put(m, &copy, n->slot, err);
}

static int do_events(struct maker *m, size_t from, size_t to, struct frag_err *err)
{
	const struct frag_event *e = m->dev->events + from, *end = m->dev->events + to;

	for (; e < end; e++) {
		int rc;

		if (e->kind == FRAG_EV_ALLOC)
			rc = do_alloc(m, e, err);
		else if (e->kind <= FRAG_EV_FREE_COMPLETED)
			rc = do_free(m, e, err);
		else
			rc = put(m, e, e->slot, err);
		FRAG_TRY(rc);
	}
	return 0;
}

/* Between two rounds: left blocks become begun blocks. */
static int turn(struct maker *m, struct frag_err *err)
{
	const struct frag_window_of_dev *w = m->window;
	uint64_t last_us = m->dev->events[w->to - 1].time_us;

	for (size_t i = 0; i < w->rest_count; i++) {
		struct now *n = &m->now[w->rest[i]];
		struct frag_event e = { .kind = n->life == LIFE_WAITING ? FRAG_EV_FREE_COMPLETED
									: FRAG_EV_FREE,
					.bytes = n->alloc.bytes,
					.pool = n->alloc.pool,
					.stream = n->alloc.stream,
					.time_us = last_us,
					.slot = w->rest[i] };

		if (n->life == LIFE_VOID)
			n->life = LIFE_NONE;
		else
			FRAG_TRY(do_free(m, &e, err));
	}
	for (size_t i = 0; i < w->carried_count; i++) {
		m->moved[i] = m->now[w->carried[i].left];
		m->now[w->carried[i].left].life = LIFE_NONE;
	}
	for (size_t i = 0; i < w->carried_count; i++)
		m->now[w->carried[i].begun] = m->moved[i];
	for (size_t i = 0; i < w->void_count; i++)
		m->now[w->void_[i]].life = LIFE_VOID;
	return 0;
}

static int do_rounds(struct maker *m, uint64_t times, uint64_t period_us, struct frag_err *err)
{
	FRAG_TRY(do_events(m, 0, m->window->from, err));
	if (m->window->to > m->window->from) {
		for (uint64_t i = 0; i < times; i++) {
			if (i)
				FRAG_TRY(turn(m, err));
			m->shift_us = i * period_us;
			FRAG_TRY(do_events(m, m->window->from, m->window->to, err));
		}
	}
	m->shift_us = (times - 1) * period_us;
	FRAG_TRY(do_events(m, m->window->to, m->dev->events_count, err));
	return flush(m, true, err);
}

/* One device. *made: its events, *slots: the most live at a time. */
static int make(const struct frag_repeat *r, uint32_t d, uint64_t times, struct output *out,
		uint64_t *made, uint32_t *slots, struct frag_err *err)
{
	struct maker m = { .window = &r->windows[d], .dev = &r->trace->devs[d], .out = out };
	int rc;

	m.now = frag_host_calloc(m.dev->slots_count, sizeof(*m.now));
	m.moved = frag_host_calloc(m.window->carried_count, sizeof(*m.moved));
	m.given = frag_host_calloc(m.dev->slots_count, sizeof(*m.given));
	m.waiting = frag_host_alloc(ROOM * sizeof(*m.waiting));
	rc = m.now && m.moved && m.given && m.waiting ? do_rounds(&m, times, r->period_us, err)
						      : frag_fail_nomem(err, "repeated trace");
	*made = m.made;
	*slots = m.used;
	FRAG_FREE(m.now, m.moved, m.given, m.waiting);
	return rc;
}

/* ---- planning --------------------------------------------------------------------- */

/* Events of one, two and three rounds on a device, and its slots for each. */
struct counts {
	uint64_t made[COUNTED];
	uint32_t slots[COUNTED];
};

static uint64_t count_of(const struct counts *c, uint64_t times)
{
	if (times <= COUNTED)
		return c->made[times - 1];
	return c->made[COUNTED - 1] +
	       (times - COUNTED) * (c->made[COUNTED - 1] - c->made[COUNTED - 2]);
}

/* So often that there are at least `events` in all. */
static int times_for(struct frag_repeat *r, const struct counts *c, uint64_t events,
		     struct frag_err *err)
{
	uint64_t made[COUNTED] = { 0 }, more;

	for (uint32_t d = 0; d < r->trace->devs_count; d++)
		for (unsigned i = 0; i < COUNTED; i++)
			made[i] += c[d].made[i];
	for (r->times = 1; r->times <= COUNTED; r->times++)
		if (made[r->times - 1] >= events)
			return 0;
	more = made[COUNTED - 1] - made[COUNTED - 2];
	if (!more)
		return FRAG_USAGE(err, "a round of '%s' has no events", r->trace->name);
	r->times = COUNTED + (events - made[COUNTED - 1] + more - 1) / more;
	return 0;
}

static int check_length(const struct frag_repeat *r, struct frag_err *err)
{
	uint64_t room = TIME_END, last = 0;

	for (uint32_t d = 0; d < r->trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &r->trace->devs[d];

		for (size_t i = 0; i < dev->events_count; i++)
			last = FRAG_MAX(last, (uint64_t)dev->events[i].time_us);
	}
	room = (room - 1 - last) / FRAG_MAX(r->period_us, 1ull);
	if (r->times - 1 > room)
		return FRAG_USAGE(err,
				  "%llu rounds exceed the 12.7 days that a trace can last; at most "
				  "%llu fit",
				  (unsigned long long)r->times, (unsigned long long)room + 1);
	return 0;
}

/* The head of the result, with strings and stacks of the recording. */
static int make_head(struct frag_repeat *r, const struct counts *c, struct frag_err *err)
{
	const struct frag_trace *t = r->trace;
	const char *name = t->name ? t->name : "trace";
	struct frag_trace *head = &r->head;
	size_t len = strlen(name) + 32;

	*head = *t;
	head->format = "gen-repeat";
	head->file_bytes = 0;
	head->name = frag_host_alloc(len);
	head->devs = frag_host_calloc(t->devs_count, sizeof(*head->devs));
	FRAG_CHECK_ALLOC(head->name && head->devs, "repeated trace", err);
	snprintf(head->name, len, "%s.x%llu", name, (unsigned long long)r->times);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		const struct frag_trace_dev *dev = &t->devs[d];

		head->devs[d] = (struct frag_trace_dev){
			.ordinal = dev->ordinal,
			.events_count = count_of(&c[d], r->times),
			.slots_count = c[d].slots[FRAG_MIN(r->times, (uint64_t)COUNTED) - 1],
			.streams = dev->streams,
			.streams_count = dev->streams_count,
			.pools = dev->pools,
			.pools_count = dev->pools_count,
		};
		r->events += head->devs[d].events_count;
	}
	return 0;
}

static int plan(struct frag_repeat *r, const struct frag_repeat_options *opt, struct counts *c,
		struct frag_err *err)
{
	for (uint32_t d = 0; d < r->trace->devs_count; d++) {
		FRAG_TRY(frag_window_init(&r->windows[d], &r->trace->devs[d], opt->first, opt->last,
					  err));
		r->period_us = FRAG_MAX(r->period_us, r->windows[d].period_us);
	}
	for (uint32_t d = 0; d < r->trace->devs_count; d++)
		for (unsigned i = 0; i < COUNTED; i++)
			FRAG_TRY(make(r, d, i + 1, NULL, &c[d].made[i], &c[d].slots[i], err));
	r->times = opt->times;
	if (!r->times)
		FRAG_TRY(times_for(r, c, opt->events, err));
	FRAG_TRY(check_length(r, err));
	return make_head(r, c, err);
}

int frag_repeat_init(struct frag_repeat *r, const struct frag_trace *trace,
		     const struct frag_repeat_options *opt, struct frag_err *err)
{
	struct counts *c = frag_host_calloc(trace->devs_count, sizeof(*c));
	int rc;

	*r = (struct frag_repeat){ .trace = trace };
	r->windows = frag_host_calloc(trace->devs_count, sizeof(*r->windows));
	rc = c && r->windows ? plan(r, opt, c, err) : frag_fail_nomem(err, "repeated trace");
	frag_host_free(c);
	if (rc)
		frag_repeat_release(r);
	return rc;
}

void frag_repeat_release(struct frag_repeat *r)
{
	for (uint32_t d = 0; r->windows && d < r->trace->devs_count; d++)
		frag_window_release(&r->windows[d]);
	FRAG_FREE(r->windows, r->head.name, r->head.devs);
	*r = (struct frag_repeat){ 0 };
}

/* ---- a file, written while it is made ---- */

static int put_made(void *ctx, struct frag_cft_writer *w, struct frag_err *err)
{
	const struct frag_repeat *r = ctx;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct output out = { .writer = w, .progress = &progress, .total = r->events };

	frag_progress_begin(&progress, "writing");
	for (; out.dev < r->trace->devs_count; out.dev++) {
		const struct frag_trace_dev *head = &r->head.devs[out.dev];
		uint64_t made;
		uint32_t slots;

		FRAG_TRY(make(r, out.dev, r->times, &out, &made, &slots, err));
		FRAG_ASSERT(made == head->events_count && slots == head->slots_count);
	}
	return 0;
}

int frag_repeat_write(const struct frag_repeat *r, const char *path, struct frag_err *err)
{
	return frag_cft_write_made(&r->head, path, put_made, (void *)r, err);
}
