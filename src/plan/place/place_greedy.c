/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greedy placement and its improvement.
 *
 * Sources of the rules: by size with gap filling, tensorflow/tensorflow
 * tensorflow/lite/simple_memory_arena.cc; by size and by conflicts without gap
 * filling, apache/tvm src/tir/usmp/algo/greedy.cc.
 */
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

#include "lib/bisect.h"
#include "lib/random.h"
#include "place.h"

#define STOP_EVERY 1024u /* placements between two checks of the stop flag */

/* ---- orders ---------------------------------------------------------------------- */

struct key {
	double first, second; /* descending */
	uint64_t lower;	      /* ascending */
	uint32_t index;
};

FRAG_COMPARE(compare_keys, struct key, FRAG_ORDER(y->first, x->first),
	     FRAG_ORDER(y->second, x->second), FRAG_ORDER(x->lower, y->lower),
	     FRAG_ORDER(x->index, y->index))

/* Others live at the same time: all, minus those that end before, minus those that begin after. */
static int count_conflicts(const struct frag_buffers *b, struct key *keys, struct frag_err *err)
{
	size_t n = b->count;
	FRAG_AUTO_FREE uint64_t *lowers = NULL;
	uint64_t *uppers;

	FRAG_TRY_CALLOC(lowers, 2 * n + 1, "placement order", err);
	uppers = lowers + n;
	for (size_t i = 0; i < n; i++) {
		lowers[i] = b->list[i].lower;
		uppers[i] = b->list[i].upper;
	}
	qsort(lowers, n, sizeof(*lowers), frag_compare_u64);
	qsort(uppers, n, sizeof(*uppers), frag_compare_u64);
	for (size_t i = 0; i < n; i++) {
		size_t begun, ended;

		FRAG_BISECT(begun, 0, n, lowers[begun] < b->list[i].upper);
		FRAG_BISECT(ended, 0, n, uppers[ended] <= b->list[i].lower);
		keys[i].first = (double)(begun - ended);
		keys[i].second = (double)b->list[i].bytes;
	}
	return 0;
}

int frag_place_order(const struct frag_buffers *b, enum frag_order order, uint64_t *random,
		     uint32_t *out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct key *keys = NULL;
	int rc = 0;

	FRAG_TRY_CALLOC(keys, b->count + 1, "placement order", err);
	for (size_t i = 0; i < b->count; i++) {
		const struct frag_buffer *x = &b->list[i];
		double life = (double)(x->upper - x->lower), bytes = (double)x->bytes;

		keys[i] = (struct key){ bytes, life, x->lower, (uint32_t)i };
		if (order == FRAG_ORDER_SIZE)
			keys[i].second = 0;
		else if (order == FRAG_ORDER_AREA)
			keys[i].first = bytes * life;
		else if (order == FRAG_ORDER_LIFE)
			keys[i] = (struct key){ life, bytes, x->lower, (uint32_t)i };
	}
	if (order == FRAG_ORDER_CONFLICTS)
		rc = count_conflicts(b, keys, err);
	for (size_t i = 0; i < b->count; i++)
		if (random) /* a random number between 1 and 4/3 */
			keys[i].first *=
				1.0 + (double)(frag_random(random) >> 40) / (double)(1 << 24) / 3.0;
	qsort(keys, b->count, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < b->count; i++)
		out[i] = keys[i].index;
	return rc;
}

/* ---- greedy ---------------------------------------------------------------------- */

uint64_t frag_place_height(const struct frag_buffers *b, const uint64_t *offsets)
{
	uint64_t height = 0;

	for (size_t i = 0; i < b->count; i++)
		height = FRAG_MAX(height, offsets[i] + b->list[i].bytes);
	return height;
}

static int place_in_order(struct frag_placer *p, const uint32_t *order, enum frag_gap_rule rule,
			  const struct frag_watch *watch, struct frag_err *err)
{
	frag_placer_clear(p);
	for (size_t k = 0; k < p->b->count; k++) {
		if (k % STOP_EVERY == 0 && watch) {
			if (frag_watch_stopped(watch))
				return frag_fail(err, FRAG_EINTR, "interrupted");
			if (watch->progress)
				watch->progress(watch->ctx, k, p->b->count);
		}
		FRAG_TRY(frag_placer_put(p, order[k], rule, err));
	}
	return 0;
}

int frag_place_greedy(const struct frag_buffers *b, enum frag_order order, enum frag_gap_rule rule,
		      const struct frag_watch *watch, uint64_t *offsets, uint64_t *height,
		      struct frag_err *err)
{
	FRAG_AUTO_FREE uint32_t *list = NULL;
	struct frag_placer p = { 0 };
	int rc;

