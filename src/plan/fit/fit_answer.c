/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest cards as an answer: a row per policy, one per card, the choice; see fit_cards.h. */
#include <math.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "fit_cards.h"
#include "recording/settled_shape.h"

static uint64_t if_known(bool known, uint64_t n)
{
	return known ? n : UINT64_MAX;
}

/* ---- one policy on one device ---------------------------------------------------- */

#define GAP(F, P, S) \
	F(S, BYTES, first_bytes, NULL, "smallest that failed") \
	F(S, BYTES, last_bytes, NULL, "largest that failed")
FRAG_ROW_SHAPE(static, gap_shape, frag_fit_gap, "gap", GAP,
	       "sizes above the smallest card that failed");

#define UNIT_ROW(F, P, S) \
	F(S, TEXT, trace, unit->trace->name, NULL, "its name") \
	F(S, COUNT, device_ordinal, unit->dev->ordinal, NULL, "number of its device") \
	F(S, TEXT, policy, frag_policy_spec_echo(task->spec), NULL, "with all its options") \
	F(S, BOOL, complete, fit->complete, NULL, "the search was not interrupted") \
	F(S, BOOL, possible, fit->possible, NULL, "it completes on a large enough card") \
	F(S, BYTES, min_capacity_bytes, if_known(known, fit->min_capacity_bytes), NULL, \
	  "smallest card that refuses nothing, to 2 MiB") \
	F(S, BYTES, safe_capacity_bytes, if_known(known, fit->safe_capacity_bytes), NULL, \
	  "no card from this size on was seen to fail") \
	F(S, BYTES, ample_capacity_bytes, if_known(known, fit->ample_capacity_bytes), NULL, \
	  "from this size on nothing is given back or retried for want of memory") \
	F(S, BYTES, peak_reserved_bytes, \
	  if_known(fit->peak_reserved_bytes, fit->peak_reserved_bytes), NULL, \
	  "on a large enough card") \
	F(S, COUNT, gaps_count, fit->gaps_seen, NULL, \
	  "ranges above the smallest card that failed") \
	F(S, LIST, gaps, FRAG_ROWS(fit->gaps, fit->gaps_count), NULL, "the first of them", \
	  .of = &gap_shape) \
	F(S, TEXTS, fits, fits_alone(f, r, i, false, a), NULL, \
	  "cards with room for this device alone") \
	F(S, TEXTS, unverified, fits_alone(f, r, i, true, a), NULL, \
	  "the same, but of another compute capability: another kernel choice is likely") \
	F(S, BOOL, need_unknown, unit->dev->ending.out_of_memory, NULL, \
	  "the recording ended out of memory: sizes are lower bounds, and no card fits " \
	  "for certain") \
	F(S, COUNT, probes_count, fit->probes_count, NULL, "replays of the search") \
	F(S, BOOL, narrow, fit->narrow, NULL, \
	  "sizes near the smallest card were not all tried: a replay makes too many driver calls") \
	F(S, COUNT, min_retries_count, if_known(known, fit->min_retries_count), NULL, \
	  "on the smallest card") \
	F(S, NS, min_driver_ns, if_known(known, fit->min_driver_ns), NULL, \
	  "modelled driver time on the smallest card") \
	F(S, COUNT, refused_when_recorded_count, task->dev->settled.refused_count, NULL, \
	  "requests that the smallest card serves, too")
struct unit_row {
	FRAG_ROW_MEMBERS(UNIT_ROW)
	uint64_t gaps_known_count;
};
FRAG_VALUED_SHAPE(static, unit_shape, unit_row, "fit", UNIT_ROW,
		  "one policy on one device of one trace");

