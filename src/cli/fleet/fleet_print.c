/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as text, CSV and JSON; see fleet.h. */
#include "fleet.h"

#include "base/term.h"

#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

static const char *size_text(uint64_t bytes, char buf[32])
{
	return frag_format_bytes(bytes, buf, 32);
}

static const char *card_text(const struct frag_fleet_choice *c)
{
	return c->card ? c->card->name : "none";
}

/* ---- the sentence -------------------------------------------------------------------- */

static void add_count(struct frag_text *t, size_t n, const char *one, const char *many)
{
	frag_text_add_grouped(t, n);
	frag_text_addf(t, " %s", n == 1 ? one : many);
}

void frag_fleet_answer(const struct frag_fleet *f, struct frag_text *out)
{
	struct frag_fleet_sum now = frag_fleet_sum(f, false), then = frag_fleet_sum(f, true);

	add_count(out, then.moved, "job moves", "jobs move");
	frag_text_addf(out, " to a smaller card by %s setting", then.moved == 1 ? "its" : "their");
	if (then.moved && now.priced && then.priced)
		frag_text_addf(out, ", which saves %.2f of %.2f an hour (%.0f %%)",
			       then.price_saved, now.price, 100 * then.price_saved / now.price);
	else if (then.moved)
		frag_text_addf(out, ", and %.0f %% less card memory does the same work",
			       100 * (double)then.card_bytes_saved / (double)now.card_bytes);
	if (then.gained) {
		frag_text_add(out, "; ");
		add_count(out, then.gained, "job fits a card only by its setting",
			  "jobs fit a card only by their setting");
	}
	if (f->best.card && f->best.cards) {
		frag_text_add(out, "; sharing would put ");
		add_count(out, f->best.units, "rank", "ranks");
		frag_text_addf(out, " on %zu cards of %s (no packing needs fewer than %zu)",
			       f->best.cards, f->best.card->name, f->best.bound);
	}
	if (then.jobs_without) {
		frag_text_add(out, "; ");
		add_count(out, then.jobs_without, "job fits", "jobs fit");
		frag_text_add(out, " no card of the list");
	}
}

/* ---- text -------------------------------------------------------------------------------- */

/* Jobs with the largest saving first, then those that fit nowhere, then by need. */
static const struct frag_fleet *sorted_fleet; /* for qsort only, one thread */

static int rank_of(const struct frag_fleet_job *j)
{
	return !j->best.card ? 1 : j->best.card != j->today.card ? 0 : 2;
}

static int by_interest(const void *x, const void *y)
{
	const struct frag_fleet_job *a = &sorted_fleet->jobs[*(const size_t *)x];
	const struct frag_fleet_job *b = &sorted_fleet->jobs[*(const size_t *)y];

	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	if (a->today.need_bytes != b->today.need_bytes)
		return a->today.need_bytes > b->today.need_bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int jobs_table(const struct frag_fleet *f, size_t rows_max, struct frag_text *out,
		      struct frag_err *err)
{
	static const struct frag_table_column columns[] = {
		{ "job", "", true, "" },	  { "ranks", "", false, "" },
		{ "needs today", "", false, "" }, { "on", "", true, "" },
		{ "could need", "", false, "" },  { "on", "", true, "" },
		{ "with", "", true, "" },
	};
	static const char *const spare[] = { "ranks", "with", NULL };
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };
	FRAG_AUTO_FREE size_t *order = NULL;
	char a[32], b[32];

	FRAG_TRY_CALLOC(order, f->jobs_count, "table", err);
	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	for (size_t i = 0; i < f->jobs_count; i++)
		order[i] = i;
	sorted_fleet = f;
	qsort(order, f->jobs_count, sizeof(*order), by_interest);
	for (size_t i = 0; i < FRAG_MIN(f->jobs_count, rows_max); i++) {
		const struct frag_fleet_job *j = &f->jobs[order[i]];

		frag_table_cell(&t, "%s", j->name);
		frag_table_cell(&t, "%zu", j->units_count);
		frag_table_cell(&t, "%s", size_text(j->today.need_bytes, a));
		frag_table_cell(&t, "%s", card_text(&j->today));
		frag_table_cell(&t, "%s", size_text(j->best.need_bytes, b));
		frag_table_cell(&t, "%s", card_text(&j->best));
		frag_table_cell(&t, "%s", f->policies[j->best.policy]);
	}
	t.spare = spare;
	t.room = frag_term_room(stdout);
	frag_table_print(&t, out);
	if (f->jobs_count > rows_max)
		frag_text_addf(out, "… and %zu more (--top, --csv)\n", f->jobs_count - rows_max);
	return 0;
}

