/* SPDX-License-Identifier: Apache-2.0 */
/* plan: table of placements, JSON, CSV. */
#include "plan_print.h"

#include <string.h>

#include <frag/opt.h>

#include "base/term.h"
#include "answer/json.h"
#include "answer/table.h"

static double over(uint64_t height, uint64_t bound)
{
	return bound ? (double)height / (double)bound : 1;
}

static void print_steps(const struct frag_plan_sheet *s, const char *plan_path,
			struct frag_text *out)
{
	const struct frag_step_plan *p = &s->steps;
	const char *what = p->windows ? "windows" : "steps";

	frag_text_addf(out, "\nplan of %u of %u %s: ", p->trained_count, p->steps_count, what);
	if (p->windows)
		frag_text_add(out, "the trace marks too few steps, or windows were asked for, so "
				   "it is of the beginning only; ");
	else if (p->period)
		frag_text_addf(out, "period %u, %.1f %% of a step is in an earlier one; ",
			       p->period, 100 * p->similarity);
	else
		frag_text_addf(out,
			       "they do not repeat (%.1f %% of a step is in an earlier one), so "
			       "it is of the beginning only; ",
			       100 * p->similarity);
	frag_text_addf(out, "%zu requests in ", p->requests_count);
	frag_text_add_bytes(out, p->height_bytes);
	frag_text_addf(out,
		       " (%.4f of their load)\n    cufrag replay TRACE --policy planned:plan=%s\n",
		       over(p->height_bytes, p->bound_bytes), plan_path);
}

static void print_sheet(const struct frag_plan_sheet *s, const char *plan_path,
			struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "placement", "", true, "" }, { "height", "", false, "" },
		{ "bytes", "", false, "" },    { "of the bound", "", false, "" },
		{ "time", "", false, "" },
	};
	struct frag_table t = { 0 };
	static const char *const spare[] = { "bytes", "time", NULL };

	frag_text_addf(out, "# cufrag %s plan: %s, %zu buffers, aligned to %llu%s\n", FRAG_VERSION,
		       s->unit->label, s->b.count, (unsigned long long)s->align,
		       frag_cli_estimate_word(s->unit->trace->estimate));
	frag_text_addf(out, "load lower bound: %llu (%s), first at event %llu\n\n",
		       (unsigned long long)s->bound, FRAG_BYTES(s->bound),
		       (unsigned long long)s->when);
	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	if (!s->methods_count) {
		frag_text_add(out, "interrupted before the first placement\n");
		return;
	}
	for (size_t i = 0; i < s->methods_count; i++) {
		const struct frag_plan_method *m = &s->methods[i];
		struct frag_text time = { 0 };

		frag_text_add_ns(&time, m->ns);
		frag_table_cell(&t, "%s", m->name);
		frag_table_cell(&t, "%s", FRAG_BYTES(m->height));
		frag_table_cell(&t, "%llu", (unsigned long long)m->height);
		frag_table_cell(&t, "%.5f", over(m->height, s->bound));
		frag_table_cell(&t, "%s", frag_text_str(&time));
		frag_text_release(&time);
	}
	t.spare = spare;
	t.room = frag_term_room(stdout);
	frag_table_print(&t, out);
	frag_table_release(&t);
	frag_text_addf(out, "\nbest: %llu, %.5f of the bound; every placement was checked\n",
		       (unsigned long long)s->best, over(s->best, s->bound));
	if (s->best <= s->bound)
		frag_text_add(out, "optimal: no placement is lower than the load\n");
	else if (s->searched && s->answer == FRAG_SEARCH_NONE)
		frag_text_addf(out, "proved: no placement is as low as %llu\n",
			       (unsigned long long)s->target);
	if (!s->complete)
		frag_text_add(out, "interrupted: this is what was found until then\n");
	if (s->steps.requests_count)
		print_steps(s, plan_path, out);
}