static const struct frag_field csv_fields[] = {
	FRAG_FIELD(TEXT, struct unit_row, policy, NULL, ""),
	FRAG_FIELD(TEXT, struct unit_row, trace, NULL, ""),
	FRAG_FIELD_AS(COUNT, "device", struct unit_row, device_ordinal, NULL, ""),
	FRAG_FIELD(BYTES, struct unit_row, min_capacity_bytes, NULL, ""),
	FRAG_FIELD(BYTES, struct unit_row, safe_capacity_bytes, NULL, ""),
	FRAG_FIELD(BYTES, struct unit_row, ample_capacity_bytes, NULL, ""),
	FRAG_FIELD(BYTES, struct unit_row, peak_reserved_bytes, NULL, ""),
	FRAG_FIELD_AS(COUNT, "gaps_count", struct unit_row, gaps_known_count, NULL, ""),
	FRAG_FIELD(TEXTS, struct unit_row, fits, NULL, ""),
	FRAG_FIELD(TEXTS, struct unit_row, unverified, NULL, ""),
	FRAG_FIELD(BOOL, struct unit_row, need_unknown, NULL, ""),
	FRAG_FIELD_END,
};
static const struct frag_shape csv_shape =
	FRAG_SHAPE("fit_csv", struct unit_row, csv_fields, "the columns of the CSV");

static struct frag_rows names_of(const struct frag_catalog *cards, uint64_t set,
				 struct frag_answer *a)
{
	const char **names = frag_answer_new(a, cards->count, sizeof(*names));
	size_t n = 0;

	for (size_t g = 0; names && g < cards->count; g++)
		if (set >> g & 1)
			names[n++] = cards->cards[g]->name;
	return (struct frag_rows){ names, n };
}

/* The cards with room for device i, whatever others need: those recorded for, or the rest. */
static struct frag_rows fits_alone(const struct frag_fit_cards *f, size_t r, size_t i, bool others,
				   struct frag_answer *a)
{
	uint64_t set = 0;

	for (size_t g = 0; g < f->catalog.count; g++) {
		const struct frag_fit_cards *j = frag_fit_judge(f, g);
		const struct frag_fit_task *task =
			r < j->rows_count && i < j->units.units_count ? &j->rows[r].tasks[i] : NULL;

		if (task && !task->dev->ending.out_of_memory && !j->failed &&
		    (frag_fit_basis(j, g) == FRAG_FIT_OTHER_KERNELS) == others &&
		    frag_gpu_room(f->catalog.cards[g], &f->headroom) >=
			    task->fit.ample_capacity_bytes - f->target->card.context_bytes)
			set |= task->gpus & 1ull << g;
	}
	return names_of(&f->catalog, set, a);
}

static struct unit_row unit_row(const struct frag_fit_cards *f, size_t r, size_t i,
				struct frag_answer *a)
{
	const struct frag_unit *unit = &f->units.units[i];
	const struct frag_fit_task *task = &f->rows[r].tasks[i];
	const struct frag_fit *fit = &task->fit;
	bool known = fit->complete && fit->possible;
	struct unit_row row = FRAG_ROW_VALUES(unit_row, UNIT_ROW);

	row.gaps_known_count = if_known(known, fit->gaps_seen);
	return row;
}

/* ---- one policy ------------------------------------------------------------------ */

#define POLICY_ROW(F, P, S) \
	F(S, TEXT, policy, row->text, NULL, "the policy as given") \
	F(S, TEXT, params, frag_fit_row_name(row), "policy", "with all its options") \
	P(S, TEXT, smallest, \
	  !row->complete ? "interrupted" \
	  : !known	 ? "never" \
			 : frag_answer_print(a, "%s", FRAG_BYTES(row->min_bytes)), \
	  "smallest card", "smallest size that refuses nothing", .right = true) \
	P(S, COUNT, bytes, if_known(known, row->min_bytes), "bytes", "the same", .spare = 2) \
	F(S, BYTES, min_capacity_bytes, if_known(known, row->min_bytes), NULL, \
	  "smallest card that refuses nothing, to 2 MiB; with several traces the largest") \
	F(S, BYTES, safe_capacity_bytes, if_known(known, row->safe_bytes), "no failure from", \
	  "no card from this size on was seen to fail", .spare = 4) \
	F(S, BYTES, ample_capacity_bytes, if_known(known, row->ample_bytes), "unconstrained from", \
	  "from this size on nothing is given back or retried for want of memory") \
	F(S, BYTES, peak_reserved_bytes, if_known(row->peak_bytes, row->peak_bytes), \
	  "peak reserved", "on a large enough card; of several devices the largest", .spare = 3) \
	F(S, TEXT, card, card, NULL, "smallest or cheapest card that fits") \
	P(S, TEXT, card_text, \
	  card	     ? card \
	  : f->ended ? "unknown" \
	  : known    ? "none" \
		     : NULL, \
	  "card", "smallest or cheapest card that fits") \
	F(S, COUNT, probes_count, row->probes, "replays", "of the search", .spare = 1) \
	F(S, TEXTS, fits, names_of(&f->catalog, roomy & ~others, a), NULL, \
	  "cards with room for the headroom, too") \
	F(S, TEXTS, tight, names_of(&f->catalog, completes & ~roomy & ~others, a), NULL, \
	  "cards that it completes on with less") \
	F(S, TEXTS, unverified, names_of(&f->catalog, (completes & others), a), NULL, \
	  "cards of both kinds that it was not recorded for: another kernel choice is likely") \
	F(S, BOOL, complete, row->complete, NULL, "no search was interrupted") \
	F(S, LIST, traces, FRAG_ROWS(units, f->units.units_count), NULL, \
	  "one for each device of each trace", .of = &unit_shape)
