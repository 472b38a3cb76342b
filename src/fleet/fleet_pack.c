/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several units on one card. Bin packing by first fit decreasing, which needs at most 11/9 of the
 * optimum and 6/9 more (Dosa 2007), beside a bound below which no packing is: the larger of the
 * sum of sizes and, by halves, those that can only meet what is small (Martello and Toth's L2).
 *
 * Two alignments. Worst: all peaks at once, sizes are peaks and add up. Measured: at the recorded
 * times; what a card holds is a curve, and a unit fits where the sum of curves stays below its
 * room. Every unit brings a context of its own; units of one job never share a card.
 */
#include "fleet.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE SIZE_MAX

size_t frag_fleet_bound(const uint64_t *sizes, size_t n, uint64_t room)
{
	size_t best = 0;

	if (!room)
		return n ? SIZE_MAX : 0;
	/* for each k: above room - k every one is alone, above room / 2 only with what is left there */
	for (size_t t = 0; t <= n; t++) {
		uint64_t k = t ? sizes[t - 1] : 0, sum = 0, left = 0;
		size_t large = 0, middle = 0;

		if (k > room / 2)
			continue;
		for (size_t i = 0; i < n; i++) {
			large += sizes[i] > room - k;
			if (sizes[i] > room / 2 && sizes[i] <= room - k) {
				middle++;
				left += room - sizes[i];
			} else if (sizes[i] >= k && sizes[i] <= room / 2) {
				sum += sizes[i];
			}
		}
		best = FRAG_MAX(
			best, large + middle +
				      (sum > left ? (size_t)((sum - left + room - 1) / room) : 0));
		if (n > 2000 && t >= 200)
			break; /* any k gives a bound; all of them would take n * n steps */
	}
	return best;
}

/* ---- one packing ---------------------------------------------------------------------- */

struct item {
	size_t unit;
	uint64_t bytes; /* peak and context */
	const struct frag_fleet_use *use;
};

struct bin {
	uint64_t used; /* sum of peaks */
	size_t *units;
	size_t count, cap;
};

struct packing {
	const struct frag_fleet *f;
	struct item *items;
	size_t count;
	struct bin *bins;
	size_t bins_count;
	uint64_t room, context;
	bool best, measured;
};

static int largest_first(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	return FRAG_ORDER(b->bytes, a->bytes) ?: FRAG_ORDER(a->unit, b->unit);
}

static const struct frag_fleet_use *use_of(const struct packing *p, size_t unit)
{
	const struct frag_fleet_unit *u = &p->f->units[unit];
	const struct frag_fleet_job *job = &p->f->jobs[u->job];

	return &u->uses[p->best ? job->best.policy : job->today.policy];
}

/* What a unit holds at a moment of Unix time, with its context; 0 when it does not run. */
static uint64_t holds_at(const struct packing *p, size_t unit, uint64_t us)
{
	const struct frag_fleet_unit *u = &p->f->units[unit];
	const struct frag_fleet_use *use = use_of(p, unit);
	size_t low = 0, high = use->curve_count;

	if (us < u->start_us || us > u->start_us + u->duration_us)
		return 0;
	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (u->start_us + use->curve[mid].us <= us)
			low = mid;
		else
			high = mid;
	}
	return p->context + (use->curve_count ? use->curve[low].bytes : use->reserved_bytes);
}

/* The sum changes only where a curve does: those moments, of all that would be on the card. */
static bool fits_measured(const struct packing *p, const struct bin *b, size_t unit)
{
	for (size_t k = 0; k <= b->count; k++) {
		size_t other = k < b->count ? b->units[k] : unit;
		const struct frag_fleet_use *use = use_of(p, other);

		for (size_t i = 0; i < FRAG_MAX(use->curve_count, 1u); i++) {
			uint64_t us = p->f->units[other].start_us +
				      (use->curve_count ? use->curve[i].us : 0);
			uint64_t sum = holds_at(p, unit, us);

			for (size_t m = 0; m < b->count; m++)
				sum += holds_at(p, b->units[m], us);
			if (sum > p->room)
				return false;
		}
	}
	return true;
}

static bool fits(const struct packing *p, const struct bin *b, const struct item *it)
{
	for (size_t k = 0; k < b->count; k++)
		if (p->f->units[b->units[k]].job == p->f->units[it->unit].job)
			return false;
	if (b->used + it->bytes <= p->room)
		return true;
	return p->measured && fits_measured(p, b, it->unit);
}

static int pack(struct packing *p, size_t *place, struct frag_err *err)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct item *it = &p->items[i];
		struct bin *b = p->bins, *end = p->bins + p->bins_count;
		size_t *units;

		while (b < end && !fits(p, b, it))
			b++;
		if (b == end)
			p->bins_count++;
		units = frag_host_realloc(b->units, b->count + 1, sizeof(*units));
		FRAG_CHECK_ALLOC(units, "cards", err);
		b->units = units;
		b->units[b->count++] = it->unit;
		b->used += it->bytes;
		if (place)
			place[it->unit] = (size_t)(b - p->bins);
	}
	return 0;
}

static void empty_bins(struct packing *p)
{
	for (size_t i = 0; i < p->bins_count; i++)
		frag_host_free(p->bins[i].units);
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

		if (!c->card || !frag_fleet_fits(p->f, c, card)) {
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

static int pack_all(struct packing *p, struct frag_fleet_pack *out, struct frag_err *err)
{
	uint64_t *sizes;

	FRAG_TRY_CALLOC(sizes, p->count + 1, "cards", err);
	qsort(p->items, p->count, sizeof(*p->items), largest_first);
	for (size_t i = 0; i < p->count; i++)
		sizes[i] = p->items[i].bytes;
	out->units = p->count;
	out->bound = frag_fleet_bound(sizes, p->count, p->room);
	frag_host_free(sizes);
	FRAG_TRY(pack(p, out->place, err));
	out->cards = p->bins_count;
	out->cards_measured = 0;
	if (times_known(p)) {
		empty_bins(p);
		p->measured = true;
		FRAG_TRY(pack(p, NULL, err));
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
	out->place = frag_host_calloc(f->units_count + 1, sizeof(*out->place));
	if (!p.items || !p.bins || !out->place) {
		rc = frag_fail_nomem(err, "cards");
	} else {
		for (size_t i = 0; i < f->units_count; i++)
			out->place[i] = NOWHERE;
		gather(&p, card, out);
		if (p.count)
			rc = pack_all(&p, out, err);
		out->total_cost += frag_fleet_cost(f, card, out->cards);
		empty_bins(&p);
	}
	FRAG_FREE(p.items, p.bins);
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
		int rc = share_on(f, f->catalog.cards[i], true, &one, err);

		if (!rc && one.units && one.total_cost < least * (1 - 1e-9)) {
			least = one.total_cost;
			frag_host_free(f->best.place);
			f->best = one;
		} else {
			frag_host_free(one.place);
		}
		FRAG_TRY(rc);
	}
	return f->best.card ? share_on(f, f->best.card, false, &f->today, err) : 0;
}
