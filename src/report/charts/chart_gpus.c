/* SPDX-License-Identifier: Apache-2.0 */
/* Peak reserved against the known cards: which policy fits where. */
#include "chart.h"

#define CARDS_MAX 9u /* columns that can be read */

#define COLUMNS(X, s) \
	X(s, COUNT, rank, rank) \
	X(s, TEXT, policy, r->policy) \
	X(s, COUNT, card_no, c) \
	X(s, TEXT, card, cards.card[c]->name) \
	X(s, TEXT, card_label, cards.card[c]->label) \
	X(s, BYTES, usable_bytes, usable(cards.card[c])) \
	X(s, BYTES, peak_reserved_bytes, peak) \
	X(s, RATIO, used_ratio, (double)peak / (double)usable(cards.card[c]))
FRAG_CSV_ROW(row, COLUMNS)

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

/* A row per cell; only policies that completed have a need to compare. */
static struct frag_rows rows(const struct frag_chart_job *job)
{
	size_t count = job->section->count, n = 0, rank = 0;
	struct row *list = frag_answer_new(job->answer, count * CARDS_MAX, sizeof(*list));
	struct cards cards;

	if (!list || frag_section_best(job->section) == SIZE_MAX)
		return (struct frag_rows){ 0 };
	choose(job, &cards);
	for (size_t i = 0; i < count; i++) {
		const struct frag_result *r = frag_chart_result(job, i);
		uint64_t peak = r->m.peak_reserved_bytes;

		for (size_t c = 0; r->completed && c < cards.count; c++)
			list[n++] = FRAG_CSV_VALUES(row, COLUMNS);
		rank += r->completed;
	}
	return (struct frag_rows){ list, n };
}

static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	struct frag_advice a;

	frag_section_advice(job->section, &a);
	if (a.pick == SIZE_MAX || a.refused) {
		frag_text_add(&out->text, "Peaks say nothing of cards where requests are refused");
		return;
	}
	if (!a.card && !a.tight) {
		frag_text_addf(&out->text, "No known card has room for %s",
			       job->section->results[a.pick].policy);
		return;
	}
	frag_text_addf(&out->text, "%s runs on %s", job->section->results[a.pick].policy,
		       (a.card ? a.card : a.tight)->label);
	if (!a.card)
		return;
	frag_text_addf(&out->text, " with %s to spare",
		       frag_title_percent(out, "spare_ratio",
					  (double)a.spare_bytes / (double)a.card->total_bytes, 0));
}

const struct frag_chart_ops frag_chart_gpus = {
	.name = "gpus",
	.rank = 35,
	.heading = "Which card has room",
	FRAG_CHART_HOOKS,
	.caption = "Peak reserved memory in percent of what a card has left beside the CUDA "
		   "context. Blue: it fits; the paler, the more headroom. Hatched: it does not fit "
		   "as it ran here. A policy that gives cached memory back under pressure may "
		   "still run on a smaller card: cufrag fit finds out.",
};
