/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of fit says beside its tables. */
#include "fit_cards.h"

#include <string.h>

#include "recording/settled_shape.h"

const char *frag_fit_row_name(const struct frag_fit_row *row)
{
	return frag_policy_spec_echo(row->specs[row->worst]);
}

const char *frag_fit_unreproduced(const struct frag_fit_cards *f, struct frag_answer *a)
{
	for (size_t k = 0; k < f->rows_count * f->units.units_count; k++) {
		const struct frag_fit_row *row = &f->rows[k / f->units.units_count];
		const struct frag_unit *u = &f->units.units[k % f->units.units_count];
		const struct frag_fit *fit = &row->tasks[k % f->units.units_count].fit;
		uint64_t peak = frag_target_recorded_peak(f->target, u->dev);
		/* of unknown settings: PyTorch's defaults */
		bool recorded =
			frag_policy_is_recorded(row->text) ||
			(!u->events.trace->settings.present && !strcmp(row->text, "pytorch"));

		if (recorded && fit->possible && peak && u->dev->settled.checked &&
		    !u->dev->settled.identical && fit->peak_reserved_bytes != peak)
			return frag_not_reproduced_text(a, peak, fit->peak_reserved_bytes);
	}
	return NULL;
}

/* Recordings of one device each, with the first policy. */
static void say_together(const struct frag_fit_cards *f, struct frag_answer *a)
{
	const size_t n = f->units.count;
	uint64_t sum = n * f->target->card.context_bytes;

	if (n < 2 || n != f->units.units_count || f->shared || !f->rows->complete ||
	    !f->rows->possible)
		return;
	for (size_t i = 0; i < n; i++)
		sum += f->rows[0].tasks[i].fit.peak_reserved_bytes;
	frag_answer_remark(a,
			   "%zu recordings, each judged on a card of its own; together on one "
			   "card they need at most %s, the sum of their peaks with %s and contexts",
			   n, FRAG_BYTES(sum), frag_fit_row_name(f->rows));
}

void frag_fit_remarks(const struct frag_fit_cards *f, struct frag_answer *a)
{
	const struct frag_limit *limit = &f->target->limit;
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	uint64_t refused = 0;

	frag_recordings_head(a, "fit", &f->units);
	frag_text_addf(&t, "smallest card = what the trace needs + context %s",
		       FRAG_BYTES(f->target->card.context_bytes));
	if (limit->text)
		frag_text_addf(&t, "; limit %s%s", limit->text,
			       limit->is_fraction ? " of the card that is tried" : "");
	frag_text_addf(&t, "; seed %llu", (unsigned long long)f->target->seed);
	a->failed |= t.failed;
	frag_answer_remark(a, "%s", frag_text_str(&t));
	if (f->judges)
		frag_answer_remark(a,
				   "recorded for each compute capability of the cards; what "
				   "policies need, as on %s",
				   f->chip ? f->chip->name : "the first card");
	else if (f->chip)
		frag_answer_remark(a,
				   "recorded on %s, compute capability %d.%d: cards of another one "
				   "are likely to choose other kernels",
				   f->chip->name, f->chip->major, f->chip->minor);
	else
		frag_answer_remark(a,
				   "%s: one of another compute capability may choose other "
				   "kernels, and need more",
				   f->units.count > 1
					   ? "the recordings do not all name the same card"
					   : "the recording does not say its card");
	say_together(f, a);
	frag_recordings_remark(a, &f->units, f->target,
			       "not applied: the search is for a card without it");
	for (size_t i = 0; i < f->units.units_count; i++) {
		const struct frag_unit *u = &f->units.units[i];
		uint64_t peak = frag_recorded_peak(u->dev);

		refused += u->dev->settled.refused_count;
		if (u->dev->truncated)
			frag_answer_remark(a,
					   "recording %s: its oldest entries were lost, so what it "
					   "needed before is not known",
					   u->label);
		if (peak && peak != f->rows[0].tasks[i].fit.peak_reserved_bytes)
			frag_answer_remark(a,
					   "recording %s: %s was reserved at most when it was "
					   "recorded; the peaks here are simulated",
					   u->label, FRAG_BYTES(peak));
	}
	if (f->shared)
		frag_answer_remark(a, "processes shared a card: a smallest card has at least what "
				      "they held together, with a context for each");
	if (refused)
		frag_answer_remark(a,
				   "%llu requests were refused when recorded; a smallest card "
				   "serves them, too",
				   (unsigned long long)refused);
}

static void say_gaps(const struct frag_fit_row *row, const struct frag_unit *unit,
		     const struct frag_fit *fit, struct frag_answer *a)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	for (size_t k = 0; k < fit->gaps_count; k++) {
		const struct frag_fit_gap *g = &fit->gaps[k];

		frag_text_addf(&t, "%s %llu", k ? "," : "", (unsigned long long)g->first_bytes);
		if (g->last_bytes != g->first_bytes)
			frag_text_addf(&t, " to %llu", (unsigned long long)g->last_bytes);
	}
	if (fit->gaps_seen > fit->gaps_count)
		frag_text_addf(&t, " and in %zu more ranges", fit->gaps_seen - fit->gaps_count);
	a->failed |= t.failed;
	frag_answer_say(a,
			"not monotonic: %s on %s completes with %s (%llu) but fails with%s; no "
			"probe failed from %s (%llu) on",
			frag_fit_row_name(row), unit->label, FRAG_BYTES(fit->min_capacity_bytes),
			(unsigned long long)fit->min_capacity_bytes, frag_text_str(&t),
			FRAG_BYTES(fit->safe_capacity_bytes),
			(unsigned long long)fit->safe_capacity_bytes);
}

void frag_fit_say_rows(const struct frag_fit_cards *f, struct frag_answer *a)
{
	const char *limit = f->target->limit.text;

	for (const struct frag_fit_row *r = f->rows; r < f->rows + f->rows_count; r++)
		if (r->complete && !r->possible) /* what no card helps against */
			frag_answer_say(a, "never: %s fails on %s even with 1 TiB%s%s",
					frag_fit_row_name(r), f->units.units[r->worst].label,
					limit ? ", because of --limit " : "", limit ? limit : "");
	for (size_t k = 0; k < f->rows_count * f->units.units_count; k++) {
		const struct frag_fit_row *row = &f->rows[k / f->units.units_count];
		const struct frag_unit *unit = &f->units.units[k % f->units.units_count];
		const struct frag_fit *fit = &row->tasks[k % f->units.units_count].fit;

		if (row->possible && fit->complete && fit->narrow)
			frag_answer_say(a,
					"larger cards on which %s might fail on %s were not "
					"searched for: a replay makes too many driver calls",
					frag_fit_row_name(row), unit->label);
		if (row->possible && fit->complete && fit->gaps_seen)
			say_gaps(row, unit, fit, a);
	}
}
