/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live and non-releasable bytes of the largest call sites over time, from one replay that
 * stops at even distances. The names are those of the largest at any stop; without stacks blocks
 * are put together by size alone.
 */
#include "explain.h"

#include <stdio.h>
#include <string.h>

#include <frag/opt.h>

#include "lib/bisect.h"
#include "lib/grow.h"

/* Blocks that all stops together may show: with very many at once there are fewer stops. */
#define BLOCKS_MAX (1u << 20)
#define STOPS_MIN 16u

struct total {			  /* of one site */
	uint64_t key, live, held; /* now */
	uint64_t live_most, held_most;
	uint32_t sample; /* that live and held are of */
};

struct totals {
	struct total *list;
	size_t count, cap;
};

/* Few sites are live at once and keys are small: look-up by bisection in a sorted list. */
static struct total *total_of(struct totals *t, uint64_t key)
{
	size_t at;

	FRAG_BISECT(at, 0, t->count, t->list[at].key < key);
	if (at < t->count && t->list[at].key == key)
		return &t->list[at];
	if (FRAG_GROW(t->list, t->count, t->cap, "call sites", NULL))
		return NULL;
	memmove(&t->list[at + 1], &t->list[at], (t->count - at) * sizeof(*t->list));
	t->list[at] = (struct total){ .key = key };
	t->count++;
	return &t->list[at];
}

static uint64_t key_of(const struct frag_explained *x, const struct frag_held *h)
{
	return frag_sites_known(&x->sites) ? frag_site_of(&x->sites, h->stack) : h->requested;
}

static char *name_of(const struct frag_explained *x, uint64_t key)
{
	char name[48];

	if (frag_sites_known(&x->sites))
		return frag_host_strdup(x->sites.names[key]);
	snprintf(name, sizeof(name), "%s each", FRAG_BYTES(key));
	return frag_host_strdup(name);
}

/* Calls fn at every stop with what is there. */
static int each_stop(const struct frag_events *ev, const struct frag_explain_options *opt,
		     struct frag_explained *x,
		     int (*fn)(void *ctx, uint32_t sample, const struct frag_cursor *s,
			       const struct frag_heap_view *scene, struct frag_err *err),
		     void *ctx, struct frag_err *err)
{
	struct frag_run_options run;
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	uint64_t most = FRAG_MAX(BLOCKS_MAX / FRAG_MAX(x->history.most_blocks, 1u), STOPS_MIN);
	uint64_t n = FRAG_MIN(x->history.events, FRAG_MIN(most, (uint64_t)FRAG_CURVE_POINTS));
	int rc = 0;

	frag_explain_run_options(opt, x, &run);
	FRAG_TRY(frag_cursor_open(&s, ev, opt->spec, &opt->target.card, &run, err));
	for (uint64_t i = 0; !rc && i < n; i++) {
		struct frag_heap_view scene;

		rc = frag_cursor_to(&s, (i + 1) * x->history.events / n - 1, err);
		if (!rc)
			rc = frag_heap_view_take(&s, &scene, err);
		if (rc)
			break;
		rc = fn(ctx, (uint32_t)i, &s, &scene, err);
		frag_heap_view_release(&scene);
	}
	return rc;
}

struct sum {
	struct frag_explained *x;
	struct totals totals;
	uint64_t live_keys[FRAG_CURVES], held_keys[FRAG_CURVES];
};

static int note_most(void *ctx, uint32_t sample, const struct frag_cursor *s,
		     const struct frag_heap_view *scene, struct frag_err *err)
{
	struct sum *sum = ctx;

	(void)s;
	for (size_t i = 0; i < scene->count; i++) {
		const struct frag_held *h = &scene->list[i];
		struct total *t = total_of(&sum->totals, key_of(sum->x, h));

		FRAG_CHECK_ALLOC(t, "explanation", err);
		if (t->sample != sample + 1)
			*t = (struct total){ t->key, 0, 0, t->live_most, t->held_most, sample + 1 };
		t->live += h->granted;
		t->held += h->strands;
		t->live_most = FRAG_MAX(t->live_most, t->live);
		t->held_most = FRAG_MAX(t->held_most, t->held);
	}
	return 0;
}

static size_t place(const uint64_t *keys, size_t n, uint64_t key)
{
	size_t i = 0;

	while (i < n && keys[i] != key)
		i++;
	return i < n ? i : FRAG_CURVES;
}

static int draw(void *ctx, uint32_t sample, const struct frag_cursor *s,
		const struct frag_heap_view *scene, struct frag_err *err)
{
	struct sum *sum = ctx;
	struct frag_curves *c = sum->x->curves;

	(void)err;
	c->events[sample] = s->next - 1;
	c->us[sample] = s->now_us;
	c->reserved[sample] = frag_cursor_reserved(s);
	c->active[sample] = s->run->allocated + s->run->waiting;
	c->points = sample + 1;
	for (size_t i = 0; i < scene->count; i++) {
		const struct frag_held *h = &scene->list[i];
		uint64_t key = key_of(sum->x, h);

		c->live[sample][place(sum->live_keys, c->live_count, key)] += h->granted;
		c->held[sample][place(sum->held_keys, c->held_count, key)] += h->strands;
	}
	c->held[sample][FRAG_CURVES] += scene->unheld;
	return 0;
}

/* The FRAG_CURVES largest by one of the two fields. Few picks: a scan for each. */
static size_t pick(const struct totals *t, bool held, uint64_t *keys)
{
	size_t n = 0;

	while (n < FRAG_CURVES) {
		const struct total *best = NULL;

		for (size_t i = 0; i < t->count; i++) {
			const struct total *o = &t->list[i];
			uint64_t v = held ? o->held_most : o->live_most;

			if (v && place(keys, n, o->key) == FRAG_CURVES &&
			    (!best || v > (held ? best->held_most : best->live_most)))
				best = o;
		}
		if (!best)
			break;
		keys[n++] = best->key;
	}
	return n;
}

int frag_explain_curves(const struct frag_events *ev, const struct frag_explain_options *opt,
			struct frag_explained *x, struct frag_err *err)
{
	struct sum sum = { .x = x };
	int rc;

	FRAG_TRY_CALLOC(x->curves, 1, "explanation", err);
	rc = each_stop(ev, opt, x, note_most, &sum, err);
	x->curves->live_count = pick(&sum.totals, false, sum.live_keys);
	x->curves->held_count = pick(&sum.totals, true, sum.held_keys);
	for (size_t i = 0; !rc && i < x->curves->live_count; i++)
		if (!(x->curves->live_names[i] = name_of(x, sum.live_keys[i])))
			rc = frag_fail_nomem(err, "explanation");
	for (size_t i = 0; !rc && i < x->curves->held_count; i++)
		if (!(x->curves->held_names[i] = name_of(x, sum.held_keys[i])))
			rc = frag_fail_nomem(err, "explanation");
	if (!rc)
		rc = each_stop(ev, opt, x, draw, &sum, err);
	frag_host_free(sum.totals.list);
	return rc;
}
