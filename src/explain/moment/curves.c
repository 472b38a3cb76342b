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

struct total {			    /* of one site */
	uint64_t key, live, pinned; /* now */
	uint64_t live_most, pinned_most;
	uint32_t sample; /* that live and pinned are of */
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

static uint64_t key_of(const struct frag_explained *x, const struct frag_heap_block *h)
{
	return frag_sites_known(&x->in.sites) ? frag_site_of(&x->in.sites, h->stack) : h->requested;
}

static char *name_of(const struct frag_explained *x, uint64_t key)
{
	char name[48];

	if (frag_sites_known(&x->in.sites))
		return frag_host_strdup(x->in.sites.names[key]);
	snprintf(name, sizeof(name), "%s each", FRAG_BYTES(key));
	return frag_host_strdup(name);
}

/* Calls fn at every stop with what is there. */
static int each_stop(const struct frag_explained *x,
		     int (*fn)(void *ctx, uint32_t sample, const struct frag_cursor *s,
			       const struct frag_heap_view *view, struct frag_err *err),
		     void *ctx, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	uint64_t most = FRAG_MAX(BLOCKS_MAX / FRAG_MAX(x->in.history.most_blocks, 1u), STOPS_MIN);
	uint64_t n = FRAG_MIN(x->in.history.events, FRAG_MIN(most, (uint64_t)FRAG_CURVE_POINTS));
	int rc = 0;

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	for (uint64_t i = 0; !rc && i < n; i++) {
		struct frag_heap_view view;

		rc = frag_cursor_to(&s, (i + 1) * x->in.history.events / n - 1, err);
		if (!rc)
			rc = frag_heap_view_take(&s, &view, err);
		if (rc)
			break;
		rc = fn(ctx, (uint32_t)i, &s, &view, err);
		frag_heap_view_release(&view);
	}
	return rc;
}

struct sum {
	struct frag_explained *x;
	struct totals totals;
	uint64_t live_keys[FRAG_CURVES], pinned_keys[FRAG_CURVES];
};

static int note_most(void *ctx, uint32_t sample, const struct frag_cursor *s,
		     const struct frag_heap_view *view, struct frag_err *err)
{
	struct sum *sum = ctx;

	(void)s;
	for (size_t i = 0; i < view->count; i++) {
		const struct frag_heap_block *h = &view->list[i];
		struct total *t = total_of(&sum->totals, key_of(sum->x, h));

		FRAG_CHECK_ALLOC(t, "explanation", err);
		if (t->sample != sample + 1)
			*t =
				(struct total){ t->key,		0,	   0, t->live_most,
						t->pinned_most, sample + 1 };
		t->live += h->granted;
		t->pinned += h->pinned_bytes;
		t->live_most = FRAG_MAX(t->live_most, t->live);
		t->pinned_most = FRAG_MAX(t->pinned_most, t->pinned);
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
		const struct frag_heap_view *view, struct frag_err *err)
{
	struct sum *sum = ctx;
	struct frag_curves *c = sum->x->curves;

	(void)err;
	c->events[sample] = s->next - 1;
	c->us[sample] = s->now_us;
	c->reserved[sample] = frag_cursor_reserved(s);
	c->active[sample] = s->run->allocated + s->run->waiting;
	c->points = sample + 1;
	for (size_t i = 0; i < view->count; i++) {
		const struct frag_heap_block *h = &view->list[i];
		uint64_t key = key_of(sum->x, h);

		c->live[sample][place(sum->live_keys, c->live_count, key)] += h->granted;
		c->pinned[sample][place(sum->pinned_keys, c->pinned_count, key)] += h->pinned_bytes;
	}
	c->pinned[sample][FRAG_CURVES] += view->unpinned;
	return 0;
}

/* The FRAG_CURVES largest by one of the two fields. Few picks: a scan for each. */
static size_t pick(const struct totals *t, bool pinned, uint64_t *keys)
{
	size_t n = 0;

	while (n < FRAG_CURVES) {
		const struct total *best = NULL;

		for (size_t i = 0; i < t->count; i++) {
			const struct total *o = &t->list[i];
			uint64_t v = pinned ? o->pinned_most : o->live_most;

			if (v && place(keys, n, o->key) == FRAG_CURVES &&
			    (!best || v > (pinned ? best->pinned_most : best->live_most)))
				best = o;
		}
		if (!best)
			break;
		keys[n++] = best->key;
	}
	return n;
}

int frag_explain_curves(struct frag_explained *x, struct frag_err *err)
{
	struct sum sum = { .x = x };
	int rc;

	FRAG_TRY_CALLOC(x->curves, 1, "explanation", err);
	rc = each_stop(x, note_most, &sum, err);
	x->curves->live_count = pick(&sum.totals, false, sum.live_keys);
	x->curves->pinned_count = pick(&sum.totals, true, sum.pinned_keys);
	for (size_t i = 0; !rc && i < x->curves->live_count; i++)
		if (!(x->curves->live_names[i] = name_of(x, sum.live_keys[i])))
			rc = frag_fail_nomem(err, "explanation");
	for (size_t i = 0; !rc && i < x->curves->pinned_count; i++)
		if (!(x->curves->pinned_names[i] = name_of(x, sum.pinned_keys[i])))
			rc = frag_fail_nomem(err, "explanation");
	if (!rc)
		rc = each_stop(x, draw, &sum, err);
	frag_host_free(sum.totals.list);
	return rc;
}
