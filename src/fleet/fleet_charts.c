/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of a capacity plan: their data, their titles. */
#include "fleet.h"

#include <stdlib.h>

#include "answer/row.h"

#define POINTS_MOST 500u

/* ---- need of every rank, sorted --------------------------------------------------------- */

#define NEED_ROW(F, P, S) \
	F(S, REAL, ranks_ratio, NULL, "part of all ranks") \
	F(S, BYTES, live_bytes, NULL, "that need at most so much live") \
	F(S, BYTES, today_bytes, NULL, "reserve at most so much today") \
	F(S, BYTES, then_bytes, NULL, "and with the plan")
FRAG_ROW_AS(static, need_shape, need_row, "need", NEED_ROW, "a point of the curves");

/* Three sorted lists beside each other: the distance between the curves is waste. */
static struct frag_rows need_rows(const struct frag_fleet *f, struct frag_answer *a)
{
	size_t all = 0, n = 0, step;
	uint64_t *sizes[3];
	struct need_row *rows = frag_answer_new(a, 2 * POINTS_MOST + 2, sizeof(*rows));

	for (size_t k = 0; k < 3; k++)
		sizes[k] = frag_answer_new(a, f->units_count, sizeof(*sizes[k]));
	if (a->failed)
		return (struct frag_rows){ 0 };
	for (size_t i = 0; i < f->units_count; i++) {
		const struct frag_fleet_job *j = &f->jobs[f->units[i].job];
		const struct frag_fleet_use *now = &f->units[i].uses[j->today.policy];

		if (!j->today.card || j->unreproduced)
			continue;
		sizes[0][all] = now->bound_bytes;
		sizes[1][all] = now->reserved_bytes;
		sizes[2][all++] = f->units[i].uses[j->best.policy].reserved_bytes;
	}
	for (size_t k = 0; k < 3; k++)
		qsort(sizes[k], all, sizeof(*sizes[k]), frag_compare_u64);
	step = FRAG_MAX(all / POINTS_MOST, (size_t)1);
	/* the last rank is always among them */
	for (size_t i = 0; i < all; i++)
		if (i % step == 0 || i + 1 == all)
			rows[n++] = (struct need_row){ (double)(i + 1) / (double)all, sizes[0][i],
						       sizes[1][i], sizes[2][i] };
	return (struct frag_rows){ rows, n };
}

/* ---- cards of each kind ----------------------------------------------------------------- */

#define CARDS_ROW(F, P, S) \
	F(S, TEXT, card, NULL, "kind of card") \
	F(S, COUNT, today_count, NULL, "today") \
	F(S, COUNT, then_count, NULL, "with the plan") \
	F(S, COUNT, shared_count, NULL, "where ranks share cards")
FRAG_ROW_AS(static, cards_shape, cards_row, "cards", CARDS_ROW, "cards of one kind");

static struct cards_row cards_row(const struct frag_fleet *f, const struct frag_gpu *card)
{
	struct cards_row row = { .card = card ? card->name : "no card" };

	for (size_t j = 0; j < f->jobs_count; j++) {
		if (f->jobs[j].unreproduced)
			continue;
		row.today_count += f->jobs[j].today.card == card ? f->jobs[j].units_count : 0;
		row.then_count += f->jobs[j].best.card == card ? f->jobs[j].units_count : 0;
	}
	if (!card)
		row.shared_count = row.today_count || row.then_count
					   ? (f->best.card ? f->best.left_out : 0)
					   : 0;
	else if (f->best.card == card)
		row.shared_count = f->best.cards;
	return row;
}

static struct frag_rows cards_rows(const struct frag_fleet *f, struct frag_answer *a)
{
	struct cards_row *rows = frag_answer_new(a, f->catalog.count + 1, sizeof(*rows));
	size_t n = 0;

	for (size_t i = 0; rows && i <= f->catalog.count; i++) {
		rows[n] = cards_row(f, i < f->catalog.count ? f->catalog.cards[i] : NULL);
		n += rows[n].today_count || rows[n].then_count || rows[n].shared_count;
	}
	return (struct frag_rows){ rows, n };
}

/* ---- one setting for all ---------------------------------------------------------------- */

#define TOTAL_ROW(F, P, S) \
	F(S, COUNT, number, NULL, "of the setting") \
	F(S, TEXT, setting, NULL, "for all jobs") \
	F(S, BYTES, reserved_bytes, NULL, "by all ranks at their peaks") \
	F(S, BYTES, live_bytes, NULL, "live at their peaks")
FRAG_ROW_AS(static, total_shape, total_row, "total", TOTAL_ROW, "all ranks under one setting");