/* Several traces or devices: the one that needs most decides. */
static void print_worst(const struct frag_plan_sheet *sheets, size_t count, struct frag_text *out)
{
	const struct frag_plan_sheet *worst = &sheets[0];
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (!sheets[i].methods_count)
			return;
		least = FRAG_MIN(least, sheets[i].best);
		if (sheets[i].best > worst->best)
			worst = &sheets[i];
	}
	frag_text_addf(out, "\nall %zu: %s to %s, most in %s\n", count, FRAG_BYTES(least),
		       FRAG_BYTES(worst->best), worst->unit->label);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *sheet_json(const struct frag_plan_sheet *s)
{
	json_t *methods = json_array(), *o;

	for (size_t i = 0; i < s->methods_count; i++)
		json_array_append_new(
			methods, json_pack("{s:s, s:I, s:f, s:I}", "method", s->methods[i].name,
					   "height_bytes", (json_int_t)s->methods[i].height,
					   "over_bound_ratio", over(s->methods[i].height, s->bound),
					   "host_ns", (json_int_t)s->methods[i].ns));
	o = json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b, s:b, s:b, s:b, s:I, s:o}",
		      "trace", s->unit->trace->name, "device_ordinal", (int)s->unit->dev->ordinal,
		      "buffers_count", (json_int_t)s->b.count, "align_bytes", (json_int_t)s->align,
		      "lower_bound_bytes", (json_int_t)s->bound, "bound_event", (json_int_t)s->when,
		      "target_bytes", (json_int_t)s->target, "best_bytes",
		      frag_json_if(s->methods_count, s->best), "over_bound_ratio",
		      s->methods_count ? json_real(over(s->best, s->bound)) : json_null(),
		      "checked", true, "complete", s->complete, "proved_optimal",
		      s->best <= s->bound, "target_impossible",
		      s->searched && s->answer == FRAG_SEARCH_NONE, "nodes_count",
		      (json_int_t)s->nodes, "methods", methods);
	if (s->steps.requests_count)
		json_object_set_new(o, "plan",
				    json_pack("{s:i, s:i, s:b, s:i, s:f, s:I, s:I, s:I, s:I}",
					      "steps_count", (int)s->steps.steps_count,
					      "trained_count", (int)s->steps.trained_count,
					      "windows", s->steps.windows, "period",
					      (int)s->steps.period, "similarity_ratio",
					      s->steps.similarity, "requests_count",
					      (json_int_t)s->steps.requests_count, "height_bytes",
					      (json_int_t)s->steps.height_bytes,
					      "lower_bound_bytes", (json_int_t)s->steps.bound_bytes,
					      "reserve_bytes", (json_int_t)s->steps.reserve_bytes));
	return o;
}

static int write_json(const struct frag_cli *cli, const struct frag_recordings *units,
		      const struct frag_plan_sheet *sheets, size_t count, bool complete,
		      struct frag_err *err)
{
	json_t *root = frag_cli_json_head(cli), *results = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(results, sheet_json(&sheets[i]));
	json_object_set_new(root, "recordings", frag_cli_units_json(units));
	json_object_set_new(root, "seed", json_integer((json_int_t)cli->target.seed));
	json_object_set_new(root, "complete", json_boolean(complete));
	json_object_set_new(root, "results", results);
	return frag_cli_json_write(cli, root, err);
}

/* ---- CSV ------------------------------------------------------------------------- */

static int write_csv(const struct frag_cli *cli, const struct frag_plan_sheet *sheets, size_t count,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_text_add(&out, "trace,device,buffers_count,lower_bound_bytes,method,height_bytes\n");
	for (size_t i = 0; i < count; i++) {
		const struct frag_plan_sheet *s = &sheets[i];

		for (size_t k = 0; k < s->methods_count; k++) {
			frag_text_add_csv(&out, s->unit->trace->name);
			frag_text_addf(&out, ",%u,%zu,%llu,", s->unit->dev->ordinal, s->b.count,
				       (unsigned long long)s->bound);
			frag_text_add_csv(&out, s->methods[k].name);
			frag_text_addf(&out, ",%llu\n", (unsigned long long)s->methods[k].height);
		}
	}
	return frag_text_put(&out, cli->csv, err);
}

int frag_plan_write_placement(const struct frag_plan_sheet *s, const char *path,
			      struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fputs("id,lower,upper,size,offset\n", out.to);
	for (size_t i = 0; i < s->b.count; i++) {
		const struct frag_buffer *x = &s->b.list[i];

		fprintf(out.to, "%zu,%llu,%llu,%llu,%llu\n", i, (unsigned long long)x->lower,
			(unsigned long long)x->upper, (unsigned long long)x->bytes,
			(unsigned long long)s->best_offsets[i]);
	}
	return frag_outfile_commit(&out, err);
}

/* ---- all of them ----------------------------------------------------------------- */

static int print_text(const struct frag_cli *cli, const struct frag_recordings *units,
		      const char *plan_path, const struct frag_plan_sheet *sheets, size_t count,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_cli_units_say(units, &cli->target, "a placement asks for no limit", &out);

	for (size_t i = 0; i < count; i++) {
		if (i)
			frag_text_add(&out, "\n");
		print_sheet(&sheets[i], plan_path, &out);
	}
	if (count > 1)
		print_worst(sheets, count, &out);
	return frag_text_show(&out, err);
}

int frag_plan_print(const struct frag_cli *cli, const struct frag_recordings *units,
		    const char *plan_path, const struct frag_plan_sheet *sheets, size_t count,
		    bool complete, struct frag_err *err)
{
	const char *json = cli->json, *csv = cli->csv;

	if (json)
		FRAG_TRY(write_json(cli, units, sheets, count, complete, err));
	if (csv)
		FRAG_TRY(write_csv(cli, sheets, count, err));
	if ((!json || strcmp(json, "-") != 0) && (!csv || strcmp(csv, "-") != 0))
		return print_text(cli, units, plan_path, sheets, count, err);
	return 0;
}
