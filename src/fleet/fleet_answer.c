/* SPDX-License-Identifier: Apache-2.0 */
/* A capacity plan as an answer: changes, jobs, cards, money, one setting for all; see fleet.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "base/outfile.h"
#include "fleet.h"
#include "recording/recording.h"

#define PAGE_JOBS 500u /* on a page; all are in the CSV */

/* ---- jobs ------------------------------------------------------------------------------- */

#define CHOICE(F, P, S) \
	F(S, TEXT, policy, f->policies[c->policy], NULL, "the setting") \
	F(S, BYTES, need_bytes, c->need_bytes, NULL, \
	  "peak reserved of the worst rank; 0: it did not run under this setting, or that is " \
	  "unknown") \
	F(S, TEXT, card, c->card ? c->card->name : NULL, NULL, \
	  "the cheapest card that takes it with headroom") \
	F(S, BYTES, headroom_bytes, \
	  c->card ? c->card->total_bytes - c->card->context_bytes - c->need_bytes : UINT64_MAX, \
	  NULL, "left free on that card beside the context") \
	F(S, TEXTS, fits, FRAG_ROWS(fits, n), NULL, "all cards that take it")
FRAG_VALUED_ROW(choice, "choice", CHOICE, "a setting and a card for a job");

/* Tables and CSV have both choices side by side. */
#define JOB_ROW(F, P, S) \
	F(S, TEXT, job, j->name, NULL, "path of its traces, with * for the number of the rank") \
	P(S, TEXT, shown, j->name + folders, "job", "path of its traces, without shared folders") \
	F(S, COUNT, ranks, j->units_count, "ranks", "cards it runs on", .spare = 1) \
	F(S, BYTES, lower_bound_bytes, j->bound_bytes, "live", \
	  "most bytes live at once in its worst rank", .page_only = true, .no_csv = true) \
	F(S, BYTES, bound_bytes, j->bound_bytes, NULL, "most bytes live at once", \
	  .csv_only = true) \
	F(S, TEXT, today_policy, today->policy, NULL, "recorded setting", .csv_only = true) \
	F(S, BYTES, today_bytes, today->need_bytes, "needs today", \
	  "reserved with the recorded settings", .csv_only = true) \
	F(S, TEXT, today_card, today->card, "on", \
	  "the cheapest card that takes it, with headroom", .csv_only = true, .none = "none") \
	F(S, TEXT, best_policy, best->policy, NULL, "setting of the plan", .csv_only = true) \
	F(S, BYTES, best_bytes, best->need_bytes, "could need", \
	  "reserved with the setting of the plan", .csv_only = true) \
	F(S, TEXT, best_card, best->card, "on", "the cheapest card that takes it then", \
	  .csv_only = true, .none = "none") \
	F(S, REAL, today_price_per_hour, price_of(j, &j->today), NULL, "of all its cards", \
	  .csv_only = true) \
	F(S, REAL, best_price_per_hour, price_of(j, &j->best), NULL, "of all its cards", \
	  .csv_only = true) \
	F(S, BYTES, today_headroom_bytes, today->headroom_bytes, NULL, "left free on its card", \
	  .csv_only = true) \
	F(S, BYTES, best_headroom_bytes, best->headroom_bytes, "headroom", \
	  "left free on that card beside the context", .page_only = true, .csv_only = true) \
	F(S, TEXT, best_fits, joined(a, &best->fits), NULL, "all cards that take it, with ;", \
	  .csv_only = true) \
	P(S, TEXT, setting, j->unreproduced ? "not reproduced" : best->policy, "with", \
	  "the setting of the plan", .spare = 2) \
	F(S, BOOL, estimate, j->estimate, NULL, "one of its traces was recorded without a GPU") \
	F(S, BOOL, ended_out_of_memory, j->ended, NULL, \
	  "one of its traces did, so the job's need is unknown and it gets no card") \
	F(S, BOOL, unreproduced, j->unreproduced, NULL, \
	  "its recorded settings, replayed, reserve another peak than was recorded: it is in no " \
	  "sum") \
	F(S, BOOL, other_kernels, other_kernels(j), NULL, \
	  "a card of it is of another compute capability than its recording: another " \
	  "kernel choice is likely") \
	F(S, OBJECT, today, today, NULL, "with the recorded settings", .of = &choice_shape) \
	F(S, OBJECT, best, best, NULL, "with the setting of the plan", .of = &choice_shape)