FRAG_VALUED_ROW_AS(static, policy_shape, policy_row, "result", POLICY_ROW,
		   "one policy on all traces");

static struct policy_row policy_row(const struct frag_fit_cards *f, size_t r,
				    const struct unit_row *units, struct frag_answer *a)
{
	const struct frag_fit_row *row = &f->rows[r];
	bool known = row->complete && row->possible;
	size_t g = known ? frag_fit_card(f, r, false) : SIZE_MAX;
	const char *card = g == SIZE_MAX ? NULL : f->catalog.cards[g]->name;
	uint64_t roomy = 0, completes = 0, others = 0;

	for (size_t i = 0; i < f->catalog.count; i++) {
		const struct frag_fit_cards *j = frag_fit_judge(f, i);

		if (r >= j->rows_count || frag_fit_open(f, i))
			continue;
		roomy |= (uint64_t)frag_fit_roomy(j, &j->rows[r], i) << i;
		completes |= j->rows[r].gpus & 1ull << i;
		others |= (uint64_t)(frag_fit_basis(j, i) == FRAG_FIT_OTHER_KERNELS) << i;
	}
	return FRAG_ROW_VALUES(policy_row, POLICY_ROW);
}

/* ---- one card -------------------------------------------------------------------- */

#define GPU_ROW(F, P, S) \
	F(S, TEXT, name, gpu->name, "card", "what --gpu takes") \
	F(S, TEXT, label, gpu->label, NULL, "its full name") \
	F(S, TEXT, vendor, gpu->vendor, NULL, "who makes it") \
	F(S, BYTES, total_bytes, gpu->total_bytes, "memory", "total memory", .spare = 2) \
	F(S, BYTES, context_bytes, gpu->context_bytes, NULL, \
	  "part of it that the CUDA context takes") \
	F(S, TEXT, source, gpu->source, NULL, "of the memory figures") \
	F(S, TEXT, answer, \
	  runs	 ? (frag_fit_roomy(judge, runs, g) ? "fits" : "tight") \
	  : open ? "unknown" \
		 : "does not fit", \
	  "answer", \
	  "fits, tight (it completes, but less stays free than asked for), does not fit, or " \
	  "unknown (a recording ended out of memory, or the program failed on this card)") \
	F(S, TEXT, recorded_for_it, basis[frag_fit_basis(judge, g)], "recorded for it", \
	  "yes: on a card of its compute capability; no: another kernel choice is likely; " \
	  "failed: the program did there; null: not known", \
	  .spare = 4, .if_any = true) \
	F(S, BYTES, headroom_bytes, if_known(room >= peak, room - peak), "headroom", \
	  "memory that the best policy leaves free at its peak", .none = "none", .spare = 3) \
	F(S, RATIO, headroom_ratio, \
	  room >= peak ? (double)(room - peak) / (double)gpu->total_bytes : NAN, "of the card", \
	  "headroom / memory", .unit = "%", .precision = 1, .spare = 1) \
	F(S, TEXT, policy, runs ? frag_fit_row_name(runs) : NULL, "best policy", \
	  "the one that reserves least, of those that spend under 1 % in the driver") \
	F(S, REAL, price_per_hour, gpu->price_per_hour > 0 ? gpu->price_per_hour : NAN, \
	  "per hour", "its price", .precision = 2, .if_any = true) \
	F(S, REAL, job_price, price, NULL, "of the time that was recorded") \
	P(S, TEXT, job_price_text, isnan(price) ? NULL : frag_answer_print(a, "%.3g", price), \
	  "this job", "price of the time that was recorded", .right = true, .if_any = true)
