/* SPDX-License-Identifier: Apache-2.0 */
/* tune: tables, the line to export, JSON, CSV. */
#include "tune_print.h"

#include <string.h>

#include <frag/opt.h>
#include <frag/torch.h>

#include "answer/table.h"

static const char *const objective_name[] = { "peak", "card", "time" };

/* ---- text ------------------------------------------------------------------------ */

static void add_columns(struct frag_table *t, const struct frag_tune_show *show)
{
	static const struct frag_table_column setting = { "setting", "", true, "" };
	static const struct frag_table_column refused = { "refused", "", false, "" };
	static const struct frag_table_column numbers[] = {
		{ "reserved", "", false, "" },
		{ "against baseline", "%", false, "" },
		{ "driver time", "", false, "" },
	};
	static const struct frag_table_column card = { "smallest card", "", false, "" };

	frag_table_column(t, &setting);
	if (show->refused)
		frag_table_column(t, &refused);
	frag_table_columns(t, numbers, FRAG_ARRAY_LEN(numbers));
	if (show->objective == FRAG_TUNE_CARD)
		frag_table_column(t, &card);
}

static void add_row(struct frag_table *table, const struct frag_tune_show *show,
		    const struct frag_tune *t, size_t i)
{
	const struct frag_tune_try *a = &t->tries[i], *base = &t->tries[t->baseline];
	FRAG_AUTO(frag_text_release) struct frag_text time = { 0 };

	frag_table_cell(table, "%s%s", a->params, i == t->baseline ? " (baseline)" : "");
	if (show->refused && a->completed)
		frag_table_cell(table, "%llu", (unsigned long long)a->refused_count);
	else if (show->refused)
		frag_table_cell(table, "-");
	if (!a->completed) {
		frag_table_cell(table, "out of memory");
		frag_table_cell(table, "-");
		frag_table_cell(table, "-");
		if (show->objective == FRAG_TUNE_CARD)
			frag_table_cell(table, "-");
		return;
	}
	frag_text_add_ns(&time, a->driver_ns);
	frag_table_cell(table, "%s", FRAG_BYTES(a->peak_reserved_bytes));
	if (base->completed && base->peak_reserved_bytes)
		frag_table_cell(table, "%+.1f",
				100.0 * (double)a->peak_reserved_bytes /
						(double)base->peak_reserved_bytes -
					100.0);
	else
		frag_table_cell(table, "-");
	frag_table_cell(table, "%s", frag_text_str(&time));
	if (show->objective == FRAG_TUNE_CARD)
		frag_table_cell(table, "%s", FRAG_BYTES(a->capacity_bytes));
}

/* " for PyTorch 2.5 to 2.7": whose settings these are; nothing where it is not known. */
static void add_releases(const struct frag_tune_show *show, struct frag_text *out)
{
	char first[16], last[16];

	if (!show->last_release)
		return;
	frag_text_addf(out, " for PyTorch %s",
		       frag_torch_format(show->first_release, first, sizeof(first)));
	if (show->first_release != show->last_release)
		frag_text_addf(out, " to %s",
			       frag_torch_format(show->last_release, last, sizeof(last)));
}

static void head_lines(const struct frag_tune_show *show, const struct frag_tune *t,
		       struct frag_text *out)
{
	bool of_card = show->objective == FRAG_TUNE_CARD, recorded = false;

	frag_text_addf(out, "# cufrag %s tune:", FRAG_VERSION);
	for (size_t i = 0; i < show->units->units_count; i++) {
		const struct frag_unit *unit = &show->units->units[i];

		frag_text_addf(out, "%s %s", i ? "," : "", unit->label);
		recorded |= !of_card && frag_target_keeps_limit(&show->cli->target, unit->dev);
	}
	frag_text_addf(
		out,
		"%s\n# objective %s, limit %s; %zu settings tried: the baseline and %s %llu "
		"(seed %llu)\n",
		frag_cli_estimate_word(show->cli->estimated), objective_name[show->objective],
		show->cap		       ? FRAG_BYTES(show->cap)
		: show->cli->target.limit.text ? show->cli->target.limit.text
		: recorded		       ? "of the recording"
					       : "none",
		t->tries_count, t->exhaustive ? "all that differ of" : "a search among",
		(unsigned long long)t->space_count, (unsigned long long)show->cli->target.seed);
	frag_cli_units_say(show->units, &show->cli->target,
			   of_card ? "not applied: what is looked for is a card without it"
				   : "it holds for every setting",
			   out);
}

/* The simplest setting that comes within 1 % of the best, if that is simpler: fewer options to
 * explain, and less that depends on this one trace. */
static void simpler(const struct frag_tune_show *show, const struct frag_tune *t,
		    struct frag_text *out)
{
	const struct frag_tune_try *best = &t->tries[0], *found = best;