FRAG_VALUED_ROW_AS(static, job_shape, job_row, "job", JOB_ROW, "a job of the sweep");

static const struct choice *choice_row(struct frag_answer *a, const struct frag_fleet *f,
				       const struct frag_fleet_choice *c)
{
	struct choice *row = frag_answer_new(a, 1, sizeof(*row));
	const char **fits = frag_answer_new(a, f->catalog.count, sizeof(*fits));
	size_t n = 0;

	if (!row || !fits)
		return NULL;
	for (size_t i = 0; i < f->catalog.count; i++)
		if (frag_fleet_fits(f, c, f->catalog.cards[i]))
			fits[n++] = f->catalog.cards[i]->name;
	*row = FRAG_ROW_VALUES(choice, CHOICE);
	return row;
}

static double price_of(const struct frag_fleet_job *j, const struct frag_fleet_choice *c)
{
	return c->card && c->card->price_per_hour > 0
		       ? c->card->price_per_hour * (double)j->units_count
		       : NAN;
}

static const char *joined(struct frag_answer *a, const struct frag_rows *texts)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_texts_add(texts, ";", &t);
	return frag_answer_take(a, &t);
}

static bool other_kernels(const struct frag_fleet_job *j)
{
	return frag_other_kernels(j->chip, j->today.card) ||
	       frag_other_kernels(j->chip, j->best.card);
}

static struct job_row job_row(struct frag_answer *a, const struct frag_fleet *f,
			      const struct frag_fleet_job *j)
{
	/* they are by name: what the first and the last share all have */
	size_t folders = frag_path_shared(f->jobs[0].name, f->jobs[f->jobs_count - 1].name);
	const struct choice *today = choice_row(a, f, &j->today),
			    *best = choice_row(a, f, &j->best);
	struct job_row row = { .job = j->name };

	if (!today || !best)
		return row;
	return FRAG_ROW_VALUES(job_row, JOB_ROW);
}

/* Jobs with the largest saving first, then those that fit nowhere, then by need. */
static int rank_of(const struct job_row *j)
{
	return !j->best_card ? 1 : j->today_card && !strcmp(j->best_card, j->today_card) ? 2 : 0;
}

FRAG_COMPARE(by_interest, struct job_row, FRAG_ORDER(rank_of(x), rank_of(y)),
	     FRAG_ORDER(y->today_bytes, x->today_bytes), strcmp(x->job, y->job))

/* ---- sums ------------------------------------------------------------------------------- */

#define SUM_ROW(F, P, S) \
	P(S, TEXT, what, what, "cards", "of which jobs, when") \
	F(S, COUNT, jobs, s->jobs, "jobs", "that are summed here") \
	F(S, COUNT, cards, s->cards, "cards", "one for each rank") \
	F(S, BYTES, card_bytes, s->card_bytes, "card memory", "of all of them") \
	F(S, BYTES, reserved_bytes, s->reserved_bytes, "reserved", "by all ranks at their peaks") \
	F(S, COUNT, jobs_without_card, s->jobs_without, "jobs without a card", \
	  "of all jobs; they are in no sum", .if_any = true) \
	F(S, REAL, price_per_hour, s->priced ? s->price : NAN, "an hour", "price of all cards", \
	  .precision = 2, .if_any = true)
FRAG_VALUED_ROW_AS(static, sum_shape, sum_row, "sum", SUM_ROW,
		   "cards and money of the jobs that have a card today, or of those that only the "
		   "plan gives one");

static struct sum_row sum_row(const char *what, const struct frag_fleet_sum *s)
{
	return FRAG_ROW_VALUES(sum_row, SUM_ROW);
}

#define PACK_ROW(F, P, S) \
	P(S, TEXT, what, what, "ranks that share cards", "when") \
	F(S, TEXT, card, p->card->name, "card", "that they share") \
	F(S, COUNT, ranks, p->units, "ranks", "that were packed") \
	F(S, COUNT, cards, p->cards, "cards", "needed where all peaks come at once") \
	F(S, BYTES, card_bytes, p->cards * p->card->total_bytes, "card memory", "of these cards", \
	  .spare = 5) \
	F(S, BYTES, own_card_bytes, p->own_bytes, "unshared", \
	  "of their own cards, one for each rank", .spare = 4) \
	F(S, COUNT, lower_bound, p->bound, "at least", "no packing needs fewer") \
	F(S, COUNT, cards_measured, p->cards_measured ? p->cards_measured : UINT64_MAX, \
	  "at recorded times", "cards needed with the curves of memory at their recorded times", \
	  .spare = 2) \
	F(S, COUNT, left_out, p->left_out, "left out", \
	  "ranks of jobs that do not fit this card or are in no sum", .spare = 1) \
	F(S, REAL, price_per_hour, \
	  p->card->price_per_hour > 0 ? (double)p->cards * p->card->price_per_hour : NAN, \
	  "an hour", "price of these cards", .precision = 2, .if_any = true) \
	F(S, REAL, own_price_per_hour, p->own_price > 0 ? p->own_price : NAN, "unshared", \
	  "price of their own cards, one for each rank", .precision = 2, .if_any = true)
