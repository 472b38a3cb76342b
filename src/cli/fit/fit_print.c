/* SPDX-License-Identifier: Apache-2.0 */
/* fit: tables, JSON, CSV. */
#include "fit_print.h"

#include <string.h>

#include <frag/opt.h>

#include "report/report.h"
#include "answer/json.h"
#include "answer/table.h"

static const char *row_name(const struct frag_fit_row *row)
{
	return frag_policy_spec_echo(row->specs[row->worst]);
}

/* ---- text ------------------------------------------------------------------------ */

static char *size_text(uint64_t bytes, char buf[32])
{
	return frag_format_bytes(bytes, buf, 32);
}

static void policies_table(const struct frag_fit_page *p, struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "policy", "", true, "" },
		{ "smallest card", "", false, "" },
		{ "bytes", "", false, "" },
		{ "no failure from", "", false, "" },
		{ "unconstrained from", "", false, "" },
		{ "peak reserved", "", false, "" },
		{ "card", "", true, "" },
		{ "replays", "", false, "" },
	};
	static const char *const spare[] = { "replays", "bytes", "peak reserved", "no failure from",
					     NULL };
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };
	char a[32], b[32], c[32], d[32];

	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	for (size_t r = 0; r < p->rows_count; r++) {
		const struct frag_fit_row *row = &p->rows[r];
		uint64_t peak = row->tasks[row->worst].fit.peak_reserved_bytes;
		size_t card;
		bool known = row->complete && row->possible;

		frag_table_cell(&t, "%s", row_name(row));
		frag_table_cell(&t, "%s",
				known		 ? size_text(row->min_bytes, a)
				: !row->complete ? "interrupted"
						 : "never");
		frag_table_cell(&t, known ? "%llu" : "-", (unsigned long long)row->min_bytes);
		frag_table_cell(&t, "%s", known ? size_text(row->safe_bytes, b) : "-");
		frag_table_cell(&t, "%s", known ? size_text(row->ample_bytes, d) : "-");
		frag_table_cell(&t, "%s", peak ? size_text(peak, c) : "-");
		card = known ? frag_fit_card(p, r) : SIZE_MAX;
		frag_table_cell(&t, "%s",
				!known		   ? "-"
				: card == SIZE_MAX ? "none"
						   : p->catalog.cards[card]->name);
		frag_table_cell(&t, "%llu", (unsigned long long)row->probes);
	}
	t.room = frag_term_room(stdout);
	t.spare = spare;
	frag_table_print(&t, out);
}

static void gpus_table(const struct frag_fit_page *p, struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "card", "", true, "" },	   { "memory", "", false, "" },
		{ "answer", "", true, "" },	   { "headroom", "", false, "" },
		{ "of the card", "%", false, "" }, { "best policy", "", true, "" },
		{ "per hour", "", false, "" },	   { "this job", "", false, "" },
	};
	static const char *const spare[] = { "of the card", "memory", "headroom", NULL };
	size_t width = FRAG_ARRAY_LEN(columns) - (frag_fit_priced(p) ? 0 : 2);
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };
	char a[32], b[32];

	frag_table_columns(&t, columns, width);
	for (size_t g = 0; g < p->catalog.count; g++) {
		const struct frag_gpu *gpu = p->catalog.cards[g];
		size_t r = frag_fit_best_row(p, g);
		uint64_t room = frag_fit_room(p, g, NULL);

		frag_table_cell(&t, "%s", gpu->name);
		frag_table_cell(&t, "%s", size_text(gpu->total_bytes, a));
		frag_table_cell(&t, "%s", frag_fit_answer(p, g));
		if (r == SIZE_MAX || room < frag_fit_peak(p, &p->rows[r])) {
			frag_table_cell(&t, r == SIZE_MAX ? "-" : "none");
			frag_table_cell(&t, "-");
		} else {
			room -= frag_fit_peak(p, &p->rows[r]);
			frag_table_cell(&t, "%s", size_text(room, b));
			frag_table_cell(&t, "%.1f",
					100.0 * (double)room / (double)gpu->total_bytes);
		}
		frag_table_cell(&t, "%s", r == SIZE_MAX ? "-" : row_name(&p->rows[r]));
		if (width < FRAG_ARRAY_LEN(columns))
			continue;
		frag_table_cell(&t, gpu->price_per_hour > 0 ? "%.2f" : "-", gpu->price_per_hour);
		frag_table_cell(&t, frag_fit_job_price(p, gpu) > 0 ? "%.3g" : "-",
				frag_fit_job_price(p, gpu));
	}
	t.room = frag_term_room(stdout);
	t.spare = spare;
	frag_table_print(&t, out);
}

