/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live and pinned bytes of the largest call sites over time, from one replay that stops at even
 * distances. The curves are those of the sites that are largest at any stop; without stacks, blocks are
 * grouped by size alone.
 */
#include "explain.h"

#include <stdlib.h>

#include <frag/opt.h>

#include "lib/grow.h"

/* Blocks that all stops together may show: with very many at once there are fewer stops. */
#define BLOCKS_MAX (1u << 20)
#define STOPS_MIN 16u

enum what { LIVE, PINNED, WHATS };

struct sum { /* of a call site at a stop */
	uint64_t key, bytes[WHATS];
	uint32_t stop;
};

struct sums {
	struct sum *list;
	size_t count, cap;
};

static uint64_t key_of(const struct frag_explained *x, const struct frag_heap_block *h)
{
	return frag_sites_known(&x->in.sites) ? frag_site_of(&x->in.sites, h->stack) : h->requested;
}

static const char *name_of(const struct frag_explained *x, uint64_t key)
{
	return frag_sites_known(&x->in.sites)
		       ? x->in.sites.names[key]
		       : frag_answer_print(x->texts, "%s each", FRAG_BYTES(key));
}

static int by_key(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return FRAG_ORDER(x->key, y->key) ?: FRAG_ORDER(x->stop, y->stop);
}

/* One entry for each call site. Returns how many there are. */
static size_t merge(struct sum *list, size_t count)
{
	size_t n = 0;

	qsort(list, count, sizeof(*list), by_key);
	for (size_t i = 0; i < count; i++) {
		if (!n || list[n - 1].key != list[i].key) {
			list[n++] = list[i];
			continue;
		}
		list[n - 1].bytes[LIVE] += list[i].bytes[LIVE];
		list[n - 1].bytes[PINNED] += list[i].bytes[PINNED];
	}
	return n;
}

static int look(const struct frag_explained *x, struct frag_cursor *s, struct sums *sums,
		struct frag_err *err)
{
	FRAG_AUTO(frag_heap_view_release) struct frag_heap_view view = { 0 };
	struct frag_curves *c = x->curves;
	uint32_t stop = (uint32_t)c->points++;
	size_t first = sums->count;

	FRAG_TRY(frag_heap_view_take(s, &view, err));
	c->events[stop] = s->next - 1;
	c->us[stop] = s->now_us;
	c->reserved[stop] = frag_cursor_reserved(s);
	c->active[stop] = s->run->allocated + s->run->waiting;
	c->pinned.bytes[stop][FRAG_CURVES] = view.unpinned;
	for (size_t i = 0; i < view.count; i++) {
		const struct frag_heap_block *h = &view.list[i];

		FRAG_TRY(FRAG_GROW(sums->list, sums->count, sums->cap, "explanation", err));
		sums->list[sums->count++] =
			(struct sum){ key_of(x, h), { h->granted, h->pinned_bytes }, stop };
	}
	if (view.count)
		sums->count = first + merge(sums->list + first, view.count);
	return 0;
}

static int look_all(const struct frag_explained *x, struct sums *sums, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_history *h = &x->in.history;
	uint64_t most = FRAG_MAX(BLOCKS_MAX / FRAG_MAX(h->most_blocks, 1u), STOPS_MIN);
	uint64_t n = FRAG_MIN(h->events, FRAG_MIN(most, (uint64_t)FRAG_CURVE_POINTS));

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	for (uint64_t i = 0; i < n; i++) {
		FRAG_TRY(frag_cursor_to(&s, (i + 1) * h->events / n - 1, err));
		FRAG_TRY(look(x, &s, sums, err));
	}
	return 0;
}

/* ---- the largest ---------------------------------------------------------------------------- */

struct site { /* its sums are [from, to) */
	size_t from, to;
	uint64_t most;
};

/* Into the list of the largest, the largest first; of equal ones the first stays first. */
static void rank(struct site *top, size_t *count, struct site one)
{
	size_t at = *count;

	for (; at && top[at - 1].most < one.most; at--)
		if (at < FRAG_CURVES)
			top[at] = top[at - 1];
	if (at < FRAG_CURVES && one.most)
		top[at] = one;
	*count = FRAG_MIN(*count + (one.most > 0), (size_t)FRAG_CURVES);
}

static size_t find_largest(const struct sums *sums, enum what what, struct site *top)
{
	size_t count = 0;

	for (size_t from = 0, to; from < sums->count; from = to) {
		struct site one = { .from = from };

		for (to = from; to < sums->count && sums->list[to].key == sums->list[from].key;
		     to++)
			one.most = FRAG_MAX(one.most, sums->list[to].bytes[what]);
		one.to = to;
		rank(top, &count, one);
	}
	return count;
}

static void find_highest(struct frag_curve_set *set, size_t points)
{
	struct frag_highest *h = &set->highest;
	const uint64_t *top = NULL;
	size_t who = 0;

	for (size_t p = 0; p < points; p++) {
		uint64_t sum = 0;

		for (size_t i = 0; i <= FRAG_CURVES; i++)
			sum += set->bytes[p][i];
		if (sum <= h->all_bytes)
			continue;
		h->all_bytes = sum;
		top = set->bytes[p];
	}
	for (size_t i = 1; top && i < set->count; i++)
		who = top[i] > top[who] ? i : who;
	if (!top || !set->count || !top[who])
		return;
	h->site = set->names[who];
	h->bytes = top[who];
	h->share_ratio = (double)h->bytes / (double)h->all_bytes;
}

static void fill(const struct frag_explained *x, const struct sums *sums, enum what what,
		 struct frag_curve_set *set)
{
	struct site top[FRAG_CURVES] = { { 0 } };

	set->count = find_largest(sums, what, top);
	for (size_t i = 0; i < sums->count; i++)
		set->bytes[sums->list[i].stop][FRAG_CURVES] += sums->list[i].bytes[what];
	for (size_t k = 0; k < set->count; k++) {
		set->names[k] = name_of(x, sums->list[top[k].from].key);
		for (size_t i = top[k].from; i < top[k].to; i++) {
			const struct sum *one = &sums->list[i];

			set->bytes[one->stop][k] += one->bytes[what];
			set->bytes[one->stop][FRAG_CURVES] -= one->bytes[what];
		}
	}
	find_highest(set, x->curves->points);
}

int frag_explain_curves(struct frag_explained *x, struct frag_err *err)
{
	struct sums sums = { 0 };
	int rc;

	FRAG_TRY_CALLOC(x->curves, 1, "explanation", err);
	rc = look_all(x, &sums, err);
	if (!rc && sums.count) {
		qsort(sums.list, sums.count, sizeof(*sums.list), by_key);
		fill(x, &sums, LIVE, &x->curves->live);
		fill(x, &sums, PINNED, &x->curves->pinned);
	}
	frag_host_free(sums.list);
	return rc;
}