FRAG_VALUED_ROW_AS(static, gpu_shape, gpu_row, "card", GPU_ROW, "one card of the list");

static struct gpu_row gpu_row(const struct frag_fit_cards *f, size_t g, struct frag_answer *a)
{
	static const char *const basis[] = { [FRAG_FIT_RECORDED] = "yes",
					     [FRAG_FIT_OTHER_KERNELS] = "no",
					     [FRAG_FIT_FAILED] = "failed" };
	const struct frag_fit_cards *judge = frag_fit_judge(f, g);
	const struct frag_gpu *gpu = f->catalog.cards[g];
	size_t r = judge->failed ? SIZE_MAX : frag_fit_best_row(judge, g);
	bool open = frag_fit_open(f, g);
	const struct frag_fit_row *runs = r == SIZE_MAX || open ? NULL : &judge->rows[r];
	uint64_t room = frag_fit_room(f, g, NULL),
		 peak = runs ? frag_fit_peak(judge, runs) : UINT64_MAX;
	double price = frag_fit_job_price(f, gpu);

	return FRAG_ROW_VALUES(gpu_row, GPU_ROW);
}

#define ADVICE(F, P, S) \
	F(S, TEXT, card, NULL, "the smallest that fits, or the cheapest") \
	F(S, TEXT, policy, NULL, "the best policy on it") \
	F(S, BYTES, reserved_bytes, NULL, "its peak") \
	F(S, BYTES, room_bytes, NULL, "memory of the card beside context and margin") \
	F(S, REAL, job_price, NULL, "of the time that was recorded") \
	F(S, TEXT, smaller_card, NULL, \
	  "a smaller card that has room, too, if its other kernels need no " \
	  "more; null: none")
FRAG_ROW(advice, "advice", ADVICE, "the card to take");

/* Advises no card: none is large enough, or the need is unknown. */
static void say_none(const struct frag_fit_cards *f, const char *kept, struct frag_answer *a)
{
	const struct frag_gpu *larger = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t g = 0; g < f->catalog.count; g++)
		larger = frag_fit_open(f, g) ? f->catalog.cards[g] : larger;
	for (size_t r = 0; r < f->rows_count; r++)
		if (f->rows[r].possible)
			least = FRAG_MIN(least, f->rows[r].min_bytes);
	a->need_unknown = larger;
	if (larger)
		frag_answer_conclude(a,
				     "no card below %s is enough, and whether a larger one is, is "
				     "unknown: record it on one, as %s",
				     FRAG_BYTES(least), larger->label);
	else
		frag_answer_conclude(a, "no card of the list has room%s%s",
				     *kept ? " and keeps free " : "", kept);
}

/* The card, the policy, why that one. NULL: no card has room. */
static const struct advice *advise(const struct frag_fit_cards *f, struct frag_answer *a)
{
	size_t any = frag_fit_card(f, SIZE_MAX, true), g = frag_fit_card(f, SIZE_MAX, false), r;
	const struct frag_fit_cards *judge;
	struct advice *row = any == SIZE_MAX ? NULL : frag_answer_new(a, 1, sizeof(*row));
	FRAG_AUTO(frag_text_release) struct frag_text kept = { 0 };

	frag_headroom_text(&f->headroom, &kept);
	a->failed |= kept.failed;
	if (row && frag_fit_unreproduced(f, a)) {
		frag_answer_conclude(a, "no card is named: %s", frag_fit_unreproduced(f, a));
		return NULL;
	}
	if (!row) {
		say_none(f, frag_text_str(&kept), a);
		return NULL;
	}
	g = g == SIZE_MAX ? any : g;
	judge = frag_fit_judge(f, g);
	r = frag_fit_best_row(judge, g);
	*row = (struct advice){ f->catalog.cards[g]->name,
				frag_fit_row_name(&judge->rows[r]),
				frag_fit_peak(judge, &judge->rows[r]),
				frag_fit_room(f, g, NULL),
				frag_fit_job_price(f, f->catalog.cards[g]),
				any == g ? NULL : f->catalog.cards[any]->name };
	frag_answer_conclude(
		a, "%s with %s, which reserves %s of %s%s%s%s", f->catalog.cards[g]->label,
		row->policy, FRAG_BYTES(row->reserved_bytes), FRAG_BYTES(row->room_bytes),
		kept.len ? "; kept free: " : "", frag_text_str(&kept),
		isnan(row->job_price)
			? ""
			: frag_answer_print(a, "; what was recorded costs %.3g", row->job_price));
	if (any != g || frag_fit_basis(judge, g) == FRAG_FIT_OTHER_KERNELS)
		frag_answer_warn(a,
				 "%s has room only if it needs no more there: another kernel "
				 "choice is likely, so record for it (cufrag record --no-gpu --gpu "
				 "%s)",
				 f->catalog.cards[any]->label, f->catalog.cards[any]->name);
	return row;
}

