/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Active and non-releasable bytes of the largest call sites over time. The events are cut into even
 * parts. A first replay finds where in each part memory is highest and lowest, and what precedes
 * its longest pause; a second one stops there, so no peak is lost, and an axis of time shows what
 * was held for long. The curves are those of the site that has most at the highest point, and of
 * those that are largest at any stop; without stacks, blocks are grouped by size alone.
 */
#include "explain.h"

#include <stdlib.h>

#include <frag/opt.h>

#include "lib/grow.h"

/* Blocks that all stops together may show: with very many at once there are fewer stops. */
#define BLOCKS_MAX (1u << 20)
#define STOPS_MIN 16u
/* Blocks walked to find the most non-releasable bytes, for policies that do not count them. */
#define WALK_MAX (1ull << 28)

enum what { LIVE, NON_RELEASABLE, WHATS };

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

FRAG_COMPARE(by_key, struct sum, FRAG_ORDER(x->key, y->key), FRAG_ORDER(x->stop, y->stop))

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
		list[n - 1].bytes[NON_RELEASABLE] += list[i].bytes[NON_RELEASABLE];
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
	c->non_releasable.bytes[stop][FRAG_CURVES] = view.ownerless;
	for (size_t i = 0; i < view.count; i++) {
		const struct frag_heap_block *h = &view.list[i];

		FRAG_TRY(FRAG_GROW(sums->list, sums->count, sums->cap, "explanation", err));
		sums->list[sums->count++] =
			(struct sum){ key_of(x, h), { h->granted, h->non_releasable_bytes }, stop };
	}
	if (view.count)
		sums->count = first + merge(sums->list + first, view.count);
	return 0;
}

/* Where a part has its extremes, and its longest pause. */
enum { LEAST = FRAG_CURVE_STOPS - 2, PAUSE };
struct part {
	uint64_t at[FRAG_CURVE_STOPS], most[LEAST], least, pause_us;
};

static void note_extremes(struct part *p, struct frag_cursor *s, bool first, bool walked)
{
	uint64_t active = s->run->allocated + s->run->waiting, event = s->next - 1;
	uint64_t now[LEAST] = { active, frag_cursor_reserved(s) };
	struct frag_loss loss;

	if (walked || first) {
		frag_run_loss(s->run, event, s->now_us, &loss);
		now[2] = loss.non_releasable_bytes;
	}
	for (size_t k = 0; k < FRAG_ARRAY_LEN(now); k++)
		if (first || now[k] > p->most[k]) {
			p->most[k] = now[k];
			p->at[k] = event;
		}
	if (first || active < p->least) {
		p->least = active;
		p->at[LEAST] = event;
	}
	if (first)
		p->at[PAUSE] = event;
}

static int find_extremes(const struct frag_explained *x, struct part *parts, uint64_t n,
			 struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_history *h = &x->in.history;
	uint64_t every = frag_policy_spec_ops(x->in.spec)->usage
				 ? 1
				 : 1 + h->events * FRAG_MAX(h->most_blocks, 1u) / WALK_MAX;

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	for (uint64_t p = 0, from = 0; p < n; p++) {
		uint64_t to = (p + 1) * h->events / n;

		for (uint64_t i = from; i < to; i++) {
			struct part *last = &parts[p - (p && i == from)];
			uint64_t last_us = s.now_us;

			FRAG_TRY(frag_cursor_to(&s, i, err));
			if (i && s.now_us - last_us > last->pause_us) {
				last->pause_us = s.now_us - last_us;
				last->at[PAUSE] = i - 1;
			}
			note_extremes(&parts[p], &s, i == from, i % every == 0);
		}
		from = to;
	}
	return 0;
}

