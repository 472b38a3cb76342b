/* SPDX-License-Identifier: Apache-2.0 */
/* For each job the card of today and the cheapest one that would do; see fleet.h. */
#include "fleet.h"

#include <string.h>

/* What the worst unit of a job needs under a policy; false: it does not run under it. */
static bool job_need(const struct frag_fleet *f, const struct frag_fleet_job *job, size_t policy,
		     uint64_t *need)
{
	*need = 0;
	for (size_t i = 0; i < job->units_count; i++) {
		const struct frag_fleet_use *u = &f->units[job->first_unit + i].uses[policy];

		if (!u->seen || !u->completed)
			return false;
		*need = FRAG_MAX(*need, u->reserved_bytes);
	}
	return true;
}

static struct frag_fleet_choice choose(const struct frag_fleet *f, const struct frag_fleet_job *job,
				       size_t policy)
{
	struct frag_fleet_choice c = { .policy = policy };

	if (job_need(f, job, policy, &c.need_bytes))
		c.card = frag_catalog_pick(&f->catalog, c.need_bytes, &f->cli->headroom);
	return c;
}

/* The catalogue is in the order in which cards are preferred only where all have prices. */
static bool cheaper(const struct frag_gpu *a, const struct frag_gpu *b)
{
	if (a->price_per_hour > 0 && b->price_per_hour > 0)
		return a->price_per_hour < b->price_per_hour;
	return a->total_bytes < b->total_bytes;
}

/* A change has to pay: a cheaper card; on the same card what is recorded stays. */
static bool better(const struct frag_fleet_choice *a, const struct frag_fleet_choice *b)
{
	if (!a->card || !b->card)
		return a->card != NULL;
	return cheaper(a->card, b->card) ||
	       (!cheaper(b->card, a->card) && a->need_bytes < b->need_bytes);
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

			if (c.card && (!only || !strcmp(only, f->policies[p])) && better(&c, &best))
				best = c;
		}
		/* the same card, or none: nothing is gained by a change */
		job->best = best.card && (!job->today.card || cheaper(best.card, job->today.card))
				    ? best
				    : job->today;
	}
}

struct frag_fleet_sum frag_fleet_sum(const struct frag_fleet *f, bool best)
{
	struct frag_fleet_sum s = { .priced = true };

	for (size_t j = 0; j < f->jobs_count; j++) {
		const struct frag_fleet_job *job = &f->jobs[j];
		const struct frag_fleet_choice *c = best ? &job->best : &job->today;

		if (!c->card) {
			s.jobs_without++;
			continue;
		}
		s.cards += job->units_count;
		s.card_bytes += job->units_count * c->card->total_bytes;
		s.price += (double)job->units_count * c->card->price_per_hour;
		s.priced = s.priced && c->card->price_per_hour > 0;
		for (size_t i = 0; i < job->units_count; i++)
			s.reserved_bytes +=
				f->units[job->first_unit + i].uses[c->policy].reserved_bytes;
		s.moved += best && job->best.card != job->today.card;
	}
	return s;
}
