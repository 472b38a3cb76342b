/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a program over its steps; see history.h. Two passes over the events: one
 * finds the ends of steps (steps.c), the other follows the blocks from step to step.
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
	size_t step;
	/* bytes and blocks live now by the step of their birth: those before `step` are kept */
	uint64_t kept, kept_blocks;
	uint64_t *born, *born_blocks; /* [steps + 2] */
	double *kept_stack;	      /* [stacks_count], of blocks born before `step` */
	double *fresh;		      /* of those born in it */
	uint32_t *touched;	      /* stacks with fresh bytes */
	size_t touched_count;
	uint8_t *is_touched;
};

static void begin_step(struct follow *f)
{
	struct frag_step *s = &f->h->steps[f->step];

	s->first = f->event;
	s->peak_live = f->live;
	s->peak_event = f->event;
	s->optimizer_from = UINT64_MAX;
}

/* Blocks born in the step that ends are older than the next. */
static void age(struct follow *f)
{
	for (size_t i = 0; i < f->touched_count; i++) {
		uint32_t stack = f->touched[i];

		f->kept_stack[stack] += f->fresh[stack];
		f->fresh[stack] = 0;
		f->is_touched[stack] = 0;
	}
	f->touched_count = 0;
	f->kept += f->born[f->step];
	f->kept_blocks += f->born_blocks[f->step];
}

static void end_step(struct follow *f)
{
	struct frag_history *h = f->h;
	struct frag_step *s = &h->steps[f->step];

	s->end = f->event;
	s->kept_end = f->kept;
	s->kept_blocks = f->kept_blocks;
	if (f->step == h->half || f->step + 1 == h->count)
		for (size_t i = 0; i < h->stacks_count; i++)
			h->grew[i] = f->kept_stack[i] - (f->step == h->half ? 0 : h->grew[i]);
	if (f->step == h->half)
		memset(h->flow, 0, h->stacks_count * sizeof(*h->flow));
	age(f);
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
	f->born_blocks[f->step]++;
	f->allocs++;
	s->flow_bytes += b->bytes;
	if (f->step < f->h->count)
		f->h->flow[stack] += (double)b->bytes;
	f->fresh[stack] += (double)b->bytes;
	if (!f->is_touched[stack]) {
		f->is_touched[stack] = 1;
		f->touched[f->touched_count++] = stack;
	}
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
	f->born_blocks[b->step]--;
	if (b->step < f->step) {
		f->kept -= b->bytes;
		f->kept_blocks--;
		f->kept_stack[b->stack] -= (double)b->bytes;
	} else {
		f->fresh[b->stack] -= (double)b->bytes;
	}
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
									.stream = e->stream };
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

static int follow_batch(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
			struct frag_err *err)
{
	struct follow *f = ctx;

	(void)first;
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind < FRAG_EV_TRIM && e[i].slot >= f->blocks_count)
			return frag_fail(err, FRAG_EINPUT, "event %llu names a slot out of range",
					 (unsigned long long)f->event);
		follow_event(f, &e[i]);
	}
	if (n)
		f->h->duration_us = e[n - 1].time_us;
	return 0;
}

static int follow_open(struct follow *f, const struct frag_events *ev, struct frag_err *err)
{
	size_t steps = f->h->count + 2, stacks = f->h->stacks_count;

	f->blocks_count = frag_events_dev(ev)->slots_count;
	f->blocks = frag_host_calloc(f->blocks_count + 1, sizeof(*f->blocks));
	f->born = frag_host_calloc(steps, sizeof(*f->born));
	f->born_blocks = frag_host_calloc(steps, sizeof(*f->born_blocks));
	f->kept_stack = frag_host_calloc(stacks, sizeof(*f->kept_stack));
	f->fresh = frag_host_calloc(stacks, sizeof(*f->fresh));
	f->touched = frag_host_calloc(stacks, sizeof(*f->touched));
	f->is_touched = frag_host_calloc(stacks, 1);
	FRAG_CHECK_ALLOC(f->blocks && f->born && f->born_blocks && f->kept_stack && f->fresh &&
				 f->touched && f->is_touched,
			 "history", err);
	begin_step(f);
	return 0;
}