FRAG_VALUED_ROW_AS(static, pack_shape, pack_row, "pack", PACK_ROW,
		   "ranks packed onto cards of one kind");

static struct pack_row pack_row(const char *what, const struct frag_fleet_pack *p)
{
	return FRAG_ROW_VALUES(pack_row, PACK_ROW);
}

/* ---- one setting for all ---------------------------------------------------------------- */

#define SETTING_ROW(F, P, S) \
	F(S, TEXT, policy, f->policies[policy], "one setting for all", \
	  "for every job that has a card today") \
	F(S, BYTES, reserved_bytes, s.reserved_bytes, "reserved", "by their ranks at their peaks") \
	F(S, COUNT, jobs_tried, s.tried, "jobs swept", "jobs that were replayed with it", \
	  .spare = 2) \
	F(S, COUNT, jobs_refused, s.refused, "refused", "jobs that ran out of memory with it", \
	  .spare = 1) \
	F(S, COUNT, jobs_moved, s.moved, "to a smaller card", \
	  "jobs for which a smaller card is enough") \
	F(S, COUNT, jobs_gained, s.gained, "fit only so", \
	  "jobs without a card today that then have one", .if_any = true) \
	P(S, TEXT, saved_shown, \
	  frag_answer_print(a, "%s%s", s.card_bytes_saved < 0 ? "-" : "", \
			    FRAG_BYTES((uint64_t)llabs(s.card_bytes_saved))), \
	  "card memory saved", "by those jobs", .spare = 3, .right = true) \
	F(S, INT, card_bytes_saved, s.card_bytes_saved, NULL, \
	  "card memory saved by those jobs, bytes") \
	F(S, REAL, price_per_hour_saved, s.price_saved, "saved an hour", \
	  "where all cards have a price", .precision = 2, .if_any = true)
struct setting_row {
	FRAG_ROW_MEMBERS(SETTING_ROW)
	bool settable;
};
FRAG_VALUED_SHAPE(static, setting_shape, setting_row, "setting", SETTING_ROW,
		  "one setting for all jobs");

/* Largest saving first; of equals a PyTorch setting before an allocator, then less reserved. */
FRAG_COMPARE(by_saving, struct setting_row,
	     FRAG_ORDER(y->price_per_hour_saved, x->price_per_hour_saved),
	     FRAG_ORDER(y->card_bytes_saved, x->card_bytes_saved),
	     FRAG_ORDER(y->settable, x->settable), FRAG_ORDER(x->reserved_bytes, y->reserved_bytes),
	     strcmp(x->policy, y->policy))

static struct setting_row setting_row(struct frag_answer *a, const struct frag_fleet *f,
				      size_t policy)
{
	struct frag_fleet_setting s = frag_fleet_setting(f, policy);
	struct setting_row row = FRAG_ROW_VALUES(setting_row, SETTING_ROW);

	row.settable = f->settable[policy];
	return row;
}

/* ---- the plan --------------------------------------------------------------------------- */

