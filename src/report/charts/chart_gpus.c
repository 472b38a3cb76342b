/* SPDX-License-Identifier: Apache-2.0 */
/* Peak reserved against the known cards: which policy fits where. */
#include "chart.h"

#include <inttypes.h>

#define CARDS_MAX 9u /* columns that can be read */

struct cards {
	const struct frag_gpu *card[CARDS_MAX];
	size_t count;
};

static uint64_t usable(const struct frag_gpu *gpu)
{
	return frag_gpu_room(gpu, NULL);
}

/* If there are too many: from two below the first that has room for the best policy. */
static void choose(const struct frag_chart_job *job, struct cards *out)
{
	size_t best = frag_section_best(job->section), skip = 0;
	uint64_t need = best == SIZE_MAX ? 0 : job->section->results[best].m.peak_reserved_bytes;
	struct frag_catalog known;
	const struct frag_catalog *c = frag_section_catalog(job->section, &known);

	while (skip + CARDS_MAX < c->count && usable(c->cards[skip + 2]) < need)
		skip++;
	out->count = 0;
	for (size_t i = skip; i < c->count && out->count < CARDS_MAX; i++)
		out->card[out->count++] = c->cards[i];
}

static bool wanted(const struct frag_chart_job *job)
{
	return frag_section_best(job->section) != SIZE_MAX;
}

/* A row per cell; only policies that completed have a need to compare. */
static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	struct cards cards;
	size_t rank = 0;

	choose(job, &cards);
	frag_text_add(out, "rank,policy,card_no,card,card_label,usable_bytes,peak_reserved_bytes,"
			   "used_ratio\n");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		if (!r->completed)
			continue;
		for (size_t c = 0; c < cards.count; c++) {
			frag_text_addf(out, "%zu,", rank);
			frag_text_add_csv(out, r->policy);
			frag_text_addf(out, ",%zu,", c);
			frag_text_add_csv(out, cards.card[c]->name);
			frag_text_add(out, ",");
			frag_text_add_csv(out, cards.card[c]->label);
			frag_text_addf(out, ",%" PRIu64 ",%" PRIu64 ",", usable(cards.card[c]),
				       r->m.peak_reserved_bytes);
			frag_text_add_number(out, (double)r->m.peak_reserved_bytes /
							  (double)usable(cards.card[c]));
			frag_text_add(out, "\n");
		}
		rank++;
	}
}

static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	struct frag_advice a;

	frag_section_advice(job->section, &a);
	if (a.pick == SIZE_MAX || a.refused) {
		frag_text_add(out, "Peaks say nothing of cards where requests are refused");
		return;
	}
	if (!a.card && !a.tight) {
		frag_text_addf(out, "No known card has room for %s",
			       job->section->results[a.pick].policy);
		return;
	}
	frag_text_addf(out, "%s runs on %s", job->section->results[a.pick].policy,
		       (a.card ? a.card : a.tight)->label);
	if (a.card)
		frag_text_addf(out, " with %.0f %% to spare",
			       100.0 * (double)a.spare_bytes / (double)a.card->total_bytes);
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	(void)job;
	frag_text_add(out,
		      "Peak reserved memory in percent of what a card has left beside the CUDA "
		      "context. Blue: it fits; the paler, the more headroom. Hatched: it "
		      "does not fit as it ran here. A policy that gives cached memory back under "
		      "pressure may still run on a smaller card: cufrag fit finds out.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	struct cards cards;

	choose(job, &cards);
	frag_text_add(out, "Grid of policies and cards. Smallest card with room for each peak: ");
	for (size_t i = 0, said = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];
		size_t c = 0;

		if (!r->completed)
			continue;
		while (c < cards.count && usable(cards.card[c]) < r->m.peak_reserved_bytes)
			c++;
		frag_text_addf(out, "%s%s %s", said++ ? "; " : "", r->policy,
			       c < cards.count ? cards.card[c]->label : "none");
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_gpus = {
	.name = "gpus",
	.rank = 35,
	.heading = "Which card has room",
	.finding = finding,
	.wanted = wanted,
	.csv = csv,
	.caption = caption,
	.alt = alt,
};