static void follow_close(struct follow *f)
{
	FRAG_FREE(f->blocks, f->born, f->born_blocks, f->kept_stack, f->fresh, f->touched,
		  f->is_touched);
}

static int follow_all(const struct frag_events *ev, struct frag_history *h, struct frag_err *err)
{
	struct follow f = { .h = h };
	int rc = follow_open(&f, ev, err) ?: frag_events_each(ev, follow_batch, &f, err);

	if (!rc && f.step < h->count) /* the last step ends with the last event */
		end_step(&f);
	if (!rc) {
		struct frag_step *last = &h->steps[h->count];

		last->end = f.event;
		last->kept_end = f.kept;
		h->more = last->flow_bytes > 0;
		h->events = f.event;
	}
	follow_close(&f);
	return rc;
}

int frag_history_make(const struct frag_events *ev, struct frag_history *out, struct frag_err *err)
{
	struct frag_history *h = out;
	struct frag_step_ends ends;
	int rc = 0;

	*h = (struct frag_history){ .stacks_count = FRAG_MAX(ev->trace->stacks.count, (size_t)1) };
	FRAG_TRY(frag_step_ends_find(ev, &ends, err));
	h->from = ends.from;
	h->stride = ends.stride;
	h->count = ends.count;
	h->allocs = ends.allocs;
	h->last_alloc = ends.last_alloc;
	h->half = h->count / 2;
	h->steps = frag_host_calloc(h->count + 2, sizeof(*h->steps));
	h->grew = frag_host_calloc(h->stacks_count, sizeof(*h->grew));
	h->flow = frag_host_calloc(h->stacks_count, sizeof(*h->flow));
	if (!h->steps || !h->grew || !h->flow)
		rc = frag_fail_nomem(err, "history");
	for (size_t i = 0; !rc && i < h->count; i++)
		h->steps[i].end = ends.list[i];
	frag_host_free(ends.list);
	if (!rc)
		rc = follow_all(ev, h, err);
	if (rc)
		frag_history_release(h);
	return rc;
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

struct live_at {
	uint64_t at, event;
	size_t stacks_count, slots;
	double *live;
	struct block *blocks;
};

static int live_batch(void *ctx, const struct frag_event *e, size_t n, uint64_t first,
		      struct frag_err *err)
{
	struct live_at *l = ctx;

	(void)err;
	for (size_t i = 0; i < n; i++) {
		struct block *b;

		if (first + i > l->at)
			return 1;
		if (e[i].kind > FRAG_EV_FREE_REQUESTED || e[i].slot >= l->slots)
			continue;
		b = &l->blocks[e[i].slot];
		if (e[i].kind == FRAG_EV_ALLOC)
			*b = (struct block){ frag_live_bytes(e[i].bytes), 0,
					     e[i].stack < l->stacks_count ? e[i].stack : 0, true };
		else
			b->live = false;
	}
	return 0;
}

int frag_history_live_at(const struct frag_events *ev, uint64_t at, size_t stacks_count,
			 double *live, struct frag_err *err)
{
	struct live_at l = { .at = at,
			     .stacks_count = stacks_count,
			     .live = live,
			     .slots = frag_events_dev(ev)->slots_count };
	int rc;

	FRAG_TRY_CALLOC(l.blocks, l.slots + 1, "history", err);
	rc = frag_events_each(ev, live_batch, &l, err);
	for (size_t i = 0; !rc && i < l.slots; i++)
		if (l.blocks[i].live)
			live[l.blocks[i].stack] += (double)l.blocks[i].bytes;
	frag_host_free(l.blocks);
	return rc;
}