/* ---- all of it ------------------------------------------------------------------- */

#define PROBE(F, P, S) \
	F(S, COUNT, value, "value", "the number tried") \
	F(S, BOOL, completes, "completes", "the program ended well and no request was refused") \
	F(S, BYTES, peak_reserved_bytes, "peak reserved", "of the recording") \
	F(S, INT, exit_status, NULL, "of the program")
FRAG_ROW_SHAPE(static, probe_shape, frag_vary_probe, "probe", PROBE,
	       "one recording of the program");

#define FIT_ROW(F, P, S) \
	F(S, TEXTS, traces, NULL, "names of all devices of all traces") \
	F(S, LIST, recordings, NULL, "results of each recording", .of = &frag_recorded_unit_shape) \
	F(S, BYTES, context_bytes, NULL, "of the CUDA context") \
	F(S, BYTES, margin_bytes, NULL, "to be kept free") \
	F(S, RATIO, margin_ratio, NULL, "of the card, to be kept free") \
	F(S, BYTES, outside_bytes, NULL, \
	  "what the recorded process held beside its allocator, also kept free") \
	F(S, COUNT, seed, NULL, "of random choices") \
	F(S, BOOL, complete, NULL, "no search was interrupted") \
	F(S, LIST, results, NULL, "one for each policy", .of = &policy_shape) \
	F(S, LIST, gpus, NULL, "one for each card", .of = &gpu_shape) \
	F(S, OBJECT, advice, NULL, "the recommended card; null: none has room", \
	  .of = &advice_shape) \
	F(S, TEXT, name, NULL, "with --vary: what varies") \
	F(S, COUNT, first, NULL, "with --vary: the smallest to try") \
	F(S, COUNT, last, NULL, "with --vary: the greatest to try") \
	F(S, COUNT, largest, NULL, "with --vary: the greatest value that completes; null: none") \
	F(S, LIST, probes, NULL, "with --vary: each recording", .of = &probe_shape)
FRAG_ROW_AS(, frag_fit_shape, fit, "fit", FIT_ROW, "the smallest card for each policy");

#define BAR(F, P, S) \
	F(S, COUNT, number, NULL, "of the policy") \
	F(S, TEXT, policy, NULL, "with all its options") \
	F(S, BYTES, unconstrained_bytes, NULL, "card that it fits without retries") \
	F(S, BYTES, smallest_bytes, NULL, "smallest card")
FRAG_ROW(bar, "bar", BAR, "one policy of the chart");

static void chart(const struct frag_fit_cards *f, struct frag_answer *a)
{
	struct bar *bars = frag_answer_new(a, f->rows_count, sizeof(*bars));
	size_t n = 0, least = 0;

	for (size_t r = 0; bars && r < f->rows_count; r++) {
		if (!f->rows[r].complete || !f->rows[r].possible)
			continue;
		bars[n] = (struct bar){ n, frag_fit_row_name(&f->rows[r]), f->rows[r].ample_bytes,
					f->rows[r].min_bytes };
		least = bars[n].smallest_bytes < bars[least].smallest_bytes ? n : least;
		n++;
	}
	if (n)
		frag_answer_chart(
			a,
			&(struct frag_answer_chart){
				.script = "bars",
				.base = "fit",
				.extra = "total memory of the card|unconstrained|smallest card",
				.title = frag_answer_print(
					a, "%s completes on the smallest card, %s",
					bars[least].policy, FRAG_BYTES(bars[least].smallest_bytes)),
				.caption = "For each policy the smallest card that refuses "
					   "nothing, and the card on which nothing is given back "
					   "or retried for want of memory.",
				.shape = &bar_shape,
				.rows = { bars, n } });
}

