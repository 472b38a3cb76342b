/* SPDX-License-Identifier: Apache-2.0 */
/* For each job the card of today and the cheapest one that would do; see fleet.h. */
#include "fleet.h"

#include <string.h>

bool frag_fleet_need(const struct frag_fleet *f, const struct frag_fleet_job *job, size_t policy,
		     uint64_t *need)
{
	*need = 0;
	for (size_t i = 0; i < job->units_count; i++) {
		const struct frag_fleet_use *u = &f->units[job->first_unit + i].uses[policy];

		if (!u->seen || !u->completed || job->ended) {
			*need = 0;
			return false;
		}
		*need = FRAG_MAX(*need, u->reserved_bytes);
	}
	return true;
}

static struct frag_fleet_choice choose(const struct frag_fleet *f, const struct frag_fleet_job *job,
				       size_t policy)
{
	struct frag_fleet_choice c = { .policy = policy };

	if (frag_fleet_need(f, job, policy, &c.need_bytes))
		c.card = frag_catalog_pick(&f->catalog, c.need_bytes, &f->headroom);
	return c;
}

/* The catalogue is in the order in which cards are preferred only where all have prices. */
static bool cheaper(const struct frag_gpu *a, const struct frag_gpu *b)
{
	if (a->price_per_hour > 0 && b->price_per_hour > 0)
		return a->price_per_hour < b->price_per_hour;
	return a->total_bytes < b->total_bytes;
}

/* The cheaper card; of equals a PyTorch setting before an allocator, then what needs less. */
static bool better(const struct frag_fleet *f, const struct frag_fleet_choice *a,
		   const struct frag_fleet_choice *b)
{
	bool x = f->settable[a->policy], y = f->settable[b->policy];

	if (!a->card || !b->card)
		return a->card != NULL;
	if (cheaper(a->card, b->card) || cheaper(b->card, a->card))
		return cheaper(a->card, b->card);
	return x != y ? x : a->need_bytes < b->need_bytes;
}

void frag_fleet_advise(struct frag_fleet *f, const char *only)
{
	for (size_t j = 0; j < f->jobs_count; j++) {
		struct frag_fleet_job *job = &f->jobs[j];
		struct frag_fleet_choice best;

		job->today = choose(f, job, job->today.policy);
		best = job->today;
		for (size_t p = 0; p < f->policies_count; p++) {
			struct frag_fleet_choice c = choose(f, job, p);

			if (c.card && !job->unreproduced &&
			    (!only || !strcmp(only, f->policies[p])) && better(f, &c, &best))
				best = c;
		}
		/* the same card, or none: nothing is gained by a change */
		job->best = best.card && (!job->today.card || cheaper(best.card, job->today.card))
				    ? best
				    : job->today;
	}
}

static void add_saved(struct frag_fleet_sum *s, const struct frag_fleet_job *job,
		      const struct frag_gpu *now, const struct frag_gpu *then)
{
	s->moved++;
	s->card_bytes_saved += (int64_t)job->units_count *
			       ((int64_t)now->total_bytes - (int64_t)then->total_bytes);
	if (now->price_per_hour > 0 && then->price_per_hour > 0)
		s->price_saved +=
			(double)job->units_count * (now->price_per_hour - then->price_per_hour);
}

struct frag_fleet_sum frag_fleet_sum(const struct frag_fleet *f, enum frag_fleet_which which)
{
	struct frag_fleet_sum s = { .priced = true };

	for (size_t j = 0; j < f->jobs_count; j++) {
		const struct frag_fleet_job *job = &f->jobs[j];
		const struct frag_fleet_choice *c = which ? &job->best : &job->today;

		if (job->unreproduced)
			continue;
		s.jobs_without += !c->card;
		if (!c->card || (which == FRAG_FLEET_GAINED) != !job->today.card)
			continue;
		s.jobs++;
		s.cards += job->units_count;
		s.card_bytes += job->units_count * c->card->total_bytes;
		s.price += (double)job->units_count * c->card->price_per_hour;
		s.priced = s.priced && c->card->price_per_hour > 0;
		for (size_t i = 0; i < job->units_count; i++) {
			const struct frag_fleet_use *u =
				&f->units[job->first_unit + i].uses[c->policy];

			s.reserved_bytes += u->reserved_bytes;
			s.live_bytes += u->bound_bytes;
		}
		if (job->today.card && c->card != job->today.card)
			add_saved(&s, job, job->today.card, c->card);
	}
	return s;
}

bool frag_fleet_fits(const struct frag_fleet *f, const struct frag_fleet_choice *c,
		     const struct frag_gpu *card)
{
	return c->need_bytes && c->need_bytes <= frag_gpu_room(card, &f->headroom);
}

struct frag_fleet_setting frag_fleet_setting(const struct frag_fleet *f, size_t policy)
{
	struct frag_fleet_setting s = { 0 };
	struct frag_fleet_sum sum = { 0 };

	for (size_t j = 0; j < f->jobs_count; j++) {
		const struct frag_fleet_job *job = &f->jobs[j];
		struct frag_fleet_choice c = choose(f, job, policy);
		bool runs = c.need_bytes > 0;
		bool tried = f->units[job->first_unit].uses[policy].seen;

		if (job->unreproduced)
			continue;
		s.tried += tried;
		s.refused += tried && !runs;
		if (!job->today.card) {
			s.gained += c.card != NULL;
			continue;
		}
		for (size_t i = 0; i < job->units_count; i++)
			s.reserved_bytes += f->units[job->first_unit + i]
						    .uses[runs ? policy : job->today.policy]
						    .reserved_bytes;
		if (c.card && cheaper(c.card, job->today.card))
			add_saved(&sum, job, job->today.card, c.card);
	}
	s.moved = sum.moved;
	s.card_bytes_saved = sum.card_bytes_saved;
	s.price_saved = sum.price_saved;
	return s;
}

double frag_fleet_cost(const struct frag_fleet *f, const struct frag_gpu *card, size_t count)
{
	bool priced = true;

	for (size_t i = 0; i < f->catalog.count; i++)
		priced = priced && f->catalog.cards[i]->price_per_hour > 0;
	return (double)count * (priced ? card->price_per_hour : (double)card->total_bytes);
}