/* One line: the card, the policy, why that one. */
static void advice_line(const struct frag_fit_page *p, struct frag_text *out)
{
	size_t g = frag_fit_card(p, SIZE_MAX), r;
	FRAG_AUTO(frag_text_release) struct frag_text kept = { 0 };
	char a[32], b[32];

	frag_headroom_text(&p->cli->headroom, &kept);
	if (g == SIZE_MAX) {
		frag_text_addf(out, "advice: no card of the list has room%s%s\n",
			       kept.len ? " and leaves " : "", frag_text_str(&kept));
		return;
	}
	r = frag_fit_best_row(p, g);
	frag_text_addf(out, "advice: %s with %s, which reserves %s of %s",
		       p->catalog.cards[g]->label, row_name(&p->rows[r]),
		       size_text(frag_fit_peak(p, &p->rows[r]), a),
		       size_text(frag_fit_room(p, g, NULL), b));
	if (kept.len)
		frag_text_addf(out, "; kept free: %s", frag_text_str(&kept));
	if (frag_fit_job_price(p, p->catalog.cards[g]) > 0)
		frag_text_addf(out, "; what was recorded costs %.3g",
			       frag_fit_job_price(p, p->catalog.cards[g]));
	frag_text_add(out, "\n");
}

/* What the smallest card costs, and what a limit that is a part of it leaves to the process. */
static void price_line(const struct frag_fit_page *p, const struct frag_fit_row *row,
		       struct frag_text *out)
{
	const struct frag_fit *f = &row->tasks[row->worst].fit;
	char card[32], may[32];
	uint64_t share = frag_limit_bytes(&p->cli->target.limit, row->min_bytes);
	bool limited = share < row->min_bytes;

	if (!row->complete || !row->possible || (!f->min_retries_count && !limited))
		return;
	frag_text_addf(out, "%s on %s", row_name(row), size_text(row->min_bytes, card));
	if (limited)
		frag_text_addf(out, ", of which the process may have %s", size_text(share, may));
	frag_text_addf(out, ": nothing is refused; %llu %s, ",
		       (unsigned long long)f->min_retries_count,
		       f->min_retries_count == 1 ? "retry" : "retries");
	frag_text_add_ns(out, f->min_driver_ns);
	frag_text_add(out, " in the driver\n");
}

/* Requests that were refused when recorded are served on every card that is named here. */
static void refused_line(const struct frag_fit_page *p, struct frag_text *out)
{
	uint64_t refused = 0;

	for (size_t i = 0; i < p->units.units_count; i++)
		refused += p->units.units[i].dev->settled.refused_count;
	if (refused)
		frag_text_addf(out,
			       "# %llu requests were refused when recorded; a smallest card serves "
			       "them, too\n",
			       (unsigned long long)refused);
}

static void gap_lines(const struct frag_fit_page *p, const struct frag_fit_row *row,
		      struct frag_text *out)
{
	char a[32], b[32];

