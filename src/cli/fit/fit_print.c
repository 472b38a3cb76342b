/* SPDX-License-Identifier: Apache-2.0 */
/* fit: tables, JSON, CSV. */
#include "fit_print.h"

#include <string.h>

#include <frag/opt.h>

#include "report/text/table.h"

static const char *row_name(const struct frag_fit_row *row)
{
	return frag_policy_spec_echo(row->specs[row->worst]);
}

/* ---- text ------------------------------------------------------------------------ */

static char *size_text(uint64_t bytes, char buf[32])
{
	return frag_format_bytes(bytes, buf, 32);
}

static const char *first_gpu(const struct frag_fit_page *p, const struct frag_fit_row *row)
{
	for (size_t i = 0; i < p->gpus_count; i++)
		if (row->gpus >> i & 1)
			return p->gpus[i]->name;
	return "none";
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
		{ "smallest known card", "", true, "" },
		{ "replays", "", false, "" },
	};
	struct frag_table t = { 0 };
	char a[32], b[32], c[32], d[32];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(columns); i++)
		frag_table_column(&t, &columns[i]);
	for (size_t r = 0; r < p->rows_count; r++) {
		const struct frag_fit_row *row = &p->rows[r];
		uint64_t peak = row->tasks[row->worst].fit.peak_reserved_bytes;
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
		frag_table_cell(&t, "%s", known ? first_gpu(p, row) : "-");
		frag_table_cell(&t, "%llu", (unsigned long long)row->probes);
	}
	frag_table_print(&t, out);
	frag_table_release(&t);
}

/* Of the policies that complete on card g the one that needs least; SIZE_MAX = none. */
static size_t best_row(const struct frag_fit_page *p, size_t g)
{
	size_t best = SIZE_MAX;

	for (size_t r = 0; r < p->rows_count; r++)
		if (p->rows[r].gpus >> g & 1 &&
		    (best == SIZE_MAX || p->rows[r].min_bytes < p->rows[best].min_bytes))
			best = r;
	return best;
}

/* Capacity that card g needs for what fits into `bytes` with the context of the search: its own
 * context instead, and its own margin. */
static uint64_t need_of(const struct frag_fit_page *p, uint64_t bytes, const struct frag_gpu *gpu)
{
	double share = p->margin_fraction;
	uint64_t bare = bytes - (uint64_t)(share * (double)bytes) - p->cli->card.context_bytes +
			gpu->context_bytes;

	return share > 0 ? (uint64_t)((double)bare / (1 - share)) : bare;
}

/* The first row is what one has; the others are settings one may take. */
static void gpus_table(const struct frag_fit_page *p, struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "card", "", true, "" },	   { "memory", "", false, "" },
		{ "answer", "", true, "" },	   { "headroom", "", false, "" },
		{ "of the card", "%", false, "" }, { "policy", "", true, "" },
	};
	struct frag_table t = { 0 };
	char a[32], b[32];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(columns); i++)
		frag_table_column(&t, &columns[i]);
	for (size_t g = 0; g < p->gpus_count; g++) {
		const struct frag_gpu *gpu = p->gpus[g];
		bool plain = p->rows[0].gpus >> g & 1;
		size_t r = plain ? 0 : best_row(p, g);
		uint64_t need, room;

		frag_table_cell(&t, "%s", gpu->name);
		frag_table_cell(&t, "%s", size_text(gpu->total_bytes, a));
		if (r == SIZE_MAX) {
			frag_table_cell(&t, "does not fit");
			frag_table_cell(&t, "-");
			frag_table_cell(&t, "-");
			frag_table_cell(&t, "-");
			continue;
		}
		need = need_of(p, p->rows[r].min_bytes, gpu);
		room = gpu->total_bytes > need ? gpu->total_bytes - need : 0;
		frag_table_cell(&t, plain ? "fits" : "fits with another policy");
		frag_table_cell(&t, "%s", size_text(room, b));
		frag_table_cell(&t, "%.1f", 100.0 * (double)room / (double)gpu->total_bytes);
		frag_table_cell(&t, "%s", row_name(&p->rows[r]));
	}
	frag_table_print(&t, out);
	frag_table_release(&t);
}

static void gap_lines(const struct frag_fit_page *p, const struct frag_fit_row *row,
		      struct frag_text *out)
{
	char a[32], b[32];

