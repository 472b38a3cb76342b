/* SPDX-License-Identifier: Apache-2.0 */
/* Where a trace can be repeated, and which blocks are carried between rounds; see gen_repeat.h. */
#include "gen_repeat.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT64_MAX

/* A block at one moment. Two are interchangeable if all but `born` and `order` are the same. */
struct held {
	uint64_t bytes, born; /* born: index of its alloc, NONE = no block */
	uint64_t order;	      /* among interchangeable ones, the lowest first */
	uint32_t slot;
	uint16_t stream, pool;
	bool waiting; /* freed, but a stream still uses it */
};

/* ---- the state as events go by ------------------------------------------------------ */

struct state {
	struct held *slots; /* [slots_count] */
	uint32_t slots_count;
	uint64_t bytes;	    /* live or waiting */
	uint64_t signature; /* sum over the blocks: the same blocks, the same sum */
};

static int state_init(struct state *s, const struct frag_trace_dev *dev, struct frag_err *err)
{
	*s = (struct state){ .slots_count = dev->slots_count };
	FRAG_TRY_CALLOC(s->slots, dev->slots_count, "blocks of the trace", err);
	for (uint32_t i = 0; i < dev->slots_count; i++)
		s->slots[i] = (struct held){ .born = NONE, .slot = i };
	return 0;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static uint64_t signature_of(const struct held *h)
{
	return mix(mix(h->bytes) +
		   ((uint64_t)h->pool << 32 | (uint64_t)h->stream << 8 | h->waiting));
}

static void state_step(struct state *s, const struct frag_event *e, uint64_t index)
{
	struct held *h;

	if (e->kind > FRAG_EV_FREE_COMPLETED)
		return;
	h = &s->slots[e->slot];
	if (e->kind == FRAG_EV_ALLOC) {
		*h = (struct held){ .bytes = e->bytes,
				    .born = index,
				    .slot = e->slot,
				    .stream = e->stream,
				    .pool = e->pool };
		s->bytes += h->bytes;
		s->signature += signature_of(h);
		return;
	}
	s->signature -= signature_of(h);
	if (e->kind == FRAG_EV_FREE_REQUESTED) {
		h->waiting = true;
		s->signature += signature_of(h);
		return;
	}
	s->bytes -= h->bytes;
	h->born = NONE;
}

/* ---- choosing a window -------------------------------------------------------------- */

/* Can the trace be cut before event i? Not inside the initial blocks, nor between a malloc and the
 * frees that complete in it. */
static bool may_cut(const struct frag_trace_dev *dev, size_t i)
{
	const struct frag_event *e = dev->events;

	if (i < dev->events_count && e[i].flags & FRAG_EVF_INITIAL && e[i].kind == FRAG_EV_ALLOC)
		return false;
	return !i || e[i - 1].kind != FRAG_EV_FREE_COMPLETED ||
	       !(e[i - 1].flags & FRAG_EVF_AT_SYNC);
}

static size_t initial_of(const struct frag_trace_dev *dev)
{
	size_t n = 0;

	while (n < dev->events_count && dev->events[n].kind == FRAG_EV_ALLOC &&
	       dev->events[n].flags & FRAG_EVF_INITIAL)
		n++;
	return n;
}

/* Step k: from just after the end mark of step k - 1 to just after its own. */
static int take_steps(struct frag_window_of_dev *w, const struct frag_trace_dev *dev,
		      uint32_t first, uint32_t last, struct frag_err *err)
{
	uint32_t step = 0;

	if (!first) {
		first = FRAG_MIN(w->steps, 2u);
		last = w->steps;
	}
	if (last > w->steps || first > last)
		return FRAG_USAGE(
			err, "no steps %u..%u on device %u, which has %u; name others with --steps",
			first, last, dev->ordinal, w->steps);
	w->from = initial_of(dev);
	for (size_t i = 0; i < dev->events_count; i++) {
		if (!frag_event_ends_step(&dev->events[i]))
			continue;
		step++;
		if (step == first - 1)
			w->from = i + 1;
		if (step == last)
			w->to = i + 1;
	}
	return 0;
}

/* Before an event, where the trace can be cut. */
struct moment {
	uint64_t signature, bytes;
	size_t event;
};

FRAG_COMPARE(compare_moments, struct moment, FRAG_ORDER(x->signature, y->signature),
	     FRAG_ORDER(x->event, y->event))

/* All of them, by signature; returns how many. */
static size_t moments(const struct frag_trace_dev *dev, struct state *s, struct moment *out,
		      uint64_t *peak)
{
	size_t n = 0;

	for (size_t i = 0; i <= dev->events_count; i++) {
		if (may_cut(dev, i))
			out[n++] = (struct moment){ s->signature, s->bytes, i };
		if (i < dev->events_count)
			state_step(s, &dev->events[i], i);
		*peak = FRAG_MAX(*peak, s->bytes);
	}
	qsort(out, n, sizeof(*out), compare_moments);
	return n;
}

/* The longest stretch between two moments with the same blocks, of at least so many bytes. Is it
 * half of the trace? */
static bool longest(struct frag_window_of_dev *w, const struct frag_trace_dev *dev,
		    const struct moment *m, size_t n, uint64_t least)
{
	w->from = w->to = 0;
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && m[j].signature == m[i].signature; j++)
			;
		if (m[i].bytes >= least && m[j - 1].event - m[i].event > w->to - w->from) {
			w->from = m[i].event;
			w->to = m[j - 1].event;
		}
	}
	return w->to - w->from >= dev->events_count / 2;
}