static int look_all(const struct frag_explained *x, struct sums *sums, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	const struct frag_history *h = &x->in.history;
	uint64_t most = FRAG_MAX(BLOCKS_MAX / FRAG_MAX(h->most_blocks, 1u), STOPS_MIN);
	uint64_t n = FRAG_MIN(h->events, FRAG_MIN(most, (uint64_t)FRAG_CURVE_PARTS));
	struct part parts[FRAG_CURVE_PARTS] = { 0 };

	FRAG_TRY(find_extremes(x, parts, n, err));
	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	for (uint64_t p = 0; p < n; p++) {
		qsort(parts[p].at, FRAG_CURVE_STOPS, sizeof(parts[p].at[0]), frag_compare_u64);
		for (size_t k = 0; k < FRAG_CURVE_STOPS; k++) {
			if (parts[p].at[k] < s.next)
				continue;
			FRAG_TRY(frag_cursor_to(&s, parts[p].at[k], err));
			FRAG_TRY(look(x, &s, sums, err));
		}
	}
	return 0;
}

/* ---- the largest ---------------------------------------------------------------------------- */

struct site { /* its sums are [from, to) */
	size_t from, to;
	uint64_t most;
};

/* The next largest behind `last`; of equal ones the first comes first. holder: one of the entries
 * of the site that comes before all others. False: no more of them has anything. */
static bool next_site(const struct sums *sums, enum what what, size_t holder,
		      const struct site *last, struct site *out)
{
	*out = (struct site){ 0 };
	for (size_t from = 0, to; from < sums->count; from = to) {
		struct site one = { .from = from };

		for (to = from; to < sums->count && sums->list[to].key == sums->list[from].key;
		     to++)
			one.most = FRAG_MAX(one.most, sums->list[to].bytes[what]);
		one.to = to;
		if (from <= holder && holder < to)
			one.most = UINT64_MAX;
		if (one.most > out->most &&
		    (one.most < last->most || (one.most == last->most && from >= last->to)))
			*out = one;
	}
	return out->most > 0;
}

static void fill(const struct frag_explained *x, const struct sums *sums, enum what what,
		 struct frag_curve_set *set)
{
	struct site site = { .most = UINT64_MAX }, last = site;
	struct frag_highest *h = &set->highest;
	size_t holder = SIZE_MAX;
	uint64_t held = 0;
	uint32_t stop = 0;

	for (size_t i = 0; i < sums->count; i++)
		set->bytes[sums->list[i].stop][FRAG_CURVES] += sums->list[i].bytes[what];
	for (uint32_t p = 1; p < x->curves->points; p++)
		stop = set->bytes[p][FRAG_CURVES] > set->bytes[stop][FRAG_CURVES] ? p : stop;
	h->all_bytes = set->bytes[stop][FRAG_CURVES];
	/* the largest holder where the sum is highest comes first, regardless of other stops */
	for (size_t i = 0; i < sums->count; i++)
		if (sums->list[i].stop == stop && sums->list[i].bytes[what] > held) {
			held = sums->list[i].bytes[what];
			holder = i;
		}
	for (; set->count < FRAG_CURVES && next_site(sums, what, holder, &last, &site);
	     last = site) {
		const size_t k = set->count++;

		set->names[k] = name_of(x, sums->list[site.from].key);
		for (size_t i = site.from; i < site.to; i++) {
			const struct sum *one = &sums->list[i];

			set->bytes[one->stop][k] += one->bytes[what];
			set->bytes[one->stop][FRAG_CURVES] -= one->bytes[what];
		}
	}
	h->bytes = set->count ? set->bytes[stop][0] : 0;
	h->site = h->bytes ? set->names[0] : NULL;
	h->share_ratio = h->all_bytes ? (double)h->bytes / (double)h->all_bytes : 0;
}

int frag_explain_curves(struct frag_explained *x, struct frag_err *err)
{
	struct sums sums = { 0 };
	int rc;

	FRAG_TRY_CALLOC(x->curves, 1, "explanation", err);
	rc = look_all(x, &sums, err);
	if (!rc) {
		if (sums.count)
			qsort(sums.list, sums.count, sizeof(*sums.list), by_key);
		fill(x, &sums, LIVE, &x->curves->live);
		fill(x, &sums, NON_RELEASABLE, &x->curves->non_releasable);
	}
	frag_host_free(sums.list);
	return rc;
}