static void add_sum(const struct frag_fleet_sum *s, const char *what, struct frag_text *out)
{
	char a[32], b[32];

	frag_text_addf(out, "%-10s %zu cards, %s of card memory, %s reserved", what, s->cards,
		       size_text(s->card_bytes, a), size_text(s->reserved_bytes, b));
	if (s->priced && s->price > 0)
		frag_text_addf(out, ", %.2f an hour", s->price);
	frag_text_add(out, "\n");
}

static void add_pack(const struct frag_fleet_pack *p, const char *what, struct frag_text *out)
{
	if (!p->card)
		return;
	frag_text_addf(out, "%-10s %zu ranks on %zu %s, peaks added up; no packing below %zu", what,
		       p->units, p->cards, p->card->name, p->bound);
	if (p->cards_measured)
		frag_text_addf(out, "; %zu at the recorded times", p->cards_measured);
	if (p->left_out)
		frag_text_addf(out, "; %zu ranks do not fit it", p->left_out);
	if (p->card->price_per_hour > 0)
		frag_text_addf(out, "; %.2f an hour", (double)p->cards * p->card->price_per_hour);
	frag_text_add(out, "\n");
}

void frag_fleet_sums(const struct frag_fleet *f, struct frag_text *out)
{
	struct frag_fleet_sum now = frag_fleet_sum(f, false), then = frag_fleet_sum(f, true);

	add_sum(&now, "today", out);
	add_sum(&then, "then", out);
	add_pack(&f->today, "shared now", out);
	add_pack(&f->best, "shared", out);
}

void frag_fleet_settings(const struct frag_fleet *f, struct frag_table *t)
{
	static const struct frag_table_column columns[] = {
		{ "one setting for all", "", true, "" }, { "reserved", "", false, "" },
		{ "jobs swept", "", false, "" },	 { "refused", "", false, "" },
		{ "to a smaller card", "", false, "" },	 { "card memory saved", "", false, "" },
		{ "saved an hour", "", false, "" },
	};
	bool priced = frag_fleet_sum(f, false).priced;
	char a[32];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(columns); i++)
		if (priced || i != 6)
			frag_table_column(t, &columns[i]);
	for (size_t p = 0; p < f->policies_count; p++) {
		struct frag_fleet_setting s = frag_fleet_setting(f, p);

		if (2 * s.tried < f->jobs_count)
			continue; /* what few jobs were recorded with says nothing on all */
		frag_table_cell(t, "%s", f->policies[p]);
		frag_table_cell(t, "%s", size_text(s.reserved_bytes, a));
		frag_table_cell(t, "%zu", s.tried);
		frag_table_cell(t, "%zu", s.refused);
		frag_table_cell(t, "%zu", s.moved);
		frag_table_cell(t, "%s%s", s.card_bytes_saved < 0 ? "-" : "",
				size_text((uint64_t)llabs(s.card_bytes_saved), a));
		if (priced)
			frag_table_cell(t, "%.2f", s.price_saved);
	}
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

void frag_fleet_misfits(const struct frag_fleet *f, struct frag_text *out)
{
	char a[32], b[32], c[32];
	uint64_t room = 0;

	for (size_t i = 0; i < f->catalog.count; i++)
		room = FRAG_MAX(room, frag_gpu_room(f->catalog.cards[i], &f->cli->headroom));
	for (size_t j = 0; j < f->jobs_count; j++) {
		const struct frag_fleet_job *job = &f->jobs[j];
		uint64_t need;
		size_t least;

		if (job->best.card)
			continue;
		least = least_need(f, job, &need);
		frag_text_addf(out, "no card for %s: ", job->name);
		if (job->bound_bytes > room)
			frag_text_addf(out,
				       "its worst rank holds %s at once, the largest card leaves "
				       "it %s: the program needs it\n",
				       size_text(job->bound_bytes, a), size_text(room, b));
		else if (least != SIZE_MAX)
			frag_text_addf(out,
				       "it reserves %s under %s, the least of the sweep, the "
				       "largest "
				       "card leaves it %s; %s of that are live: other settings "
				       "may do\n",
				       size_text(need, a), f->policies[least], size_text(room, b),
				       size_text(job->bound_bytes, c));
		else
			frag_text_add(out,
				      "it was refused memory in the sweep; sweep it on a larger "
				      "card\n");
	}
}