/* Without steps: the steady part, where at least a quarter of the peak is live, if that is at least
 * half of the trace; else any stretch; else the whole trace. */
static int take_longest(struct frag_window_of_dev *w, const struct frag_trace_dev *dev,
			struct frag_err *err)
{
	FRAG_AUTO_FREE struct moment *m = frag_host_alloc((dev->events_count + 1) * sizeof(*m));
	struct state s;
	uint64_t peak = 0;
	size_t n;

	FRAG_CHECK_ALLOC(m, "moments of the trace", err);
	FRAG_TRY(state_init(&s, dev, err));
	n = moments(dev, &s, m, &peak);
	frag_host_free(s.slots);
	if (!longest(w, dev, m, n, peak / 4) && !longest(w, dev, m, n, 0)) {
		w->from = initial_of(dev);
		w->to = dev->events_count;
	}
	return 0;
}

/* ---- what is carried ------------------------------------------------------------------ */

static int compare_kind(const struct held *a, const struct held *b)
{
	return FRAG_ORDER(a->bytes, b->bytes) ?: FRAG_ORDER(a->pool, b->pool)
	       ?: FRAG_ORDER(a->stream, b->stream) ?: FRAG_ORDER(a->waiting, b->waiting);
}

FRAG_COMPARE(compare_held, struct held, compare_kind(x, y), FRAG_ORDER(x->order, y->order))

/* Blocks of `at` that are not the same ones in the same state in `other`. */
static size_t changed(const struct state *at, const struct state *other, struct held *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < at->slots_count; i++) {
		const struct held *h = &at->slots[i], *o = &other->slots[i];

		if (h->born != NONE && (o->born != h->born || o->waiting != h->waiting))
			out[n++] = *h;
	}
	return n;
}

/* Pairs blocks of a kind; those without a partner go to rest and void_. Both lists are sorted. */
static void pair_up(struct frag_window_of_dev *w, const struct held *left, size_t left_count,
		    const struct held *begun, size_t begun_count)
{
	size_t i = 0, j = 0;

	w->carried_count = w->rest_count = w->void_count = 0;
	while (i < left_count || j < begun_count) {
		int order = i == left_count    ? 1
			    : j == begun_count ? -1
					       : compare_kind(&left[i], &begun[j]);

		if (order < 0)
			w->rest[w->rest_count++] = left[i++].slot;
		else if (order > 0)
			w->void_[w->void_count++] = begun[j++].slot;
		else
			w->carried[w->carried_count++] =
				(struct frag_carry){ left[i++].slot, begun[j++].slot };
	}
}

/* A block that is live at both ends and freed in between is begun and left. If it is void, it is
 * not left either from the second round on, so nothing can be carried from it. */
