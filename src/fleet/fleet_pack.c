/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several units on one card. Bin packing by first fit decreasing, which needs at most 11/9 of the
 * optimum and 6/9 more (Dosa 2007), beside a bound below which no packing is: by the sum of sizes,
 * and by those above a half of the room, of which no two meet.
 *
 * Two alignments. Worst: all peaks at once, sizes are peaks and add up. Measured: at the recorded
 * times; what a card holds is a curve, and a unit fits where the sum of curves stays below its
 * room. Every unit brings a context of its own; units of one job never share a card.
 *
 * Curves are added up by spans of time of one length, and hold in a span their most there: no sum
 * is too small.
 */
#include "fleet.h"

#include <stdlib.h>
#include <string.h>

#define SPANS 4096u
#define CELLS_MAX (1u << 22) /* spans times units */

/* ---- one packing ---------------------------------------------------------------------- */

struct item {
	size_t unit;
	uint64_t bytes; /* peak and context */
	const struct frag_fleet_use *use;
};

struct bin {
	uint64_t used;	/* sum of peaks */
	uint64_t *held; /* [spans_count], if measured */
	size_t *units;
	size_t count;
};

struct packing {
	const struct frag_fleet *f;
	struct item *items;
	size_t count;
	struct bin *bins;
	size_t bins_count;
	uint64_t room, context;
	bool best, measured;
	uint64_t begin_us, span_us;
	size_t spans_count;
	uint64_t *need; /* of one unit, in the spans from first to last */
	size_t first, last;
};

FRAG_COMPARE(largest_first, struct item, FRAG_ORDER(y->bytes, x->bytes),
	     FRAG_ORDER(x->unit, y->unit))

static const struct frag_fleet_use *use_of(const struct packing *p, size_t unit)
{
	const struct frag_fleet_unit *u = &p->f->units[unit];
	const struct frag_fleet_job *job = &p->f->jobs[u->job];

	return &u->uses[p->best ? job->best.policy : job->today.policy];
}

static bool has_job(const struct packing *p, const struct bin *b, const struct item *it)
{
	for (size_t k = 0; k < b->count; k++)
		if (p->f->units[b->units[k]].job == p->f->units[it->unit].job)
			return true;
	return false;
}

/* ---- recorded times --------------------------------------------------------------------- */

static uint64_t end_of(const struct frag_fleet_unit *u)
{
	return u->duration_us < UINT64_MAX - 1 - u->start_us ? u->start_us + u->duration_us
							     : UINT64_MAX - 1;
}

static int find_spans(struct packing *p, struct frag_err *err)
{
	uint64_t end = 0;

	p->begin_us = UINT64_MAX;
	for (size_t i = 0; i < p->count; i++) {
		const struct frag_fleet_unit *u = &p->f->units[p->items[i].unit];

		p->begin_us = FRAG_MIN(p->begin_us, u->start_us);
		end = FRAG_MAX(end, end_of(u));
	}
	p->spans_count = FRAG_MIN(SPANS, CELLS_MAX / p->count + 16);
	p->span_us = (end - p->begin_us) / p->spans_count + 1;
	FRAG_TRY_CALLOC(p->need, p->spans_count, "moments", err);
	return 0;
}

static void find_need(struct packing *p, const struct item *it)
{
	const struct frag_fleet_unit *u = &p->f->units[it->unit];
	const struct frag_fleet_point *c = it->use->curve;
	uint64_t end = end_of(u);

	p->first = (u->start_us - p->begin_us) / p->span_us;
	p->last = (end - p->begin_us) / p->span_us;
	memset(p->need + p->first, 0, (p->last - p->first + 1) * sizeof(*p->need));
	for (size_t i = 0; i < it->use->curve_count; i++) {
		bool is_last = i + 1 == it->use->curve_count;
		uint64_t from = i ? u->start_us + c[i].us : u->start_us,
			 to = is_last ? end : u->start_us + c[i + 1].us;

		for (uint64_t k = (from - p->begin_us) / p->span_us;
		     k <= FRAG_MIN((to - p->begin_us) / p->span_us, p->last); k++)
			p->need[k] = FRAG_MAX(p->need[k], p->context + c[i].bytes);
	}
}

static bool fits(const struct packing *p, const struct bin *b, const struct item *it)
{
	if (!p->measured)
		return b->used + it->bytes <= p->room;
	for (size_t k = p->first; b->held && k <= p->last; k++)
		if (b->held[k] + p->need[k] > p->room)
			return false;
	return true;
}

/* ---- first fit -------------------------------------------------------------------------- */

static size_t find_bin(struct packing *p, const struct item *it)
{
	size_t at = 0;

	if (p->measured)
		find_need(p, it);
	while (at < p->bins_count && (!fits(p, &p->bins[at], it) || has_job(p, &p->bins[at], it)))
		at++;
	return at;
}