#define PLAN_ROW(F, P, S) \
	F(S, COUNT, jobs_count, f->jobs_count, NULL, "jobs of the sweep") \
	F(S, COUNT, ranks_count, f->units_count, NULL, "their ranks") \
	F(S, COUNT, policies_count, f->policies_count, NULL, "settings that were swept") \
	F(S, COUNT, failed_count, f->failures, NULL, "traces that failed; they are in no figure") \
	F(S, COUNT, estimated_count, f->estimates, NULL, "jobs recorded without a GPU") \
	F(S, COUNT, unreproduced_count, f->unreproduced, NULL, \
	  "jobs whose recorded settings, replayed, reserve another peak than was recorded; they " \
	  "are " \
	  "in no sum") \
	F(S, COUNT, jobs_moved, then.moved, NULL, "jobs that move to a smaller card") \
	F(S, COUNT, jobs_gained, gained.jobs, NULL, \
	  "jobs that fit a card only with their new setting") \
	F(S, COUNT, jobs_without_card, then.jobs_without, NULL, \
	  "jobs that fit no card of the list") \
	F(S, RATIO, saved_ratio, \
	  priced ? then.price_saved / now.price \
		 : (double)then.card_bytes_saved / (double)FRAG_MAX(now.card_bytes, 1u), \
	  NULL, "of the price, or without prices of the card memory") \
	F(S, REAL, price_saved, priced ? then.price_saved : NAN, NULL, "an hour") \
	F(S, OBJECT, today, &sums[0], NULL, "with the recorded settings", .of = &sum_shape) \
	F(S, OBJECT, best, &sums[1], NULL, "the same jobs with the settings of the plan", \
	  .of = &sum_shape) \
	F(S, OBJECT, gained, gained.jobs ? &sums[2] : NULL, NULL, \
	  "jobs that only the plan gives a card; null: none", .of = &sum_shape) \
	F(S, OBJECT, shared_today, NULL, NULL, \
	  "ranks share cards, recorded settings; null: it saves nothing", .of = &pack_shape) \
	F(S, OBJECT, shared_best, NULL, NULL, "the same, settings of the plan", .of = &pack_shape) \
	F(S, LIST, settings, FRAG_ROWS(settings, f->policies_count), NULL, \
	  "each setting for all jobs, the largest saving first", .of = &setting_shape) \
	F(S, LIST, jobs, FRAG_ROWS(jobs, f->jobs_count), NULL, "those that a change helps first", \
	  .of = &job_shape)
FRAG_VALUED_ROW_AS(, frag_fleet_shape, plan, "fleet", PLAN_ROW,
		   "a capacity plan for all jobs of a sweep");

static void say_sharing(struct frag_text *t, const struct frag_fleet_pack *p,
			const struct pack_row *row, struct frag_answer *a)
{
	bool priced = row->price_per_hour > 0 && row->own_price_per_hour > 0;
	bool saves = priced ? row->price_per_hour < row->own_price_per_hour
			    : row->card_bytes < row->own_card_bytes;

	if (!p->cards)
		return;
	frag_text_addf(t,
		       "; sharing would put %s on %zu %s card%s (no packing needs fewer than %zu)",
		       frag_answer_count(a, p->units, "rank", "ranks"), p->cards, p->card->name,
		       p->cards == 1 ? "" : "s", p->bound);
	if (priced)
		frag_text_addf(t, ", %.2f an hour instead of %.2f%s", row->price_per_hour,
			       row->own_price_per_hour, saves ? "" : ", which saves nothing");
	else
		frag_text_addf(t, ", %s of cards instead of %s%s", FRAG_BYTES(row->card_bytes),
			       FRAG_BYTES(row->own_card_bytes),
			       saves ? "" : ", which saves nothing");
}

static void conclude(struct frag_answer *a, const struct frag_fleet *f, const struct plan *p)
{
	const struct sum_row *now = p->today;
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_addf(&t, "%s to a smaller card with another setting",
		       frag_answer_count(a, p->jobs_moved, "job moves", "jobs move"));
	if (p->jobs_moved && !isnan(p->price_saved))
		frag_text_addf(&t, ", which saves %.2f of %.2f an hour (%.0f %%)", p->price_saved,
			       now->price_per_hour, 100 * p->saved_ratio);
	else if (p->jobs_moved)
		frag_text_addf(&t, ", so %.0f %% less card memory does the same work",
			       100 * p->saved_ratio);
	if (p->jobs_gained)
		frag_text_addf(&t, "; %s",
			       frag_answer_count(a, p->jobs_gained,
						 "job fits a card only with another setting",
						 "jobs fit a card only with another setting"));
	if (p->shared_best)
		say_sharing(&t, &f->best, p->shared_best, a);
	if (p->jobs_without_card)
		frag_text_addf(&t, "; %s no card of the list",
			       frag_answer_count(a, p->jobs_without_card, "job fits", "jobs fit"));
	a->failed |= t.failed;
	frag_answer_conclude(a, "%s", frag_text_str(&t));
}

