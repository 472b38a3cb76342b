/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest card of recordings under policies, and which card to take; see fit_cards.h. */
#include "fit_cards.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "recording/estimate.h"

/* Beyond this part of the recorded time the driver is noticed. */
#define COSTLY_RATIO 0.01

static uint64_t last_us(const struct frag_unit *unit)
{
	size_t n = unit->dev->events_count;

	return n ? (uint64_t)unit->dev->events[n - 1].time_us : 0;
}

int frag_fit_policies(struct frag_policy_texts *policies, struct frag_err *err)
{
	FRAG_TRY(frag_policy_texts_default(policies,
					   "recorded;pytorch;pytorch:expandable_segments:True;"
					   "pytorch:max_split_size_mb:128;"
					   "pytorch:roundup_power2_divisions:8",
					   err));
	return frag_policy_texts_check(policies, NULL, err);
}

/* ---- rows: one policy on all traces ---------------------------------------------- */

static void row_release(struct frag_fit_row *row, size_t units)
{
	for (size_t i = 0; row->specs && i < units; i++)
		frag_policy_spec_destroy(row->specs[i]);
	frag_host_free(row->specs);
	*row = (struct frag_fit_row){ 0 };
}

/* A row unless it asks for the same replays as another one, or a trace does not say what it was
 * recorded with. */
static int add_row(struct frag_fit_cards *f, const char *text, struct frag_err *err)
{
	struct frag_fit_row *row = &f->rows[f->rows_count++];
	size_t units = f->units.units_count;
	bool known = true;

	row->text = text;
	FRAG_TRY_CALLOC(row->specs, units, "policies", err);
	for (size_t i = 0; known && i < units; i++) {
		FRAG_TRY(frag_recording_spec(f->units.units[i].trace, text, &row->specs[i], err));
		known = row->specs[i] != NULL;
	}
	for (const struct frag_fit_row *x = f->rows; known && x < row; x++) {
		size_t same = 0;

		while (same < units && !strcmp(frag_policy_spec_echo(x->specs[same]),
					       frag_policy_spec_echo(row->specs[same])))
			same++;
		known = same < units;
	}
	if (!known) {
		row_release(row, units);
		f->rows_count--;
	}
	return 0;
}

static int make_rows(struct frag_fit_cards *f, const struct frag_policy_texts *policies,
		     struct frag_err *err)
{
	FRAG_TRY_CALLOC(f->rows, policies->count, "policies", err);
	for (size_t i = 0; i < policies->count; i++) {
		const char *text = frag_policy_texts_for(policies, i, f->units.units[0].trace);

		if (text)
			FRAG_TRY(add_row(f, text, err));
	}
	if (f->rows_count)
		return 0;
	for (size_t i = 0; i < f->units.units_count; i++)
		FRAG_TRY(frag_recorded_invalid(f->units.units[i].trace, err));
	return FRAG_USAGE(err, "no policy to try: no trace holds the settings that it was recorded "
			       "with");
}

/* ---- the search ------------------------------------------------------------------ */

/* Processes that shared a card need what they held together; one that was refused memory, its own
 * need beside what the others held. */
static void share_card(struct frag_fit_cards *f, struct frag_fit_row *row, size_t unit)
{
	const uint64_t context = f->target->card.context_bytes;
	const struct frag_events *in = &f->units.units[unit].events;
	struct frag_neighbours all = frag_estimate_shared(in->trace),
			       others = frag_estimate_neighbours(in->trace, in->dev);
	uint64_t bytes = all.bytes - all.contexts_bytes + all.count * context;
	uint64_t own = others.bytes - others.contexts_bytes + others.count * context +
		       row->tasks[unit].fit.min_capacity_bytes;

	f->shared |= all.count != 0;
	bytes = FRAG_MAX(bytes, others.count ? own : 0);
	row->min_bytes = FRAG_MAX(row->min_bytes, bytes);
	row->safe_bytes = FRAG_MAX(row->safe_bytes, bytes);
	row->ample_bytes = FRAG_MAX(row->ample_bytes, bytes);
	row->peak_bytes = FRAG_MAX(row->peak_bytes, bytes - FRAG_MIN(bytes, context));
	for (size_t g = 0; g < f->catalog.count; g++)
		if (frag_gpu_room(f->catalog.cards[g], NULL) + context < bytes)
			row->gpus &= ~(1ull << g);
}

