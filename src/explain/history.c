/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a program over its steps; see history.h. Two passes over the events: the first
 * finds where steps end (steps.c), the second follows the blocks from step to step.
 */
#include "history.h"

#include <string.h>

#include "lib/bisect.h"

struct block { /* by slot */
	uint64_t bytes;
	uint32_t step, stack;
	bool live;
};

struct follow {
	struct frag_history *h;
	struct block *blocks;
	size_t blocks_count;
	uint64_t event, live, live_blocks, allocs;
	uint64_t until; /* event, the last one that counts */
	size_t step;
	uint64_t *born; /* [steps + 2] bytes live now by the step of their birth */
	uint64_t kept;	/* of those born before `step` */
};

static void begin_step(struct follow *f)
{
	struct frag_step *s = &f->h->steps[f->step];

	s->first = f->event;
	s->peak_live = f->live;
	s->peak_event = f->event;
	s->optimizer_from = UINT64_MAX;
}

/* Adds what each stack has kept, `times` over. */
static void add_kept(const struct follow *f, double times)
{
	for (size_t i = 0; i < f->blocks_count; i++) {
		const struct block *b = &f->blocks[i];

		if (b->live && b->step < f->step)
			f->h->grew[b->stack] += times * (double)b->bytes;
	}
}

static void end_step(struct follow *f)
{
	struct frag_history *h = f->h;
	struct frag_step *s = &h->steps[f->step];

	s->end = f->event;
	s->kept_end = f->kept;
	if (f->step == h->half) {
		add_kept(f, -1);
		memset(h->flow, 0, h->stacks_count * sizeof(*h->flow));
	}
	if (f->step + 1 == h->count)
		add_kept(f, 1);
	f->kept += f->born[f->step];
	f->step++;
	begin_step(f);
}

static void put(struct follow *f, const struct frag_event *e)
{
	struct block *b = &f->blocks[e->slot];
	uint32_t stack = e->stack < f->h->stacks_count ? e->stack : 0;
	struct frag_step *s = &f->h->steps[f->step];

	*b = (struct block){ frag_live_bytes(e->bytes), (uint32_t)f->step, stack, true };
	f->live += b->bytes;
	f->live_blocks++;
	f->h->most_blocks = FRAG_MAX(f->h->most_blocks, f->live_blocks);
	f->born[f->step] += b->bytes;
	f->allocs++;
	s->flow_bytes += b->bytes;
	if (f->step < f->h->count)
		f->h->flow[stack] += (double)b->bytes;
	if (f->live > s->peak_live) {
		s->peak_live = f->live;
		s->peak_event = f->event;
	}
	if (f->live > f->h->peak_live) {
		f->h->peak_live = f->live;
		f->h->peak_event = f->event;
	}
}

static void take(struct follow *f, const struct frag_event *e)
{
	struct block *b = &f->blocks[e->slot];

	if (!b->live)
		return;
	b->live = false;
	f->live -= b->bytes;
	f->live_blocks--;
	f->born[b->step] -= b->bytes;
	if (!f->h->refusals_count)
		f->h->given_back = FRAG_MAX(f->h->given_back, f->h->peak_live - f->live);
	if (b->step < f->step)
		f->kept -= b->bytes;
}

static void refused(struct follow *f, const struct frag_event *e)
{
	struct frag_history *h = f->h;

	if (h->refusals_count < FRAG_REFUSALS_KEPT)
		h->refusals[h->refusals_count] = (struct frag_refusal){ .event = f->event,
									.time_us = e->time_us,
									.bytes = e->bytes,
									.step = f->step,
									.live_bytes = f->live,
									.stack = e->stack,
									.stream = e->stream,
									.pool = e->pool };
	h->refusals_count++;
}