int frag_fleet_print(const struct frag_fleet *f, size_t rows_max, struct frag_err *err)
{
	static const char *const spare[] = { "refused", "jobs swept", "card memory saved", NULL };
	struct frag_table settings = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	int rc;

	frag_text_addf(&out,
		       "# %zu jobs, %zu ranks, %zu policies; %zu cards to choose from, %.0f %% of "
		       "each kept free\n",
		       f->jobs_count, f->units_count, f->policies_count, f->catalog.count,
		       100 * f->cli->headroom.ratio);
	frag_fleet_answer(f, &out);
	frag_text_add(&out, ".\n\n");
	rc = jobs_table(f, rows_max, &out, err);
	frag_text_add(&out, "\n");
	frag_fleet_sums(f, &out);
	frag_text_add(&out, "\n");
	frag_fleet_settings(f, &settings);
	settings.spare = spare;
	settings.room = frag_term_room(stdout);
	frag_table_print(&settings, &out);
	frag_table_release(&settings);
	frag_text_add(&out, "\n");
	frag_fleet_misfits(f, &out);
	if (f->failures)
		frag_text_addf(&out, "%zu traces of the sweep failed and are in no figure here\n",
			       f->failures);
	if (f->estimates)
		frag_text_addf(&out,
			       "%zu of the jobs %s recorded without a GPU: what they need is an "
			       "estimate\n",
			       f->estimates, f->estimates == 1 ? "was" : "were");
	frag_text_add(&out,
		      "not known here: compute, bandwidth, how jobs on one card slow each other; "
		      "memory outside of the allocator but for the context\n");
	return rc ? rc : frag_text_show(&out, err);
}

/* ---- CSV and JSON --------------------------------------------------------------------------- */

/* The cards that a choice fits, separated by semicolons, as one field. */
static void add_fits(const struct frag_fleet *f, const struct frag_fleet_choice *c,
		     struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text list = { 0 };

	for (size_t i = 0; i < f->catalog.count; i++)
		if (frag_fleet_fits(f, c, f->catalog.cards[i]))
			frag_text_addf(&list, "%s%s", list.len ? ";" : "",
				       f->catalog.cards[i]->name);
	frag_text_add_csv(out, frag_text_str(&list));
}

int frag_fleet_csv(const struct frag_fleet *f, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_text_add(&t, "job,ranks,bound_bytes,today_policy,today_bytes,today_card,best_policy,"
			  "best_bytes,best_card,today_price_per_hour,best_price_per_hour,"
			  "today_headroom_bytes,best_headroom_bytes,best_fits,estimate\n");
	for (size_t i = 0; i < f->jobs_count; i++) {
		const struct frag_fleet_job *j = &f->jobs[i];
		const struct frag_fleet_choice *choices[] = { &j->today, &j->best };

		frag_text_add_csv(&t, j->name);
		frag_text_addf(&t, ",%zu,%llu", j->units_count, (unsigned long long)j->bound_bytes);
		for (size_t k = 0; k < 2; k++) {
			frag_text_add(&t, ",");
			frag_text_add_csv(&t, f->policies[choices[k]->policy]);
			frag_text_addf(&t, ",%llu,", (unsigned long long)choices[k]->need_bytes);
			frag_text_add_csv(&t, choices[k]->card ? choices[k]->card->name : "");
		}
		for (size_t k = 0; k < 2; k++) {
			double price = choices[k]->card ? choices[k]->card->price_per_hour : 0;

			frag_text_add(&t, ",");
			if (price > 0)
				frag_text_add_number(&t, price * (double)j->units_count);
		}
		for (size_t k = 0; k < 2; k++)
			frag_text_addf(&t, ",%llu",
				       (unsigned long long)frag_fleet_headroom(choices[k]));
		frag_text_add(&t, ",");
		add_fits(f, &j->best, &t);
		frag_text_addf(&t, ",%d\n", j->estimate);
	}
	return frag_text_put(&t, path, err);
}