	for (size_t i = 0; row->possible && i < p->units.units_count; i++) {
		const struct frag_fit *f = &row->tasks[i].fit;

		if (f->complete && f->narrow)
			frag_text_addf(out,
				       "not looked for: sizes above %s at which %s fails on %s; a "
				       "replay makes "
				       "too many driver calls for that\n",
				       size_text(f->min_capacity_bytes, a), row_name(row),
				       p->units.units[i].label);
		if (!f->complete || !f->gaps_seen)
			continue;
		frag_text_addf(out, "not monotonic: %s on %s completes at %s (%llu) but failed at",
			       row_name(row), p->units.units[i].label,
			       size_text(f->min_capacity_bytes, a),
			       (unsigned long long)f->min_capacity_bytes);
		for (size_t k = 0; k < f->gaps_count; k++) {
			const struct frag_fit_gap *g = &f->gaps[k];

			frag_text_addf(out, "%s %llu", k ? "," : "",
				       (unsigned long long)g->first_bytes);
			if (g->last_bytes != g->first_bytes)
				frag_text_addf(out, " to %llu", (unsigned long long)g->last_bytes);
		}
		if (f->gaps_seen > f->gaps_count)
			frag_text_addf(out, " and in %zu ranges more",
				       f->gaps_seen - f->gaps_count);
		frag_text_addf(out, "; no probe failed from %s (%llu) on\n",
			       size_text(f->safe_capacity_bytes, b),
			       (unsigned long long)f->safe_capacity_bytes);
	}
}

/* What no card helps against. */
static void never_lines(const struct frag_fit_page *p, struct frag_text *out)
{
	for (size_t r = 0; r < p->rows_count; r++) {
		const struct frag_fit_row *row = &p->rows[r];

		if (!row->complete || row->possible)
			continue;
		frag_text_addf(out, "never: %s fails on %s with 1 TiB, too%s%s\n", row_name(row),
			       p->units.units[row->worst].label,
			       p->cli->target.limit.text ? ", because of --limit " : "",
			       p->cli->target.limit.text ? p->cli->target.limit.text : "");
	}
}

static void spread_lines(const struct frag_fit_page *p, struct frag_text *out)
{
	char a[32], b[32];

	for (size_t r = 0; p->units.units_count > 1 && r < p->rows_count; r++) {
		const struct frag_fit_row *row = &p->rows[r];
		uint64_t low = UINT64_MAX;

		if (!row->complete || !row->possible)
			continue;
		for (size_t i = 0; i < p->units.units_count; i++)
			low = FRAG_MIN(low, row->tasks[i].fit.min_capacity_bytes);
		frag_text_addf(out, "%s: %s to %s, decided by %s\n", row_name(row),
			       size_text(low, a), size_text(row->min_bytes, b),
			       p->units.units[row->worst].label);
	}
}

static int print_text(const struct frag_fit_page *p, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 }, kept = { 0 };
	char a[32];

	frag_text_addf(&out, "# cufrag %s fit:", FRAG_VERSION);
	for (size_t i = 0; i < p->units.units_count; i++)
		frag_text_addf(&out, "%s %s", i ? "," : "", p->units.units[i].label);
	frag_text_addf(&out, "%s\n# capacity = what the trace needs + context %s",
		       frag_cli_estimate_word(p->cli->estimated),
		       size_text(p->cli->target.card.context_bytes, a));
	frag_headroom_text(&p->cli->headroom, &kept);
	if (kept.len)
		frag_text_addf(&out, "; cards: and %s", frag_text_str(&kept));
	if (p->cli->target.limit.text)
		frag_text_addf(&out, "; limit %s%s", p->cli->target.limit.text,
			       p->cli->target.limit.is_fraction ? " of the card that is tried"
								: "");
	frag_text_addf(&out, "; seed %llu\n", (unsigned long long)p->cli->target.seed);
	frag_cli_units_say(&p->units, &p->cli->target,
			   "not applied: what is looked for is a card without it", &out);
	refused_line(p, &out);
	policies_table(p, &out);
	for (size_t r = 0; r < p->rows_count; r++)
		price_line(p, &p->rows[r], &out);
	frag_text_add(&out, "\n");
	gpus_table(p, &out);
	frag_text_add(&out, "\n");
	advice_line(p, &out);
	if (p->units.units_count > 1)
		frag_text_add(&out, "\n");
	spread_lines(p, &out);
	never_lines(p, &out);
	for (size_t r = 0; r < p->rows_count; r++)
		gap_lines(p, &p->rows[r], &out);
	return frag_text_show(&out, err);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *unit_json(const struct frag_unit *unit, const struct frag_fit_task *task)
{
	const struct frag_fit *f = &task->fit;
	bool known = f->complete && f->possible;
	json_t *gaps = json_array();

	for (size_t k = 0; k < f->gaps_count; k++)
		json_array_append_new(gaps,
				      json_pack("{s:I, s:I}", "first_bytes",
						(json_int_t)f->gaps[k].first_bytes, "last_bytes",
						(json_int_t)f->gaps[k].last_bytes));
	return json_pack(
		"{s:s, s:i, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:b, s:o, s:o, s:I}",
		"trace", unit->trace->name, "device_ordinal", (int)unit->dev->ordinal, "policy",
		frag_policy_spec_echo(task->spec), "complete", f->complete, "possible", f->possible,
		"min_capacity_bytes", frag_json_if(known, f->min_capacity_bytes),
		"safe_capacity_bytes", frag_json_if(known, f->safe_capacity_bytes),
		"ample_capacity_bytes", frag_json_if(known, f->ample_capacity_bytes),
		"peak_reserved_bytes", frag_json_if(f->peak_reserved_bytes, f->peak_reserved_bytes),
		"gaps_count", (json_int_t)f->gaps_seen, "gaps", gaps, "probes_count",
		(json_int_t)f->probes_count, "narrow", f->narrow, "min_retries_count",
		frag_json_if(known, f->min_retries_count), "min_driver_ns",
		frag_json_if(known, f->min_driver_ns), "refused_when_recorded_count",
		(json_int_t)task->dev->settled.refused_count);
}