/* The worst unit decides. */
static void sum_row(struct frag_fit_cards *f, struct frag_fit_row *row)
{
	row->complete = row->possible = true;
	row->gpus = ~0ull;
	for (size_t i = 0; i < f->units.units_count; i++) {
		const struct frag_fit *fit = &row->tasks[i].fit;
		bool possible = row->possible;
		uint64_t us = last_us(&f->units.units[i]);

		row->complete &= fit->complete;
		row->possible &= fit->possible;
		row->gpus &= row->tasks[i].gpus;
		row->probes += fit->probes_count;
		row->costly |= us && (double)fit->driver_ns / 1e3 >= COSTLY_RATIO * (double)us;
		/* one that never completes is worse than any other */
		if (possible && (!fit->possible || fit->min_capacity_bytes > row->min_bytes)) {
			row->min_bytes = fit->min_capacity_bytes;
			row->worst = i;
		}
		row->safe_bytes = FRAG_MAX(row->safe_bytes, fit->safe_capacity_bytes);
		row->ample_bytes = FRAG_MAX(row->ample_bytes, fit->ample_capacity_bytes);
		row->peak_bytes = FRAG_MAX(row->peak_bytes, fit->peak_reserved_bytes);
		share_card(f, row, i);
	}
	f->interrupted += !row->complete;
	if (!row->complete || !row->possible)
		row->gpus = 0;
}

static int search(struct frag_fit_cards *f, unsigned threads, struct frag_err *err)
{
	size_t units = f->units.units_count, count = f->rows_count * units;
	struct frag_plan_env env;
	struct frag_progress progress;
	char label[128];
	int rc;

	FRAG_TRY_CALLOC(f->tasks, count, "fit", err);
	for (size_t r = 0; r < f->rows_count; r++) {
		f->rows[r].tasks = &f->tasks[r * units];
		for (size_t i = 0; i < units; i++)
			f->rows[r].tasks[i] =
				(struct frag_fit_task){ .spec = f->rows[r].specs[i],
							.dev = f->units.units[i].dev };
	}
	frag_plan_env_init(&env, f->target, threads);
	snprintf(label, sizeof(label), "fitting %.80s", f->units.units[0].label);
	frag_progress_begin(&progress, label);
	env.watch = progress.watch;
	rc = frag_fit_run(&env, f->catalog.cards, f->catalog.count, f->tasks, count, err);
	frag_progress_end(&progress);
	/* the first error in the order of the tasks */
	for (size_t i = 0; !rc && i < count; i++)
		if (f->tasks[i].rc) {
			*err = f->tasks[i].err;
			rc = frag_err_prefix(err, "policy '%s'",
					     frag_policy_spec_text(f->tasks[i].spec));
		}
	for (size_t r = 0; !rc && r < f->rows_count; r++)
		sum_row(f, &f->rows[r]);
	return rc;
}

int frag_fit_cards_search(struct frag_fit_cards *f, const struct frag_policy_texts *policies,
			  unsigned threads, struct frag_err *err)
{
	for (size_t i = 0; i < f->units.units_count; i++) {
		const struct frag_unit *u = &f->units.units[i];
		const struct frag_gpu_chip *chip = frag_recorded_chip(u->trace, u->dev);

		f->headroom.outside_bytes =
			FRAG_MAX(f->headroom.outside_bytes, frag_recorded_outside_bytes(u->dev));
		f->ended |= u->dev->ending.out_of_memory;
		f->chip = !i || frag_same_kernels(chip, f->chip) ? chip : NULL;
	}
	FRAG_TRY(make_rows(f, policies, err));
	return search(f, threads, err);
}

void frag_fit_cards_release(struct frag_fit_cards *f)
{
	for (size_t i = 0; i < f->rows_count; i++)
		row_release(&f->rows[i], f->units.units_count);
	FRAG_FREE(f->rows, f->tasks);
	frag_recordings_release(&f->units);
	if (!f->borrows)
		frag_catalog_release(&f->catalog);
}

/* ---- which card ------------------------------------------------------------------ */

uint64_t frag_fit_peak(const struct frag_fit_cards *f, const struct frag_fit_row *row)
{
	return row->ample_bytes - f->target->card.context_bytes;
}