	for (size_t i = 0; row->possible && i < p->units.count; i++) {
		const struct frag_fit *f = &row->tasks[i].fit;

		if (!f->complete || !f->gaps_seen)
			continue;
		frag_text_addf(out, "not monotonic: %s on %s completes at %s (%llu) but failed at",
			       row_name(row), p->units.list[i].label,
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
			       p->units.list[row->worst].label,
			       p->cli->limit ? ", because of --limit " : "",
			       p->cli->limit ? p->cli->limit : "");
	}
}

static void spread_lines(const struct frag_fit_page *p, struct frag_text *out)
{
	char a[32], b[32];

	for (size_t r = 0; p->units.count > 1 && r < p->rows_count; r++) {
		const struct frag_fit_row *row = &p->rows[r];
		uint64_t low = UINT64_MAX;

		if (!row->complete || !row->possible)
			continue;
		for (size_t i = 0; i < p->units.count; i++)
			low = FRAG_MIN(low, row->tasks[i].fit.min_capacity_bytes);
		frag_text_addf(out, "%s: %s to %s, decided by %s\n", row_name(row),
			       size_text(low, a), size_text(row->min_bytes, b),
			       p->units.list[row->worst].label);
	}
}

static int print_text(const struct frag_fit_page *p, struct frag_err *err)
{
	struct frag_text out = { 0 };
	char a[32], b[32];
	int rc;

	frag_text_addf(&out, "# cufrag %s fit:", FRAG_VERSION);
	for (size_t i = 0; i < p->units.count; i++)
		frag_text_addf(&out, "%s %s", i ? "," : "", p->units.list[i].label);
	frag_text_addf(&out, "\n# capacity = what the trace needs + context %s + margin ",
		       size_text(p->cli->card.context_bytes, a));
	if (p->margin_fraction > 0)
		frag_text_addf(&out, "%g %% of it", 100 * p->margin_fraction);
	else
		frag_text_add(&out, size_text(p->margin, b));
	if (p->cli->limit)
		frag_text_addf(&out, "; limit %s", p->cli->limit);
	frag_text_addf(&out, "; seed %llu\n", (unsigned long long)p->cli->seed);
	policies_table(p, &out);
	frag_text_add(&out, "\n");
	gpus_table(p, &out);
	if (p->units.count > 1)
		frag_text_add(&out, "\n");
	spread_lines(p, &out);
	never_lines(p, &out);
	for (size_t r = 0; r < p->rows_count; r++)
		gap_lines(p, &p->rows[r], &out);
	rc = frag_text_check(&out, err);
	if (!rc)
		fputs(frag_text_str(&out), stdout);
	frag_text_release(&out);
	return rc;
}

/* ---- JSON ------------------------------------------------------------------------ */

/* A number, or null where it is not known. */
static json_t *number_if(bool known, uint64_t n)
{
	return known ? json_integer((json_int_t)n) : json_null();
}

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
	return json_pack("{s:s, s:i, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I, s:o, s:I}", "trace",
			 unit->trace->name, "device_ordinal", (int)unit->dev->ordinal, "policy",
			 frag_policy_spec_echo(task->spec), "complete", f->complete, "possible",
			 f->possible, "min_capacity_bytes", number_if(known, f->min_capacity_bytes),
			 "safe_capacity_bytes", number_if(known, f->safe_capacity_bytes),
			 "ample_capacity_bytes", number_if(known, f->ample_capacity_bytes),
			 "peak_reserved_bytes",
			 number_if(f->peak_reserved_bytes, f->peak_reserved_bytes), "gaps_count",
			 (json_int_t)f->gaps_seen, "gaps", gaps, "probes_count",
			 (json_int_t)f->probes_count);
}

