/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which card, and which policy on it. A policy has room on a card if its peak on a card without
 * bounds fits beside the context and the headroom; it is tight if it completes with less.
 */
#include "fit_print.h"

/* Beyond this part of the recorded time the driver is noticed. */
#define COSTLY_RATIO 0.01

bool frag_fit_costly(const struct frag_unit *unit, const struct frag_fit *fit)
{
	size_t n = unit->dev->events_count;
	uint64_t us = n ? unit->dev->events[n - 1].time_us : 0;

	return us && (double)fit->driver_ns / 1e3 >= COSTLY_RATIO * (double)us;
}

uint64_t frag_fit_peak(const struct frag_fit_page *p, const struct frag_fit_row *row)
{
	return row->ample_bytes - p->cli->target.card.context_bytes;
}

/* What the process may have of a card, less what is to stay free; a limit that is a part of the
 * card leaves less. */
uint64_t frag_fit_room(const struct frag_fit_page *p, size_t g, const struct frag_headroom *kept)
{
	const struct frag_gpu *gpu = p->catalog.cards[g];

	return FRAG_MIN(frag_gpu_room(gpu, kept),
			frag_limit_bytes(&p->cli->target.limit, gpu->total_bytes));
}

/* Does it run on this card with room for its peak and all that is to stay free? */
bool frag_fit_roomy(const struct frag_fit_page *p, const struct frag_fit_row *row, size_t g)
{
	return row->gpus >> g & 1 &&
	       frag_fit_room(p, g, &p->cli->headroom) >= frag_fit_peak(p, row);
}

/* Those that do not cost time come first, then what reserves least. */
static bool better(const struct frag_fit_page *p, size_t a, size_t b)
{
	const struct frag_fit_row *x = &p->rows[a], *y = &p->rows[b];

	if (x->costly != y->costly)
		return y->costly;
	return x->ample_bytes < y->ample_bytes;
}

/* The best policy on card g, with room or tight; SIZE_MAX = none completes. */
size_t frag_fit_best_row(const struct frag_fit_page *p, size_t g)
{
	size_t best = SIZE_MAX;

	for (size_t r = 0; r < p->rows_count; r++) {
		bool now = best != SIZE_MAX && frag_fit_roomy(p, &p->rows[best], g);

		if (!(p->rows[r].gpus >> g & 1) || (now && !frag_fit_roomy(p, &p->rows[r], g)))
			continue;
		if (best == SIZE_MAX || (!now && frag_fit_roomy(p, &p->rows[r], g)) ||
		    better(p, r, best))
			best = r;
	}
	return best;
}

const char *frag_fit_answer(const struct frag_fit_page *p, size_t g)
{
	size_t r = frag_fit_best_row(p, g);

	return r == SIZE_MAX			   ? "does not fit"
	       : frag_fit_roomy(p, &p->rows[r], g) ? "fits"
						   : "tight";
}

/* The smallest card of the list, or where all have a price the cheapest, on which `row` (SIZE_MAX
 * = the best policy of each card) has room; SIZE_MAX = none. */
size_t frag_fit_card(const struct frag_fit_page *p, size_t row)
{
	size_t best = SIZE_MAX;
	bool priced = true;

	for (size_t g = 0; g < p->catalog.count; g++)
		priced &= p->catalog.cards[g]->price_per_hour > 0;
	for (size_t g = 0; g < p->catalog.count; g++) {
		size_t r = row == SIZE_MAX ? frag_fit_best_row(p, g) : row;

		if (r == SIZE_MAX || !frag_fit_roomy(p, &p->rows[r], g))
			continue;
		if (best == SIZE_MAX || (priced && p->catalog.cards[g]->price_per_hour <
							   p->catalog.cards[best]->price_per_hour))
			best = g;
	}
	return best;
}

bool frag_fit_priced(const struct frag_fit_page *p)
{
	bool any = false;

	for (size_t g = 0; g < p->catalog.count; g++)
		any |= p->catalog.cards[g]->price_per_hour > 0;
	return any;
}

/* For the time that was recorded, a card for each device; 0 = not known. */
double frag_fit_job_price(const struct frag_fit_page *p, const struct frag_gpu *gpu)
{
	double hours = 0;

	for (size_t i = 0; i < p->units.units_count; i++) {
		const struct frag_trace_dev *d = p->units.units[i].dev;

		if (d->events_count)
			hours += (double)d->events[d->events_count - 1].time_us / 3.6e9;
	}
	return hours * gpu->price_per_hour;
}