	if (show->objective != FRAG_TUNE_PEAK || !t->baseline)
		return;
	for (size_t i = 1; i < t->tries_count; i++) {
		const struct frag_tune_try *a = &t->tries[i];

		if (a->completed && a->refused_count <= best->refused_count && i != t->baseline &&
		    a->changed_count < found->changed_count &&
		    (double)a->peak_reserved_bytes < 1.01 * (double)best->peak_reserved_bytes)
			found = a;
	}
	if (found == best)
		return;
	frag_text_addf(out, "%sWithin 1 %% of that with fewer options: %s, ",
		       best->conf ? "\n" : "",
		       found->conf && *found->conf ? found->conf : found->params);
	frag_text_add_bytes(out, found->peak_reserved_bytes);
	frag_text_add(out, "\n");
}

/* The answer in one sentence, and what to do. */
static void answer(const struct frag_tune_show *show, const struct frag_tune *t,
		   struct frag_text *out)
{
	const struct frag_tune_try *best = &t->tries[0], *base = &t->tries[t->baseline];
	char a[32], b[32];

	if (!best->completed) {
		frag_text_add(out, "No setting completes: the trace needs a larger card or "
				   "limit.\n");
		return;
	}
	frag_format_bytes(best->peak_reserved_bytes, a, sizeof(a));
	frag_format_bytes(base->peak_reserved_bytes, b, sizeof(b));
	if (!t->baseline)
		frag_text_addf(out, "Nothing tried is better than %s: it reserves %s", base->params,
			       a);
	else if (!base->completed)
		frag_text_addf(out, "%s completes, reserving %s; %s runs out of memory",
			       best->params, a, base->params);
	else
		frag_text_addf(out, "%s reserves %s instead of %s (%+.1f %%)", best->params, a, b,
			       100.0 * (double)best->peak_reserved_bytes /
					       (double)base->peak_reserved_bytes -
				       100.0);
	if (show->refused) {
		frag_text_addf(out,
			       "; it refuses %llu of the requests that were refused when recorded",
			       (unsigned long long)best->refused_count);
		if (t->baseline && base->completed)
			frag_text_addf(out, ", %s %llu", base->params,
				       (unsigned long long)base->refused_count);
	}
	frag_text_add(out, ".\n");
	if (show->objective == FRAG_TUNE_TIME && t->baseline && base->completed) {
		frag_text_add(out, "Driver time: ");
		frag_text_add_ns(out, best->driver_ns);
		frag_text_add(out, " instead of ");
		frag_text_add_ns(out, base->driver_ns);
		frag_text_add(out, ".\n");
	}
	if (show->objective == FRAG_TUNE_CARD)
		frag_text_addf(out, "Smallest card: %s instead of %s.\n",
			       FRAG_BYTES(best->capacity_bytes),
			       base->completed ? FRAG_BYTES(base->capacity_bytes) : "none");
	if (best->conf && *best->conf) {
		frag_text_add(out, "\n    export PYTORCH_CUDA_ALLOC_CONF=");
		frag_text_add_shell(out, best->conf);
		if (show->last_release)
			frag_text_add(out, "   #");
		add_releases(show, out);
		frag_text_add(out, "\n");
	} else if (best->conf)
		frag_text_add(out, "\n    unset PYTORCH_CUDA_ALLOC_CONF\n");
	simpler(show, t, out);
}

/* Does an earlier try do the same to the byte and the nanosecond? Then it adds nothing. */
static bool repeats(const struct frag_tune *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (t->tries[k].completed == t->tries[i].completed &&
		    t->tries[k].peak_reserved_bytes == t->tries[i].peak_reserved_bytes &&
		    t->tries[k].driver_ns == t->tries[i].driver_ns)
			return true;
	return false;
}

static int print_text(const struct frag_tune_show *show, const struct frag_tune *t,
		      struct frag_err *err)
{
	static const char *const spare[] = { "driver time", "against baseline", NULL };
	FRAG_AUTO(frag_table_release) struct frag_table ranks = { 0 }, front = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	uint64_t shown = 0;
	bool base = false;