/* The policy under which a job needs least; SIZE_MAX: it ran under none. */
static size_t least_need(const struct frag_fleet *f, const struct frag_fleet_job *job,
			 uint64_t *need)
{
	size_t least = SIZE_MAX;

	*need = UINT64_MAX;
	for (size_t p = 0; p < f->policies_count; p++) {
		uint64_t bytes;

		if (frag_fleet_need(f, job, p, &bytes) && bytes < *need) {
			*need = bytes;
			least = p;
		}
	}
	return least;
}

/* Why a job fits no card. */
static void say_misfit(struct frag_answer *a, const struct frag_fleet *f,
		       const struct frag_fleet_job *job, uint64_t room)
{
	uint64_t need;
	size_t least = least_need(f, job, &need);

	if (job->ended && job->bound_bytes <= room)
		frag_answer_item(a,
				 "no card for %s: the need is unknown above %s, because its "
				 "recording ended out of memory; record it on a larger card",
				 job->name, FRAG_BYTES(job->bound_bytes));
	else if (job->bound_bytes > room)
		frag_answer_item(a,
				 "no card for %s: its worst rank has %s live at once, and the "
				 "largest card leaves %s: the program needs it",
				 job->name, FRAG_BYTES(job->bound_bytes), FRAG_BYTES(room));
	else if (least != SIZE_MAX)
		frag_answer_item(a,
				 "no card for %s: with %s, the best setting of the sweep, it "
				 "reserves %s, and the largest card leaves %s; only %s are live, "
				 "so other settings may be enough",
				 job->name, f->policies[least], FRAG_BYTES(need), FRAG_BYTES(room),
				 FRAG_BYTES(job->bound_bytes));
	else
		frag_answer_item(a,
				 "no card for %s: it ran out of memory in the sweep; sweep it on a "
				 "larger card",
				 job->name);
}

static void say_misfits(struct frag_answer *a, const struct frag_fleet *f)
{
	uint64_t room = 0;

	for (size_t i = 0; i < f->catalog.count; i++)
		room = FRAG_MAX(room, frag_gpu_room(f->catalog.cards[i], &f->headroom));
	for (size_t j = 0; j < f->jobs_count; j++)
		if (!f->jobs[j].best.card)
			say_misfit(a, f, &f->jobs[j], room);
}

/* What a sweep replays is the program that was recorded: another card may get another one. */
static void warn_kernels(struct frag_answer *a, const struct frag_fleet *f)
{
	const struct frag_fleet_job *first = NULL;
	size_t count = 0;

	for (size_t j = 0; j < f->jobs_count; j++)
		if (other_kernels(&f->jobs[j])) {
			first = first ?: &f->jobs[j];
			count++;
		}
	if (first)
		frag_answer_warn(a,
				 "%s on a card of another compute capability than %s recorded for, "
				 "where another kernel choice is likely: record for that card "
				 "(%s: recorded for %s, here on %s)",
				 frag_answer_count(a, count, "job is", "jobs are"),
				 count == 1 ? "it was" : "they were", first->name,
				 first->chip->name,
				 frag_other_kernels(first->chip, first->best.card)
					 ? first->best.card->name
					 : first->today.card->name);
}

static void say_method(struct frag_answer *a, const struct frag_fleet *f)
{
	if (f->failures)
		frag_answer_say(a, "%s of the sweep failed and %s in no figure here",
				frag_answer_count(a, f->failures, "trace", "traces"),
				f->failures == 1 ? "is" : "are");
	if (f->estimates)
		frag_answer_say(a, "%s recorded without a GPU: what %s is an estimate",
				frag_answer_count(a, f->estimates, "job was", "jobs were"),
				f->estimates == 1 ? "it needs" : "they need");
	frag_answer_say(a, "not known here: compute, bandwidth, how jobs on one card slow each "
			   "other down, and memory outside of the allocator except the context");
}

static int fill(struct plan *p, const struct frag_fleet *f, struct frag_answer *a,
		struct frag_err *err)
{
	struct frag_fleet_sum now = frag_fleet_sum(f, FRAG_FLEET_TODAY),
			      then = frag_fleet_sum(f, FRAG_FLEET_PLAN),
			      gained = frag_fleet_sum(f, FRAG_FLEET_GAINED);
	struct sum_row *sums = frag_answer_new(a, 3, sizeof(*sums));
	struct pack_row *packs = frag_answer_new(a, 2, sizeof(*packs));
	struct setting_row *settings = frag_answer_new(a, f->policies_count, sizeof(*settings));
	struct job_row *jobs = frag_answer_new(a, f->jobs_count, sizeof(*jobs));
	bool priced = now.priced && then.priced;