static json_t *row_json(const struct frag_fit_page *p, const struct frag_fit_row *row)
{
	bool known = row->complete && row->possible;
	json_t *fits = json_array(), *tight = json_array(), *units = json_array();

	for (size_t g = 0; g < p->catalog.count; g++)
		if (row->gpus >> g & 1)
			json_array_append_new(frag_fit_roomy(p, row, g) ? fits : tight,
					      json_string(p->catalog.cards[g]->name));
	for (size_t i = 0; i < p->units.units_count; i++)
		json_array_append_new(units, unit_json(&p->units.units[i], &row->tasks[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "policy", row->text,
			 "params", row_name(row), "min_capacity_bytes",
			 frag_json_if(known, row->min_bytes), "safe_capacity_bytes",
			 frag_json_if(known, row->safe_bytes), "ample_capacity_bytes",
			 frag_json_if(known, row->ample_bytes), "fits", fits, "tight", tight,
			 "complete", row->complete, "traces", units);
}

static json_t *gpu_json(const struct frag_fit_page *p, size_t g)
{
	const struct frag_gpu *gpu = p->catalog.cards[g];
	size_t r = frag_fit_best_row(p, g);
	double price = frag_fit_job_price(p, gpu);

	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:o, s:o}", "name", gpu->name, "label",
		gpu->label, "vendor", gpu->vendor, "total_bytes", (json_int_t)gpu->total_bytes,
		"context_bytes", (json_int_t)gpu->context_bytes, "source", gpu->source, "answer",
		frag_fit_answer(p, g), "policy",
		r == SIZE_MAX ? json_null() : json_string(row_name(&p->rows[r])), "price_per_hour",
		gpu->price_per_hour > 0 ? json_real(gpu->price_per_hour) : json_null(), "job_price",
		price > 0 ? json_real(price) : json_null());
}

static json_t *gpus_json(const struct frag_fit_page *p)
{
	json_t *list = json_array();

	for (size_t g = 0; g < p->catalog.count; g++)
		json_array_append_new(list, gpu_json(p, g));
	return list;
}

/* The card to take and the policy on it; null where none has room. */
static json_t *advice_json(const struct frag_fit_page *p)
{
	size_t g = frag_fit_card(p, SIZE_MAX), r;

	if (g == SIZE_MAX)
		return json_null();
	r = frag_fit_best_row(p, g);
	return json_pack("{s:s, s:s, s:I}", "card", p->catalog.cards[g]->name, "policy",
			 row_name(&p->rows[r]), "reserved_bytes",
			 (json_int_t)frag_fit_peak(p, &p->rows[r]));
}