static int put(struct packing *p, struct bin *b, const struct item *it, struct frag_err *err)
{
	size_t *units = frag_host_realloc(b->units, b->count + 1, sizeof(*units));

	FRAG_CHECK_ALLOC(units, "cards", err);
	b->units = units;
	b->units[b->count++] = it->unit;
	b->used += it->bytes;
	if (p->measured && !b->held)
		FRAG_TRY_CALLOC(b->held, p->spans_count, "cards", err);
	for (size_t k = p->first; p->measured && k <= p->last; k++)
		b->held[k] += p->need[k];
	return 0;
}

static int pack(struct packing *p, struct frag_err *err)
{
	for (size_t i = 0; i < p->count; i++) {
		size_t at = find_bin(p, &p->items[i]);

		p->bins_count = FRAG_MAX(p->bins_count, at + 1);
		FRAG_TRY(put(p, &p->bins[at], &p->items[i], err));
	}
	return 0;
}

static void empty_bins(struct packing *p)
{
	for (size_t i = 0; i < p->bins_count; i++)
		FRAG_FREE(p->bins[i].units, p->bins[i].held);
	memset(p->bins, 0, p->count * sizeof(*p->bins));
	p->bins_count = 0;
}

/* ---- all units onto one kind of card ----------------------------------------------------- */

/* What fits the card; a job of several ranks as a whole. */
static void gather(struct packing *p, const struct frag_gpu *card, struct frag_fleet_pack *out)
{
	for (size_t i = 0; i < p->f->units_count; i++) {
		const struct frag_fleet_use *use = use_of(p, i);
		const struct frag_fleet_job *job = &p->f->jobs[p->f->units[i].job];
		const struct frag_fleet_choice *c = p->best ? &job->best : &job->today;
		double own = c->card ? frag_fleet_cost(p->f, c->card, 1) : 0;

		if (!c->card || job->unreproduced || !frag_fleet_fits(p->f, c, card)) {
			out->left_out++;
			out->total_cost += own;
			continue;
		}
		p->items[p->count++] = (struct item){ i, use->reserved_bytes + p->context, use };
		out->own_price += c->card->price_per_hour;
		out->own_bytes += c->card->total_bytes;
	}
}

static bool times_known(const struct packing *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (!p->f->units[p->items[i].unit].start_us || !p->items[i].use->curve_count)
			return false;
	return p->count > 0;
}

/* The fewest bins that can do. */
static size_t bound_of(const struct packing *p)
{
	size_t large = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < p->count; i++) {
		sum += p->items[i].bytes;
		large += p->items[i].bytes > p->room / 2;
	}
	return FRAG_MAX(large, (size_t)((sum + p->room - 1) / p->room));
}

static int pack_all(struct packing *p, struct frag_fleet_pack *out, struct frag_err *err)
{
	qsort(p->items, p->count, sizeof(*p->items), largest_first);
	out->units = p->count;
	out->bound = bound_of(p);
	FRAG_TRY(pack(p, err));
	out->cards = p->bins_count;
	if (times_known(p)) {
		empty_bins(p);
		p->measured = true;
		FRAG_TRY(find_spans(p, err));
		FRAG_TRY(pack(p, err));
		out->cards_measured = p->bins_count;
	}
	return 0;
}

static int share_on(const struct frag_fleet *f, const struct frag_gpu *card, bool best,
		    struct frag_fleet_pack *out, struct frag_err *err)
{
	struct packing p = {
		.f = f,
		.best = best,
		.context = card->context_bytes,
		/* headroom once a card; the contexts are counted with the units */
		.room = frag_gpu_room(card, &f->headroom) + card->context_bytes,
		.items = frag_host_calloc(f->units_count + 1, sizeof(*p.items)),
		.bins = frag_host_calloc(f->units_count + 1, sizeof(*p.bins)),
	};
	int rc = 0;

	*out = (struct frag_fleet_pack){ .card = card };
	if (!p.items || !p.bins) {
		rc = frag_fail_nomem(err, "cards");
	} else {
		gather(&p, card, out);
		if (p.count)
			rc = pack_all(&p, out, err);
		out->total_cost += frag_fleet_cost(f, card, out->cards);
		empty_bins(&p);
	}
	FRAG_FREE(p.items, p.bins, p.need);
	return rc;
}

/* What all ranks cost that have a card in the plan, one each. */
static double unshared_cost(const struct frag_fleet *f)
{
	double sum = 0;

	for (size_t j = 0; j < f->jobs_count; j++)
		if (f->jobs[j].best.card)
			sum += frag_fleet_cost(f, f->jobs[j].best.card, f->jobs[j].units_count);
	return sum;
}

int frag_fleet_share(struct frag_fleet *f, const struct frag_gpu *share, struct frag_err *err)
{
	double least; /* money, or memory; sums of prices are not exact */

	if (share) {
		FRAG_TRY(share_on(f, share, false, &f->today, err));
		return share_on(f, share, true, &f->best, err);
	}
	least = unshared_cost(f);
	for (size_t i = 0; i < f->catalog.count; i++) {
		struct frag_fleet_pack one;

		FRAG_TRY(share_on(f, f->catalog.cards[i], true, &one, err));
		if (one.units && one.total_cost < least * (1 - 1e-9)) {
			least = one.total_cost;
			f->best = one;
		}
	}
	return f->best.card ? share_on(f, f->best.card, false, &f->today, err) : 0;
}