/* A limit that is a fraction of the card leaves less of it. */
uint64_t frag_fit_room(const struct frag_fit_cards *f, size_t g, const struct frag_headroom *kept)
{
	const struct frag_gpu *gpu = f->catalog.cards[g];

	return FRAG_MIN(frag_gpu_room(gpu, kept),
			frag_limit_bytes(&f->target->limit, gpu->total_bytes));
}

const struct frag_fit_cards *frag_fit_judge(const struct frag_fit_cards *f, size_t g)
{
	return f->judges && f->judges[g] ? f->judges[g] : f;
}

enum frag_fit_basis frag_fit_basis(const struct frag_fit_cards *f, size_t g)
{
	const struct frag_gpu *gpu = frag_gpu_find(f->catalog.cards[g]->name);

	if (f->failed || !f->chip || !gpu)
		return f->failed ? FRAG_FIT_FAILED : FRAG_FIT_UNKNOWN;
	return frag_same_kernels(f->chip, frag_gpu_chip_find(gpu->name)) ? FRAG_FIT_RECORDED
									 : FRAG_FIT_OTHER_KERNELS;
}

bool frag_fit_open(const struct frag_fit_cards *f, size_t g)
{
	const struct frag_fit_cards *judge = frag_fit_judge(f, g);

	return judge->failed || (judge->ended && frag_fit_best_row(judge, g) != SIZE_MAX);
}

bool frag_fit_roomy(const struct frag_fit_cards *f, const struct frag_fit_row *row, size_t g)
{
	return !f->ended && !f->failed && row->gpus >> g & 1 &&
	       frag_fit_room(f, g, &f->headroom) >= frag_fit_peak(f, row);
}

size_t frag_fit_best_row(const struct frag_fit_cards *f, size_t g)
{
	const struct frag_fit_row *best = NULL;

	/* those that do not cost time come first, then what reserves least */
	for (const struct frag_fit_row *x = f->rows; x < f->rows + f->rows_count; x++) {
		int order = 0;

		if (!(x->gpus >> g & 1))
			continue;
		if (best)
			order = FRAG_ORDER(frag_fit_roomy(f, best, g), frag_fit_roomy(f, x, g))
					?: FRAG_ORDER(x->costly, best->costly)
					?: FRAG_ORDER(x->ample_bytes, best->ample_bytes);
		if (!best || order < 0)
			best = x;
	}
	return best ? (size_t)(best - f->rows) : SIZE_MAX;
}

size_t frag_fit_card(const struct frag_fit_cards *f, size_t row, bool others)
{
	size_t best = SIZE_MAX;
	bool priced = true;

	for (size_t g = 0; g < f->catalog.count; g++)
		priced &= f->catalog.cards[g]->price_per_hour > 0;
	for (size_t g = 0; g < f->catalog.count; g++) {
		const struct frag_fit_cards *judge = frag_fit_judge(f, g);
		size_t r = row == SIZE_MAX ? frag_fit_best_row(judge, g) : row;

		if (r >= judge->rows_count || !frag_fit_roomy(judge, &judge->rows[r], g) ||
		    (!others && frag_fit_basis(judge, g) == FRAG_FIT_OTHER_KERNELS))
			continue;
		if (best == SIZE_MAX || (priced && f->catalog.cards[g]->price_per_hour <
							   f->catalog.cards[best]->price_per_hour))
			best = g;
	}
	return best;
}

const struct frag_gpu *frag_fit_gpu(const struct frag_catalog *cards,
				    const struct frag_headroom *headroom,
				    const struct frag_gpu_chip *chip, uint64_t peak_bytes)
{
	struct frag_catalog same = { 0 };
	const struct frag_gpu *gpu;

	for (size_t g = 0; g < cards->count; g++)
		if (!frag_other_kernels(chip, cards->cards[g]))
			same.cards[same.count++] = cards->cards[g];
	gpu = frag_catalog_pick(&same, peak_bytes, headroom);
	return gpu ? gpu : frag_catalog_pick(cards, peak_bytes, headroom);
}

double frag_fit_job_price(const struct frag_fit_cards *f, const struct frag_gpu *gpu)
{
	double hours = 0;

	for (size_t i = 0; i < f->units.units_count; i++)
		hours += (double)last_us(&f->units.units[i]) / 3.6e9;
	return hours * gpu->price_per_hour > 0 ? hours * gpu->price_per_hour : NAN;
}