	FRAG_TRY_CALLOC(list, b->count + 1, "placement", err);
	rc = frag_place_order(b, order, NULL, list, err)
		     ?: frag_placer_init(&p, b, offsets, err)
				?: place_in_order(&p, list, rule, watch, err);
	frag_placer_release(&p);
	if (!rc)
		*height = frag_place_height(b, offsets);
	return rc;
}

/* ---- improvement ----------------------------------------------------------------- */

struct climb {
	struct frag_placer p;
	const struct frag_buffers *b;
	const struct frag_improve_options *opt;
	uint32_t *order, *tried; /* the best order, and the current one */
	uint64_t *best;		 /* offsets of the best; borrowed */
	uint64_t *now;
	uint64_t height, target, begin_ns, rng;
};

/* Moves order[at] to order[to], to <= at. */
static void promote(uint32_t *order, size_t at, size_t to)
{
	uint32_t id = order[at];

	memmove(order + to + 1, order + to, (at - to) * sizeof(*order));
	order[to] = id;
}

/* Moves one of the buffers that set the height forward, and sometimes another one, too. */
static void vary(struct climb *c)
{
	size_t n = c->b->count, tops = 0, at = 0;
	uint64_t height = frag_place_height(c->b, c->best);

	memcpy(c->tried, c->order, n * sizeof(*c->tried));
	for (size_t k = 0; k < n; k++) {
		uint32_t id = c->order[k];

		if (c->best[id] + c->b->list[id].bytes == height &&
		    frag_random(&c->rng) % ++tops == 0)
			at = k;
	}
	if (at)
		promote(c->tried, at, frag_random(&c->rng) % at);
	for (unsigned more = frag_random(&c->rng) % 3; more; more--) {
		at = frag_random(&c->rng) % n;
		if (at)
			promote(c->tried, at, frag_random(&c->rng) % at);
	}
}

/* Every order with every rule that fills gaps; then from the best one, changes of the order. */
static int climb(struct climb *c, struct frag_err *err)
{
	const unsigned greedy = FRAG_ORDER_COUNT * FRAG_GAP_TOP;
	const struct frag_watch *w = c->opt->watch;

	for (unsigned k = 0; k < greedy + c->opt->rounds_max; k++) {
		uint64_t past = frag_clock_ns() - c->begin_ns, height;

		if (k && w && w->progress)
			w->progress(w->ctx, past / 1000000, c->opt->budget_ns / 1000000);
		if (k &&
		    (c->height <= c->target || past >= c->opt->budget_ns || frag_watch_stopped(w)))
			break;
		if (k < greedy)
			FRAG_TRY(frag_place_order(c->b, k / FRAG_GAP_TOP, NULL, c->tried, err));
		else
			vary(c);
		FRAG_TRY(place_in_order(&c->p, c->tried, k % FRAG_GAP_TOP, NULL, err));
		height = frag_place_height(c->b, c->now);
		/* later equal results are kept, too, because plateaus are wide */
		if (height < c->height || (height == c->height && k >= greedy)) {
			c->height = height;
			memcpy(c->best, c->now, c->b->count * sizeof(*c->now));
			memcpy(c->order, c->tried, c->b->count * sizeof(*c->order));
		}
	}
	return 0;
}

int frag_place_improve(const struct frag_buffers *b, const struct frag_improve_options *opt,
		       uint64_t *offsets, uint64_t *height, struct frag_err *err)
{
	struct climb c = { .b = b,
			   .opt = opt,
			   .best = offsets,
			   .height = UINT64_MAX,
			   .begin_ns = frag_clock_ns(),
			   .target = opt->target_bytes };
	int rc = 0;

	*height = 0;
	if (!b->count)
		return 0;
	c.order = frag_host_calloc(2 * b->count, sizeof(*c.order));
	c.now = frag_host_calloc(b->count, sizeof(*c.now));
	if (!c.order || !c.now)
		rc = frag_fail_nomem(err, "placement");
	if (!rc && !c.target)
		rc = frag_load_bound(b, &c.target, NULL, err);
	if (!rc) {
		c.tried = c.order + b->count;
		rc = frag_placer_init(&c.p, b, c.now, err);
	}
	if (!rc)
		rc = climb(&c, err);
	frag_placer_release(&c.p);
	FRAG_FREE(c.order, c.now);
	*height = c.height;
	return rc;
}