	head_lines(show, t, &out);
	if (t->tries_count) {
		answer(show, t, &out);
		add_columns(&ranks, show);
		add_columns(&front, show);
		ranks.room = front.room = frag_term_room(stdout);
		ranks.spare = front.spare = spare;
		for (size_t i = 0; i < t->tries_count && shown < show->top; i++) {
			if (repeats(t, i) && i != t->baseline)
				continue;
			add_row(&ranks, show, t, i);
			base |= i == t->baseline;
			shown++;
		}
		if (!base)
			add_row(&ranks, show, t, t->baseline);
		for (size_t i = 0; i < t->front_count; i++)
			add_row(&front, show, t, t->front[i]);
		frag_text_add(&out, "\n");
		frag_table_print(&ranks, &out);
		frag_text_add(&out, "\nreserved against driver time: no other setting has less of "
				    "both\n");
		frag_table_print(&front, &out);
	}
	return frag_text_show(&out, err);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *try_json(const struct frag_tune_show *show, const struct frag_tune_try *a)
{
	json_t *o = json_pack(
		"{s:s, s:s, s:o, s:b, s:o, s:o, s:o}", "policy", a->text, "params", a->params,
		"conf", a->conf ? json_string(a->conf) : json_null(), "completed", a->completed,
		"peak_reserved_bytes",
		a->completed ? json_integer((json_int_t)a->peak_reserved_bytes) : json_null(),
		"modelled_ns", a->completed ? json_integer((json_int_t)a->driver_ns) : json_null(),
		"refused_count",
		a->completed ? json_integer((json_int_t)a->refused_count) : json_null());

	if (show->objective == FRAG_TUNE_CARD)
		json_object_set_new(o, "min_capacity_bytes",
				    a->completed ? json_integer((json_int_t)a->capacity_bytes)
						 : json_null());
	return o;
}

static json_t *releases_json(const struct frag_tune_show *show)
{
	char first[16], last[16];

	if (!show->last_release)
		return json_null();
	return json_pack("[s, s]", frag_torch_format(show->first_release, first, sizeof(first)),
			 frag_torch_format(show->last_release, last, sizeof(last)));
}

static int write_json(const struct frag_tune_show *show, const struct frag_tune *t,
		      struct frag_err *err)
{
	json_t *root = frag_cli_json_head(show->cli), *tries = json_array(), *front = json_array(),
	       *traces = json_array();

	for (size_t i = 0; i < show->units->units_count; i++)
		json_array_append_new(traces, json_string(show->units->units[i].label));
	for (size_t i = 0; i < t->tries_count; i++)
		json_array_append_new(tries, try_json(show, &t->tries[i]));
	for (size_t i = 0; i < t->front_count; i++)
		json_array_append_new(front, try_json(show, &t->tries[t->front[i]]));
	json_object_set_new(root, "traces", traces);
	json_object_set_new(root, "recordings", frag_cli_units_json(show->units));
	json_object_set_new(root, "torch", releases_json(show));
	json_object_set_new(root, "objective", json_string(objective_name[show->objective]));
	json_object_set_new(root, "seed", json_integer((json_int_t)show->cli->target.seed));
	json_object_set_new(root, "budget", json_integer((json_int_t)show->budget));
	json_object_set_new(root, "cap_bytes",
			    show->cap ? json_integer((json_int_t)show->cap) : json_null());
	json_object_set_new(root, "complete", json_boolean(t->complete));
	json_object_set_new(root, "exhaustive", json_boolean(t->exhaustive));
	json_object_set_new(root, "space_count", json_integer((json_int_t)t->space_count));
	json_object_set_new(root, "tried_count", json_integer((json_int_t)t->tries_count));
	json_object_set_new(root, "best",
			    t->tries_count ? try_json(show, &t->tries[0]) : json_null());
	json_object_set_new(root, "baseline",
			    t->tries_count ? try_json(show, &t->tries[t->baseline]) : json_null());
	json_object_set_new(root, "front", front);
	json_object_set_new(root, "tried", tries);
	return frag_cli_json_write(show->cli, root, err);
}

/* ---- CSV ------------------------------------------------------------------------- */

static int write_csv(const struct frag_tune_show *show, const struct frag_tune *t,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_text_add(&out, "rank,params,completed,peak_reserved_bytes,modelled_ns,front,refused_"
			    "count\n");
	for (size_t i = 0; i < t->tries_count; i++) {
		const struct frag_tune_try *a = &t->tries[i];
		bool in_front = false;

		for (size_t k = 0; k < t->front_count; k++)
			in_front |= t->front[k] == i;
		frag_text_addf(&out, "%zu,", i + 1);
		frag_text_add_csv(&out, a->params);
		frag_text_addf(&out, a->completed ? ",1,%llu,%llu,%d,%llu\n" : ",0,,,0,\n",
			       (unsigned long long)a->peak_reserved_bytes,
			       (unsigned long long)a->driver_ns, in_front,
			       (unsigned long long)a->refused_count);
	}
	return frag_text_put(&out, show->cli->csv, err);
}

int frag_tune_print(struct frag_tune_show *show, const struct frag_tune *t, struct frag_err *err)
{
	const char *json = show->cli->json, *csv = show->cli->csv;

	for (size_t i = 0; i < t->tries_count; i++)
		show->refused |= t->tries[i].completed && t->tries[i].refused_count;
	if (json)
		FRAG_TRY(write_json(show, t, err));
	if (csv)
		FRAG_TRY(write_csv(show, t, err));
	if ((!json || strcmp(json, "-") != 0) && (!csv || strcmp(csv, "-") != 0))
		return print_text(show, t, err);
	return 0;
}