/* Today first. *least: the setting that reserves least. */
static struct frag_rows total_rows(const struct frag_fleet *f, struct frag_answer *a,
				   const struct total_row **least)
{
	struct total_row *rows = frag_answer_new(a, f->policies_count + 1, sizeof(*rows));
	struct frag_fleet_sum now = frag_fleet_sum(f, FRAG_FLEET_TODAY);
	size_t n = 1;

	if (!rows)
		return (struct frag_rows){ 0 };
	rows[0] = (struct total_row){ 0, "today", now.reserved_bytes, now.live_bytes };
	*least = &rows[0];
	for (size_t p = 0; p < f->policies_count; p++) {
		struct frag_fleet_setting s = frag_fleet_setting(f, p);

		if (2 * s.tried < f->jobs_count - f->unreproduced)
			continue;
		rows[n] = (struct total_row){ n, f->policies[p], s.reserved_bytes, now.live_bytes };
		if (rows[n].reserved_bytes < (*least)->reserved_bytes || *least == &rows[0])
			*least = &rows[n];
		n++;
	}
	return (struct frag_rows){ rows, n };
}

static void add_chart(const struct frag_fleet *f, struct frag_answer *a, struct frag_title *title,
		      struct frag_answer_chart chart)
{
	if (f->unreproduced)
		chart.subtitle = frag_answer_print(a, "%zu of %zu jobs left out: not reproduced",
						   f->unreproduced, f->jobs_count);
	frag_answer_take_title(a, title, &chart);
	frag_answer_chart(a, &chart);
}

static void add_need(const struct frag_fleet *f, const struct frag_rows *rows,
		     struct frag_answer *a)
{
	struct frag_fleet_sum now = frag_fleet_sum(f, FRAG_FLEET_TODAY);
	double ratio = (double)now.live_bytes / (double)FRAG_MAX(now.reserved_bytes, 1u);
	struct frag_title title = { 0 };

	if (!rows->count)
		return;

	frag_text_addf(&title.text, "%s of what is reserved today is live at the peaks",
		       frag_title_percent(&title, "live_ratio", ratio, 0));
	add_chart(f, a, &title,
		  (struct frag_answer_chart){
			  .script = "fleet_need",
			  .caption = "Every rank of a job that has a card today, from the smallest "
				     "to the largest: what it holds live at most, what it reserves "
				     "today, and what it would reserve with the plan. The area "
				     "between the lines is memory that is paid for and not used.",
			  .shape = &need_shape,
			  .rows = *rows });
}

static void add_cards(const struct frag_fleet *f, const struct frag_rows *rows,
		      struct frag_answer *a)
{
	size_t gained = frag_fleet_sum(f, FRAG_FLEET_GAINED).jobs;
	struct frag_title title = { 0 };
	const char *moved =
		frag_title_count(&title, "moved_count", frag_fleet_sum(f, FRAG_FLEET_PLAN).moved);

	frag_text_addf(&title.text, "%s of %s jobs move to a smaller card", moved,
		       frag_title_count(&title, "jobs_count", f->jobs_count - f->unreproduced));
	if (gained)
		frag_text_addf(&title.text, ", %s fit one only so",
			       frag_title_count(&title, "gained_count", gained));
	add_chart(f, a, &title,
		  (struct frag_answer_chart){ .script = "fleet_cards",
					      .caption = "Cards of each kind for all jobs: "
							 "today, with the plan, and where "
							 "ranks share cards.",
					      .shape = &cards_shape,
					      .rows = *rows });
}

static void add_settings(const struct frag_fleet *f, const struct frag_rows *rows,
			 const struct total_row *least, struct frag_answer *a)
{
	struct frag_title title = { 0 };
	const struct total_row *today = rows->rows;
	const char *bytes = frag_title_bytes(&title, "reserved_bytes", least->reserved_bytes);

	if (!today->reserved_bytes)
		return;

	frag_text_addf(&title.text, "%s everywhere would reserve %s of today's %s", least->setting,
		       bytes, frag_title_bytes(&title, "today_bytes", today->reserved_bytes));
	add_chart(f, a, &title,
		  (struct frag_answer_chart){
			  .script = "bars",
			  .base = "fleet_settings",
			  .extra = "peaks of all ranks added up|reserved|of that live",
			  .caption = "All ranks of jobs that have a card today under one "
				     "setting: the sum of their peaks, and what they hold live.",
			  .shape = &total_shape,
			  .rows = *rows });
}

int frag_fleet_charts(const struct frag_fleet *f, struct frag_answer *a, struct frag_err *err)
{
	const struct total_row *least = NULL;
	struct frag_rows needs = need_rows(f, a), cards = cards_rows(f, a),
			 totals = total_rows(f, a, &least);

	FRAG_CHECK_ALLOC(!a->failed && least, "charts", err);
	add_need(f, &needs, a);
	add_cards(f, &cards, a);
	add_settings(f, &totals, least, a);
	return 0;
}