	FRAG_CHECK_ALLOC(sums && packs && settings && jobs, "plan", err);
	sums[0] = sum_row("today", &now);
	sums[1] = sum_row("with the plan", &then);
	sums[2] = sum_row("more, only with the plan", &gained);
	for (size_t i = 0; i < f->policies_count; i++)
		settings[i] = setting_row(a, f, i);
	qsort(settings, f->policies_count, sizeof(*settings), by_saving);
	for (size_t i = 0; i < f->jobs_count; i++)
		jobs[i] = job_row(a, f, &f->jobs[i]);
	if (f->jobs_count)
		qsort(jobs, f->jobs_count, sizeof(*jobs), by_interest);
	*p = FRAG_ROW_VALUES(plan, PLAN_ROW);
	if (f->today.card) {
		packs[0] = pack_row("today", &f->today);
		p->shared_today = &packs[0];
	}
	if (f->best.card) {
		packs[1] = pack_row("with the plan", &f->best);
		p->shared_best = &packs[1];
	}
	return a->failed ? frag_fail_nomem(err, "plan") : 0;
}

/* What few jobs were recorded with says nothing on all: those come last and are not shown. */
static void show_settings(struct frag_answer *a, const struct frag_fleet *f, const struct plan *p)
{
	const struct setting_row *rows = p->settings.rows;
	struct setting_row *shown = frag_answer_new(a, p->settings.count, sizeof(*shown));
	size_t n = 0;

	for (size_t i = 0; shown && i < p->settings.count; i++)
		if (2 * rows[i].jobs_tried >= f->jobs_count - f->unreproduced)
			shown[n++] = rows[i];
	frag_answer_heading(a, "One setting for all jobs");
	frag_answer_table(a, &setting_shape, shown, n);
}

static void show_jobs(struct frag_answer *a, const struct plan *p, size_t top)
{
	struct frag_part *part;

	frag_answer_heading(a, "Jobs");
	part = frag_answer_table(a, &job_shape, p->jobs.rows, p->jobs.count);
	part->top = top;
	part->text_only = true;
	part = frag_answer_table(a, &job_shape, p->jobs.rows, p->jobs.count);
	part->top = PAGE_JOBS;
	part->page_only = true;
}

int frag_fleet_answer(const struct frag_fleet *f, size_t top, struct frag_answer *a,
		      struct frag_err *err)
{
	struct plan *p = frag_answer_new(a, 1, sizeof(*p));

	FRAG_CHECK_ALLOC(p, "plan", err);
	FRAG_TRY(fill(p, f, a, err));
	frag_answer_data(a, &frag_fleet_shape, p);
	frag_answer_csv(a, &job_shape, p->jobs.rows, p->jobs.count);
	a->title = a->title ? a->title : "Capacity plan of a fleet";
	a->question = "Which cards, how many, with which settings?";
	frag_answer_remark(a,
			   "%zu jobs, %zu ranks, %zu policies; %zu cards to choose from, %.0f %% "
			   "of each kept free",
			   f->jobs_count, f->units_count, f->policies_count, f->catalog.count,
			   100 * f->headroom.ratio);
	conclude(a, f, p);
	a->need_unknown = f->ended > 0;
	if (f->ended)
		frag_answer_warn(a, "the need of %s is unknown: a recording ended out of memory",
				 frag_answer_count(a, f->ended, "job", "jobs"));
	if (f->unreproduced)
		frag_answer_warn(a,
				 "%zu of %s left out of every sum: a replay of the recorded "
				 "settings does not reserve the peak that was recorded, so what "
				 "another setting saves is not known (cufrag verify)",
				 f->unreproduced,
				 frag_answer_count(a, f->jobs_count, "job is", "jobs are"));
	warn_kernels(a, f);
	FRAG_TRY(frag_fleet_charts(f, a, err));
	show_jobs(a, p, top);
	frag_answer_heading(a, "Cards");
	frag_answer_table(a, &sum_shape, p->today, p->gained ? 3 : 2);
	if (p->shared_today && p->shared_best) {
		frag_answer_gap(a);
		frag_answer_table(a, &pack_shape, p->shared_today, 2);
	}
	show_settings(a, f, p);
	frag_answer_gap(a);
	say_misfits(a, f);
	say_method(a, f);
	return a->failed ? frag_fail_nomem(err, "plan") : 0;
}