static json_t *choice_json(const struct frag_fleet *f, const struct frag_fleet_choice *c)
{
	json_t *fits = json_array();

	for (size_t i = 0; i < f->catalog.count; i++)
		if (frag_fleet_fits(f, c, f->catalog.cards[i]))
			json_array_append_new(fits, json_string(f->catalog.cards[i]->name));
	return json_pack("{s:s, s:I, s:o, s:o, s:o}", "policy", f->policies[c->policy],
			 "need_bytes", (json_int_t)c->need_bytes, "card",
			 c->card ? json_string(c->card->name) : json_null(), "headroom_bytes",
			 c->card ? json_integer((json_int_t)frag_fleet_headroom(c)) : json_null(),
			 "fits", fits);
}

static json_t *pack_json(const struct frag_fleet_pack *p)
{
	if (!p->card)
		return json_null();
	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:I}", "card", p->card->name, "ranks",
			 (json_int_t)p->units, "cards", (json_int_t)p->cards, "lower_bound",
			 (json_int_t)p->bound, "cards_measured",
			 p->cards_measured ? json_integer((json_int_t)p->cards_measured)
					   : json_null(),
			 "left_out", (json_int_t)p->left_out);
}

static json_t *sum_json(const struct frag_fleet_sum *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "cards", (json_int_t)s->cards, "card_bytes",
			 (json_int_t)s->card_bytes, "reserved_bytes", (json_int_t)s->reserved_bytes,
			 "jobs_without_card", (json_int_t)s->jobs_without, "price_per_hour",
			 s->priced ? json_real(s->price) : json_null());
}

static json_t *settings_json(const struct frag_fleet *f)
{
	json_t *list = json_array();

	for (size_t p = 0; p < f->policies_count; p++) {
		struct frag_fleet_setting s = frag_fleet_setting(f, p);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I}",
						      "policy", f->policies[p], "reserved_bytes",
						      (json_int_t)s.reserved_bytes, "jobs_moved",
						      (json_int_t)s.moved, "card_bytes_saved",
						      (json_int_t)s.card_bytes_saved,
						      "price_per_hour_saved", s.price_saved,
						      "jobs_tried", (json_int_t)s.tried,
						      "jobs_refused", (json_int_t)s.refused));
	}
	return list;
}

int frag_fleet_json(const struct frag_fleet *f, struct frag_err *err)
{
	struct frag_fleet_sum now = frag_fleet_sum(f, false), then = frag_fleet_sum(f, true);
	json_t *root = frag_cli_json_head(f->cli), *jobs = json_array();
	bool ok = root && jobs;

	for (size_t i = 0; ok && i < f->jobs_count; i++) {
		const struct frag_fleet_job *j = &f->jobs[i];

		ok = !json_array_append_new(
			jobs,
			json_pack("{s:s, s:b, s:I, s:I, s:o, s:o}", "job", j->name, "estimate",
				  j->estimate, "ranks", (json_int_t)j->units_count,
				  "lower_bound_bytes", (json_int_t)j->bound_bytes, "today",
				  choice_json(f, &j->today), "best", choice_json(f, &j->best)));
	}
	ok = ok && !json_object_set_new(root, "today", sum_json(&now)) &&
	     !json_object_set_new(root, "best", sum_json(&then)) &&
	     !json_object_set_new(root, "shared_today", pack_json(&f->today)) &&
	     !json_object_set_new(root, "shared_best", pack_json(&f->best)) &&
	     !json_object_set_new(root, "settings", settings_json(f)) &&
	     !json_object_set(root, "jobs", jobs);
	json_decref(jobs);
	if (!ok) {
		json_decref(root);
		root = NULL;
	}
	return frag_cli_json_write(f->cli, root, err);
}