static bool drop_void(struct frag_window_of_dev *w, const struct state *from,
		      const struct state *to)
{
	bool found = false;

	for (size_t v = 0; v < w->void_count; v++) {
		uint32_t slot = w->void_[v];

		if (to->slots[slot].born != from->slots[slot].born)
			continue;
		for (size_t c = 0; c < w->carried_count; c++) {
			if (w->carried[c].left != slot)
				continue;
			w->rest[w->rest_count++] = slot;
			w->void_[w->void_count++] = w->carried[c].begun;
			w->carried[c] = w->carried[--w->carried_count];
			found = true;
			break;
		}
	}
	return found;
}

static int carry(struct frag_window_of_dev *w, const struct state *from, const struct state *to,
		 struct frag_err *err)
{
	size_t room = (size_t)from->slots_count + 1, left_count, begun_count;
	FRAG_AUTO_FREE struct held *left = frag_host_alloc(room * sizeof(*left));
	FRAG_AUTO_FREE struct held *begun = frag_host_alloc(room * sizeof(*begun));

	w->carried = frag_host_alloc(room * sizeof(*w->carried));
	w->rest = frag_host_alloc(room * sizeof(*w->rest));
	w->void_ = frag_host_alloc(room * sizeof(*w->void_));
	FRAG_CHECK_ALLOC(left && begun && w->carried && w->rest && w->void_, "blocks of the trace",
			 err);
	left_count = changed(to, from, left);
	begun_count = changed(from, to, begun);
	qsort(left, left_count, sizeof(*left), compare_held);
	qsort(begun, begun_count, sizeof(*begun), compare_held);
	pair_up(w, left, left_count, begun, begun_count);
	while (drop_void(w, from, to))
		;
	return 0;
}

/* The states at both ends, in the order of pairing: by time of allocation, and by time of free. */
static int follow(struct frag_window_of_dev *w, const struct frag_trace_dev *dev,
		  struct state *from, struct state *to, struct frag_err *err)
{
	FRAG_TRY(state_init(from, dev, err));
	FRAG_TRY(state_init(to, dev, err));
	for (size_t i = 0; i < w->from; i++)
		state_step(to, &dev->events[i], i);
	memcpy(from->slots, to->slots, from->slots_count * sizeof(*from->slots));
	for (uint32_t i = 0; i < from->slots_count; i++)
		from->slots[i].order = NONE;
	for (size_t i = w->from; i < w->to; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind <= FRAG_EV_FREE_COMPLETED && e->kind != FRAG_EV_ALLOC &&
		    from->slots[e->slot].order == NONE)
			from->slots[e->slot].order = i;
		state_step(to, e, i);
	}
	for (uint32_t i = 0; i < to->slots_count; i++)
		to->slots[i].order = to->slots[i].born;
	return carry(w, from, to, err);
}

/* From the event before the window (where the round before it ends) to its last one. */
static uint64_t period(const struct frag_window_of_dev *w, const struct frag_trace_dev *dev)
{
	uint64_t first, last;

	if (w->to == w->from)
		return 0;
	first = dev->events[w->from ? w->from - 1 : 0].time_us;
	last = dev->events[w->to - 1].time_us;
	return FRAG_MAX(last, first + 1) - first;
}

int frag_window_init(struct frag_window_of_dev *w, const struct frag_trace_dev *dev, uint32_t first,
		     uint32_t last, struct frag_err *err)
{
	struct state from = { 0 }, to = { 0 };
	int rc;

	*w = (struct frag_window_of_dev){ 0 };
	for (size_t i = 0; i < dev->events_count; i++)
		w->steps += frag_event_ends_step(&dev->events[i]);
	rc = w->steps || first ? take_steps(w, dev, first, last, err) : take_longest(w, dev, err);
	if (!rc)
		rc = follow(w, dev, &from, &to, err);
	if (!rc)
		w->period_us = period(w, dev);
	FRAG_FREE(from.slots, to.slots);
	if (rc)
		frag_window_release(w);
	return rc;
}

void frag_window_release(struct frag_window_of_dev *w)
{
	FRAG_FREE(w->carried, w->rest, w->void_);
	*w = (struct frag_window_of_dev){ 0 };
}