static json_t *row_json(const struct frag_fit_page *p, const struct frag_fit_row *row)
{
	bool known = row->complete && row->possible;
	json_t *fits = json_array(), *units = json_array();

	for (size_t g = 0; g < p->gpus_count; g++)
		if (row->gpus >> g & 1)
			json_array_append_new(fits, json_string(p->gpus[g]->name));
	for (size_t i = 0; i < p->units.count; i++)
		json_array_append_new(units, unit_json(&p->units.list[i], &row->tasks[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "policy", row->text, "params",
			 row_name(row), "min_capacity_bytes", number_if(known, row->min_bytes),
			 "safe_capacity_bytes", number_if(known, row->safe_bytes),
			 "ample_capacity_bytes", number_if(known, row->ample_bytes), "fits", fits,
			 "complete", row->complete, "traces", units);
}

static json_t *gpus_json(const struct frag_fit_page *p)
{
	json_t *list = json_array();

	for (size_t g = 0; g < p->gpus_count; g++) {
		size_t r = p->rows[0].gpus >> g & 1 ? 0 : best_row(p, g);

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:o}", "name",
					p->gpus[g]->name, "label", p->gpus[g]->label, "total_bytes",
					(json_int_t)p->gpus[g]->total_bytes, "context_bytes",
					(json_int_t)p->gpus[g]->context_bytes, "source",
					p->gpus[g]->source, "answer",
					r == SIZE_MAX ? "does not fit"
					: r == 0      ? "fits"
						      : "fits with another policy",
					"policy",
					r == SIZE_MAX ? json_null()
						      : json_string(row_name(&p->rows[r]))));
	}
	return list;
}

static int write_json(const struct frag_fit_page *p, struct frag_err *err)
{
	json_t *root = frag_cli_json_head(p->cli), *results = json_array(), *traces = json_array();
	bool complete = true;

	for (size_t r = 0; r < p->rows_count; r++) {
		complete &= p->rows[r].complete;
		json_array_append_new(results, row_json(p, &p->rows[r]));
	}
	for (size_t i = 0; i < p->units.count; i++)
		json_array_append_new(traces, json_string(p->units.list[i].label));
	json_object_set_new(root, "traces", traces);
	json_object_set_new(root, "context_bytes",
			    json_integer((json_int_t)p->cli->card.context_bytes));
	json_object_set_new(root, "margin_bytes", json_integer((json_int_t)p->margin));
	json_object_set_new(root, "margin_ratio", json_real(p->margin_fraction));
	json_object_set_new(root, "seed", json_integer((json_int_t)p->cli->seed));
	json_object_set_new(root, "complete", json_boolean(complete));
	json_object_set_new(root, "results", results);
	json_object_set_new(root, "gpus", gpus_json(p));
	return frag_cli_json_write(p->cli, root, err);
}

/* ---- CSV ------------------------------------------------------------------------- */

static int write_csv(const struct frag_fit_page *p, struct frag_err *err)
{
	struct frag_text out = { 0 };
	int rc;

	frag_text_add(&out, "policy,trace,device,min_capacity_bytes,safe_capacity_bytes,"
			    "ample_capacity_bytes,peak_reserved_bytes,gaps_count,fits\n");
	for (size_t r = 0; r < p->rows_count; r++) {
		for (size_t i = 0; i < p->units.count; i++) {
			const struct frag_fit_task *task = &p->rows[r].tasks[i];
			const struct frag_fit *f = &task->fit;
			bool known = f->complete && f->possible;

			frag_text_add_csv(&out, frag_policy_spec_echo(task->spec));
			frag_text_add(&out, ",");
			frag_text_add_csv(&out, p->units.list[i].trace->name);
			frag_text_addf(&out, ",%u", p->units.list[i].dev->ordinal);
			frag_text_addf(&out, known ? ",%llu,%llu,%llu" : ",,,",
				       (unsigned long long)f->min_capacity_bytes,
				       (unsigned long long)f->safe_capacity_bytes,
				       (unsigned long long)f->ample_capacity_bytes);
			frag_text_addf(&out, f->peak_reserved_bytes ? ",%llu" : ",",
				       (unsigned long long)f->peak_reserved_bytes);
			frag_text_addf(&out, known ? ",%zu," : ",,", f->gaps_seen);
			for (size_t g = 0, n = 0; g < p->gpus_count; g++)
				if (task->gpus >> g & 1)
					frag_text_addf(&out, "%s%s", n++ ? " " : "",
						       p->gpus[g]->name);
			frag_text_add(&out, "\n");
		}
	}
	rc = frag_text_check(&out, err);
	if (!rc)
		rc = frag_outfile_put(p->cli->csv, frag_text_str(&out), out.len, err);
	frag_text_release(&out);
	return rc;
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
	uint64_t any = 0;

	for (size_t r = 0; r < p->rows_count; r++) {
		missing += !p->rows[r].complete;
		any |= p->rows[r].gpus;
	}
	if (missing) {
		frag_cli_note(p->cli, "interrupted: %zu of %zu policies are missing", missing,
			      p->rows_count);
		return frag_code_exit(FRAG_EINTR);
	}
	return any ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}