static int fill(const struct frag_fit_cards *f, struct fit *fit, struct frag_answer *a,
		struct frag_err *err)
{
	size_t units = f->units.units_count;
	struct unit_row *each = frag_answer_new(a, f->rows_count * units, sizeof(*each));
	struct policy_row *policies = frag_answer_new(a, f->rows_count, sizeof(*policies));
	struct gpu_row *gpus = frag_answer_new(a, f->catalog.count, sizeof(*gpus));

	FRAG_CHECK_ALLOC(each && policies && gpus, "answer", err);
	for (size_t k = 0; k < f->rows_count * units; k++)
		each[k] = unit_row(f, k / units, k % units, a);
	for (size_t r = 0; r < f->rows_count; r++)
		policies[r] = policy_row(f, r, &each[r * units], a);
	for (size_t g = 0; g < f->catalog.count; g++)
		gpus[g] = gpu_row(f, g, a);
	*fit = (struct fit){ .traces = frag_unit_labels(a, &f->units),
			     .recordings = frag_recorded_unit_rows(a, &f->units),
			     .results = { policies, f->rows_count },
			     .gpus = { gpus, f->catalog.count },
			     .context_bytes = f->target->card.context_bytes,
			     .margin_bytes = f->headroom.bytes,
			     .margin_ratio = f->headroom.ratio,
			     .outside_bytes = f->headroom.outside_bytes,
			     .seed = f->target->seed,
			     .first = UINT64_MAX,
			     .last = UINT64_MAX,
			     .largest = UINT64_MAX,
			     .complete = !f->interrupted && !f->partial };
	frag_answer_data(a, &frag_fit_shape, fit);
	frag_answer_csv(a, &csv_shape, each, f->rows_count * units);
	return 0;
}

int frag_fit_cards_answer(const struct frag_fit_cards *f, struct frag_answer *a,
			  struct frag_err *err)
{
	struct fit *fit = frag_answer_new(a, 1, sizeof(*fit));

	FRAG_CHECK_ALLOC(fit, "answer", err);
	FRAG_TRY(fill(f, fit, a, err));
	a->title = "Which card is enough";
	a->question = "What is the smallest card for each policy, and which known cards do?";
	frag_fit_remarks(f, a);
	frag_recordings_warn(a, &f->units);
	fit->advice = advise(f, a);
	frag_answer_gap(a);
	frag_answer_table(a, &policy_shape, fit->results.rows, fit->results.count);
	chart(f, a);
	frag_answer_gap(a);
	frag_answer_table(a, &gpu_shape, fit->gpus.rows, fit->gpus.count);
	frag_answer_gap(a);
	frag_fit_say_rows(f, a);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}

int frag_vary_answer(const struct frag_vary *v, const char *card, struct frag_answer *a,
		     struct frag_err *err)
{
	struct fit *fit = frag_answer_new(a, 1, sizeof(*fit));

	FRAG_CHECK_ALLOC(fit, "answer", err);
	*fit = (struct fit){ .context_bytes = UINT64_MAX,
			     .margin_bytes = UINT64_MAX,
			     .margin_ratio = NAN,
			     .outside_bytes = UINT64_MAX,
			     .seed = UINT64_MAX,
			     .complete = true,
			     .name = v->name,
			     .first = v->first,
			     .last = v->last,
			     .largest = if_known(v->any, v->best),
			     .probes = { v->probes, v->probes_count } };
	frag_answer_data(a, &frag_fit_shape, fit);
	frag_answer_csv(a, &probe_shape, v->probes, v->probes_count);
	a->title = "How much the card takes";
	a->question = frag_answer_print(a, "What is the greatest %s that completes on %s?", v->name,
					card);
	a->estimated = true;
	frag_answer_table(a, &probe_shape, v->probes, v->probes_count);
	if (v->any)
		frag_answer_conclude(a,
				     "of %s = %llu to %llu, %llu is the greatest that completes on "
				     "%s (estimated)",
				     v->name, (unsigned long long)v->first,
				     (unsigned long long)v->last, (unsigned long long)v->best,
				     card);
	else
		frag_answer_conclude(a, "not even %s = %llu completes on %s (estimated)", v->name,
				     (unsigned long long)v->first, card);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
