/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for repeated steps: folds time so that the end of the period is its beginning, and places
 * the buffers. See step_plan.c.
 */
#include "step_plan.h"
#include "lib/bisect.h"

#include <stdlib.h>

#define ROUNDS_MAX 64u

struct step_window step_window_of(const struct step_maker *m)
{
	uint32_t seen = m->cut[m->trained - 1];
	uint32_t end = m->period ? m->cut[m->trained - 2] : seen;
	struct step_window w = { .first = m->period ? m->cut[m->trained - 2 - m->period] : end,
				 .end = end };

	w.begins = w.first < m->b.count ? m->b.list[w.first].lower : UINT64_MAX - 1;
	w.ends = end < m->b.count ? m->b.list[end].lower : UINT64_MAX - 1;
	w.seen = seen < m->b.count ? m->b.list[seen].lower : UINT64_MAX - 1;
	return w;
}

bool step_is_too_long(const struct step_window *w, const struct frag_buffer *x)
{
	return x->upper > w->seen || w->begins + (x->upper - w->ends) > x->lower;
}

/* Requests of the beginning that live into the period, by end and size. */
struct entrant {
	uint64_t upper, bytes;
	uint32_t request;
};

FRAG_COMPARE(compare_entrants, struct entrant, FRAG_ORDER(x->upper, y->upper),
	     FRAG_ORDER(x->bytes, y->bytes), FRAG_ORDER(x->request, y->request))

static size_t list_entrants(const struct step_maker *m, const struct step_window *w,
			    struct entrant *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w->first; i++) {
		const struct frag_buffer *x = &m->b.list[i];

		if (x->upper > w->begins && x->upper <= w->ends)
			out[n++] = (struct entrant){ x->upper, x->bytes, i };
	}
	qsort(out, n, sizeof(*out), compare_entrants);
	return n;
}

/* Takes one with this end and size; UINT32_MAX if none is left. */
static uint32_t take_entrant(struct entrant *list, size_t n, uint64_t upper, uint64_t bytes)
{
	struct entrant key = { upper, bytes, 0 };
	size_t lo;

	FRAG_BISECT(lo, 0, n, compare_entrants(&list[lo], &key) < 0);
	for (; lo < n && list[lo].upper == upper && list[lo].bytes == bytes; lo++) {
		uint32_t request = list[lo].request;

		list[lo].request = UINT32_MAX;
		if (request != UINT32_MAX)
			return request;
	}
	return UINT32_MAX;
}

/*
 * The lifetime x of request i crosses the end. Its second part is at the beginning of the period.
 * In the first period, a request of the beginning has that role: if it is found, both get the same
 * place; else the part is a separate buffer.
 */
static void add_twin(struct frag_buffers *b, const struct step_window *w, uint32_t i,
		     const struct frag_buffer *x, struct entrant *entrants, size_t n)
{
	uint64_t upper = w->begins + (x->upper - w->ends);
	uint32_t twin = take_entrant(entrants, n, upper, x->bytes);

	if (twin == UINT32_MAX) {
		twin = (uint32_t)b->count;
		b->list[b->count++] = (struct frag_buffer){ w->begins, upper, x->bytes };
	}
	b->twins[i] = twin;
	b->twins[twin] = i;
}

/* Lifetimes in the time of the placement: b->list[0 .. end) are the requests, followed by second
 * parts. Requests that cannot be planned have 0 bytes in `out` and a tiny part here. */
static int fold(const struct step_maker *m, const struct step_window *w, struct frag_buffers *b,
		struct frag_step_plan *out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct entrant *entrants =
		frag_host_calloc((size_t)w->first + 1, sizeof(*entrants));
	size_t n;

	b->list = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->list));
	b->twins = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->twins));
	FRAG_CHECK_ALLOC(entrants && b->list && b->twins, "plan", err);
	n = list_entrants(m, w, entrants);
	b->count = w->end;
	for (uint32_t i = 0; i < w->end; i++)
		b->twins[i] = i;
	for (uint32_t i = 0; i < w->end; i++) {
		struct frag_buffer x = m->b.list[i];

		out->bytes[i] = x.bytes;
		if (x.upper > w->ends && i >= w->first && step_is_too_long(w, &x)) {
			out->bytes[i] = 0;
			x = (struct frag_buffer){ x.lower, x.lower + 1, STEP_UNIT };
		} else if (x.upper > w->ends && i >= w->first) {
			add_twin(b, w, i, &x, entrants, n);
		}
		x.upper = FRAG_MIN(x.upper, w->ends);
		b->list[i] = x;
	}
	return 0;
}

static int place_folded(struct frag_buffers *b, uint64_t *offsets, uint64_t budget_ns,
			const struct frag_watch *watch, struct frag_step_plan *out,
			struct frag_err *err)
{
	struct frag_improve_options opt = { .budget_ns = budget_ns,
					    .rounds_max = ROUNDS_MAX,
					    .watch = watch };

	FRAG_TRY(frag_load_bound(b, &out->bound_bytes, NULL, err));
	/* If other requests will follow, long-lived buffers go together at the bottom. */
	if (out->period)
		FRAG_TRY(frag_place_improve(b, &opt, offsets, &out->height_bytes, err));
	else
		FRAG_TRY(frag_place_greedy(b, FRAG_ORDER_LIFE, FRAG_GAP_LOWEST, watch, offsets,
					   &out->height_bytes, err));
	return frag_place_check(b, offsets, STEP_UNIT, out->height_bytes, err);
}

int step_place(const struct step_maker *m, uint64_t budget_ns, const struct frag_watch *watch,
	       struct frag_step_plan *out, struct frag_err *err)
{
	struct step_window w = step_window_of(m);
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };

	out->requests_count = w.end;
	out->bytes = frag_host_calloc((size_t)w.end + 1, sizeof(*out->bytes));
	out->offsets = frag_host_calloc(2 * (size_t)w.end + 1, sizeof(*out->offsets));
	FRAG_CHECK_ALLOC(out->bytes && out->offsets, "plan", err);
	FRAG_TRY(fold(m, &w, &b, out, err));
	FRAG_TRY(place_folded(&b, out->offsets, budget_ns, watch, out, err));
	for (uint32_t i = 0; i < w.end; i++)
		if (!out->bytes[i]) {
			out->bytes[i] = m->b.list[i].bytes;
			out->offsets[i] = UINT64_MAX;
		}
	return 0;
}