static void follow_event(struct follow *f, const struct frag_event *e)
{
	struct frag_history *h = f->h;

	if (f->step < h->count && f->event == h->steps[f->step].end)
		end_step(f);
	switch (e->kind) {
	case FRAG_EV_ALLOC:
		put(f, e);
		break;
	case FRAG_EV_FREE:
	case FRAG_EV_FREE_REQUESTED:
		take(f, e);
		break;
	case FRAG_EV_REFUSED:
		refused(f, e);
		break;
	case FRAG_EV_TRIM:
		if (h->trims_count < FRAG_REFUSALS_KEPT)
			h->trims[h->trims_count] =
				(struct frag_trim){ f->event, e->time_us, h->allocs - f->allocs,
						    (e->flags & FRAG_EVF_UNSURE) != 0 };
		h->trims_count++;
		break;
	case FRAG_EV_MARK:
		if (e->flags & FRAG_EVF_STEP && !(e->flags & FRAG_EVF_END) &&
		    h->steps[f->step].optimizer_from == UINT64_MAX)
			h->steps[f->step].optimizer_from = f->event;
		break;
	default:
		break;
	}
	f->event++;
}

static void follow_close(struct follow *f)
{
	FRAG_FREE(f->blocks, f->born);
}

/* Up to f->until. */
static int follow_all(const struct frag_events *ev, struct follow *f, struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(ev);

	f->blocks_count = dev->slots_count;
	FRAG_TRY_CALLOC(f->blocks, f->blocks_count + 1, "history", err);
	FRAG_TRY_CALLOC(f->born, f->h->count + 2, "history", err);
	begin_step(f);
	for (size_t i = 0; i < dev->events_count && i <= f->until; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind < FRAG_EV_TRIM && e->slot >= f->blocks_count)
			return FRAG_INPUT(err, "event %zu names a slot out of range", i);
		follow_event(f, e);
	}
	return 0;
}

int frag_history_make(const struct frag_events *ev, struct frag_history *h, struct frag_err *err)
{
	FRAG_AUTO(follow_close) struct follow f = { .h = h, .until = UINT64_MAX };
	struct frag_step_ends ends;
	struct frag_step *last;

	*h = (struct frag_history){ .stacks_count = FRAG_MAX(ev->trace->stacks.count, (size_t)1) };

	FRAG_TRY(frag_step_ends_find(ev, &ends, err));
	h->from = ends.from;
	h->stride = ends.stride;
	h->count = ends.count;
	h->allocs = ends.allocs;
	h->first_mark = ends.first_mark;
	h->half = h->count / 2;
	h->steps = frag_host_calloc(h->count + 2, sizeof(*h->steps));
	for (size_t i = 0; h->steps && i < h->count; i++)
		h->steps[i].end = ends.list[i];
	frag_host_free(ends.list);
	FRAG_CHECK_ALLOC(h->steps, "history", err);
	FRAG_TRY_CALLOC(h->grew, h->stacks_count, "history", err);
	FRAG_TRY_CALLOC(h->flow, h->stacks_count, "history", err);
	FRAG_TRY(follow_all(ev, &f, err));
	if (f.step < h->count) /* the last step ends with the last event */
		end_step(&f);
	last = &h->steps[h->count];
	last->end = f.event;
	last->kept_end = f.kept;
	h->more = last->flow_bytes > 0;
	h->events = f.event;
	if (f.event)
		h->duration_us = frag_events_dev(ev)->events[f.event - 1].time_us;
	return 0;
}

void frag_history_release(struct frag_history *h)
{
	FRAG_FREE(h->steps, h->grew, h->flow);
	*h = (struct frag_history){ 0 };
}

size_t frag_history_step(const struct frag_history *h, uint64_t event)
{
	size_t at;

	FRAG_BISECT(at, 0, h->count, h->steps[at].end <= event);
	return at;
}

/* ---- one moment ------------------------------------------------------------------------ */

int frag_history_live_at(const struct frag_events *ev, uint64_t at, size_t stacks_count,
			 double *live, struct frag_err *err)
{
	struct frag_step step = { .end = UINT64_MAX };
	struct frag_history h = { .steps = &step, .stacks_count = stacks_count };
	FRAG_AUTO(follow_close) struct follow f = { .h = &h, .until = at };

	FRAG_TRY(follow_all(ev, &f, err));
	for (size_t i = 0; i < f.blocks_count; i++)
		if (f.blocks[i].live)
			live[f.blocks[i].stack] += (double)f.blocks[i].bytes;
	return 0;
}