static int write_json(const struct frag_fit_page *p, struct frag_err *err)
{
	json_t *root = frag_cli_json_head(p->cli), *results = json_array(), *traces = json_array();
	bool complete = true;

	for (size_t r = 0; r < p->rows_count; r++) {
		complete &= p->rows[r].complete;
		json_array_append_new(results, row_json(p, &p->rows[r]));
	}
	for (size_t i = 0; i < p->units.units_count; i++)
		json_array_append_new(traces, json_string(p->units.units[i].label));
	json_object_set_new(root, "traces", traces);
	json_object_set_new(root, "recordings", frag_cli_units_json(&p->units));
	json_object_set_new(root, "context_bytes",
			    json_integer((json_int_t)p->cli->target.card.context_bytes));
	json_object_set_new(root, "margin_bytes", json_integer((json_int_t)p->cli->headroom.bytes));
	json_object_set_new(root, "margin_ratio", json_real(p->cli->headroom.ratio));
	json_object_set_new(root, "seed", json_integer((json_int_t)p->cli->target.seed));
	json_object_set_new(root, "complete", json_boolean(complete));
	json_object_set_new(root, "results", results);
	json_object_set_new(root, "gpus", gpus_json(p));
	json_object_set_new(root, "advice", advice_json(p));
	return frag_cli_json_write(p->cli, root, err);
}

/* ---- CSV ------------------------------------------------------------------------- */

static int write_csv(const struct frag_fit_page *p, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_text_add(&out, "policy,trace,device,min_capacity_bytes,safe_capacity_bytes,"
			    "ample_capacity_bytes,peak_reserved_bytes,gaps_count,fits\n");
	for (size_t r = 0; r < p->rows_count; r++) {
		for (size_t i = 0; i < p->units.units_count; i++) {
			const struct frag_fit_task *task = &p->rows[r].tasks[i];
			const struct frag_fit *f = &task->fit;
			bool known = f->complete && f->possible;

			frag_text_add_csv(&out, frag_policy_spec_echo(task->spec));
			frag_text_add(&out, ",");
			frag_text_add_csv(&out, p->units.units[i].trace->name);
			frag_text_addf(&out, ",%u", p->units.units[i].dev->ordinal);
			frag_text_addf(&out, known ? ",%llu,%llu,%llu" : ",,,",
				       (unsigned long long)f->min_capacity_bytes,
				       (unsigned long long)f->safe_capacity_bytes,
				       (unsigned long long)f->ample_capacity_bytes);
			frag_text_addf(&out, f->peak_reserved_bytes ? ",%llu" : ",",
				       (unsigned long long)f->peak_reserved_bytes);
			frag_text_addf(&out, known ? ",%zu," : ",,", f->gaps_seen);
			for (size_t g = 0, n = 0; g < p->catalog.count; g++)
				if (task->gpus >> g & 1 &&
				    frag_gpu_room(p->catalog.cards[g], &p->cli->headroom) >=
					    f->ample_capacity_bytes -
						    p->cli->target.card.context_bytes)
					frag_text_addf(&out, "%s%s", n++ ? " " : "",
						       p->catalog.cards[g]->name);
			frag_text_add(&out, "\n");
		}
	}
	return frag_text_put(&out, p->cli->csv, err);
}

int frag_fit_print(const struct frag_fit_page *p, struct frag_err *err)
{
	const char *json = p->cli->json, *csv = p->cli->csv;

	if (json)
		FRAG_TRY(write_json(p, err));
	if (csv)
		FRAG_TRY(write_csv(p, err));
	if ((!json || strcmp(json, "-") != 0) && (!csv || strcmp(csv, "-") != 0))
		FRAG_TRY(print_text(p, err));
	return 0;
}

int frag_fit_status(const struct frag_fit_page *p)
{
	size_t missing = 0;
	bool any = false;

	for (size_t r = 0; r < p->rows_count; r++) {
		missing += !p->rows[r].complete;
		any |= frag_fit_card(p, r) != SIZE_MAX;
	}
	if (missing) {
		frag_cli_note(p->cli, "interrupted: %zu of %zu policies are missing", missing,
			      p->rows_count);
		return frag_code_exit(FRAG_EINTR);
	}
	return any ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}
