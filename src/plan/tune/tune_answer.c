/* SPDX-License-Identifier: Apache-2.0 */
/* The best settings as an answer: the line, runners-up, the trade-off; see tune_recordings.h. */
#include <math.h>
#include <string.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "recording/settled_shape.h"
#include "tune_recordings.h"

#include "answer/draw/plot_values.h"

#define LEAST_GAIN 0.01

/* ---- one setting ----------------------------------------------------------------- */

#define SETTING(F, P, S) \
	F(S, COUNT, rank, i + 1, NULL, "1 = the best") \
	F(S, TEXT, policy, x->text, NULL, "what --policy takes") \
	F(S, TEXT, params, x->params, NULL, "with all its options") \
	P(S, TEXT, shown, \
	  i != t->found.baseline ? x->params : frag_answer_print(a, "%s (baseline)", x->params), \
	  "setting", "the policy and its options") \
	F(S, TEXT, conf, x->conf, NULL, \
	  "as PYTORCH_CUDA_ALLOC_CONF; null where PyTorch has no such setting") \
	F(S, BOOL, completed, x->completed, NULL, "every trace came to its end") \
	F(S, COUNT, refused_count, x->refused_count | none, "refused", \
	  "requests that were refused when recorded, and here again", .if_any = true) \
	F(S, BYTES, peak_reserved_bytes, x->peak_reserved_bytes | none, "reserved", \
	  "peak of the worst trace", .none = "out of memory") \
	F(S, RATIO, against_baseline_ratio, \
	  x->completed && base->completed && base->peak_reserved_bytes && \
			  frag_tuning_reproduces(t) \
		  ? (double)x->peak_reserved_bytes / (double)base->peak_reserved_bytes - 1 \
		  : NAN, \
	  "against baseline", "reserved / that of the baseline - 1", .unit = "%", .precision = 1, \
	  .sign = true, .spare = 2) \
	F(S, NS, modelled_ns, x->driver_ns | none, "driver time", \
	  "modelled driver time of all traces", .spare = 1) \
	F(S, BYTES, min_capacity_bytes, \
	  t->options.objective == FRAG_TUNE_CARD ? x->capacity_bytes | none : UINT64_MAX, \
	  "smallest card", "with --objective card", .if_any = true) \
	F(S, BOOL, front, front, NULL, "no other setting reserves less and takes less driver time")
FRAG_VALUED_ROW(setting, "setting", SETTING, "one setting that was tried");

/* ---- all of it ------------------------------------------------------------------- */

#define TUNE_ROW(F, P, S) \
	F(S, TEXTS, traces, frag_unit_labels(a, &t->units), NULL, \
	  "names of all devices of all traces") \
	F(S, LIST, recordings, frag_recorded_unit_rows(a, &t->units), NULL, \
	  "results of each recording", .of = &frag_recorded_unit_shape) \
	F(S, TEXTS, torch, frag_release_rows(a, t->first_release, t->last_release), NULL, \
	  "first and last release of PyTorch that may have made them; empty: not known") \
	F(S, TEXT, objective, objectives[t->options.objective], NULL, "peak, card or time") \
	F(S, COUNT, seed, t->target->seed, NULL, "of random choices") \
	F(S, COUNT, budget, f->budget, NULL, "settings to try in each space") \
	F(S, BYTES, cap_bytes, t->cap_bytes ?: UINT64_MAX, NULL, "of --cap") \
	F(S, BYTES, recorded_peak_bytes, t->recorded_peak_bytes ?: UINT64_MAX, NULL, \
	  "most reserved when recorded, of the worst trace; null: not known, or a what-if") \
	F(S, BOOL, reproduced, frag_tuning_reproduces(t), NULL, \
	  "the baseline reserves that; else against_baseline_ratio is null") \
	F(S, BOOL, complete, f->complete, NULL, "the search was not interrupted") \
	F(S, BOOL, exhaustive, f->exhaustive, NULL, "every setting was tried") \
	F(S, COUNT, space_count, f->space_count, NULL, "settings in the search space") \
	F(S, COUNT, tried_count, f->tries_count, NULL, "settings tried") \
	F(S, OBJECT, best, any ? &rows[0] : NULL, NULL, "the best setting", .of = &setting_shape) \
	F(S, OBJECT, pick, any ? &rows[simpler] : NULL, NULL, \
	  "the one to take: `simpler`, else `best`", .of = &setting_shape) \
	F(S, OBJECT, baseline, any ? &rows[f->baseline] : NULL, NULL, \
	  "the setting that it is compared with", .of = &setting_shape) \
	F(S, OBJECT, simpler, simpler ? &rows[simpler] : NULL, NULL, \
	  "the fewest options within 1 % of the best; null: the best itself", \
	  .of = &setting_shape) \
	F(S, LIST, front, FRAG_ROWS(fronts, f->front_count), NULL, \
	  "settings that no other beats in both reserved memory and driver time", \
	  .of = &setting_shape) \
	F(S, LIST, tried, FRAG_ROWS(rows, f->tries_count), NULL, "all settings, the best first", \
	  .of = &setting_shape)
FRAG_VALUED_ROW_AS(, frag_tune_shape, tune, "tune", TUNE_ROW,
		   "the settings that serve a trace best");

static int fill(const struct frag_tuning *t, struct tune *out, struct frag_answer *a,
		struct frag_err *err)
{
	static const char *const objectives[] = { "peak", "card", "time" };
	const struct frag_tune *f = &t->found;
	struct setting *rows = frag_answer_new(a, f->tries_count, sizeof(*rows));
	struct setting *fronts = frag_answer_new(a, f->front_count, sizeof(*fronts));
	bool any = f->tries_count > 0;
	size_t simpler = any && t->options.objective == FRAG_TUNE_PEAK ? frag_tune_pick(f) : 0;

	FRAG_CHECK_ALLOC(rows && fronts, "answer", err);
	for (size_t i = 0; i < f->tries_count; i++) {
		const struct frag_tune_try *x = &f->tries[i], *base = &f->tries[f->baseline];
		uint64_t none = x->completed ? 0 : UINT64_MAX;
		bool front = false;

		for (size_t k = 0; k < f->front_count; k++)
			front |= f->front[k] == i;
		rows[i] = FRAG_ROW_VALUES(setting, SETTING);
	}
	for (size_t i = 0; i < f->front_count; i++)
		fronts[i] = rows[f->front[i]];
	*out = FRAG_ROW_VALUES(tune, TUNE_ROW);
	frag_answer_data(a, &frag_tune_shape, out);
	frag_answer_csv(a, &setting_shape, rows, f->tries_count);
	return 0;
}

/* ---- sentences ------------------------------------------------------------------- */

static void remarks(const struct frag_tuning *t, const struct tune *out, struct frag_answer *a)
{
	bool of_card = t->options.objective == FRAG_TUNE_CARD, recorded = false;

	for (size_t i = 0; i < t->units.units_count; i++)
		recorded |= !of_card && frag_target_keeps_limit(t->target, t->units.units[i].dev);
	frag_recordings_head(a, "tune", &t->units);
	frag_answer_remark(
		a,
		"objective %s, limit %s; %zu settings tried: the baseline and %s %llu (seed %llu)",
		out->objective,
		t->cap_bytes		? FRAG_BYTES(t->cap_bytes)
		: t->target->limit.text ? t->target->limit.text
		: recorded		? "of the recording"
					: "none",
		t->found.tries_count, t->found.exhaustive ? "all that differ of" : "a search among",
		(unsigned long long)t->found.space_count, (unsigned long long)t->target->seed);
	frag_recordings_remark(a, &t->units, t->target,
			       of_card ? "not applied: the search is for a card without it"
				       : "it holds for every setting");
}

static void add_comparison(const struct frag_tuning *t, struct frag_text *out)
{
	const struct frag_tune_try *best = &t->found.tries[0];
	const struct frag_tune_try *base = &t->found.tries[t->found.baseline];
	bool compared = t->found.baseline && base->completed;

	if (best->refused_count || (compared && base->refused_count)) {
		frag_text_addf(out, "; it refuses %llu of the requests refused when recorded",
			       (unsigned long long)best->refused_count);
		if (compared)
			frag_text_addf(out, ", %s %llu", base->params,
				       (unsigned long long)base->refused_count);
	}
	if (t->options.objective == FRAG_TUNE_TIME && compared)
		frag_text_addf(out, "; %s in the driver instead of %s", FRAG_NS(best->driver_ns),
			       FRAG_NS(base->driver_ns));
	if (t->options.objective == FRAG_TUNE_CARD) {
		frag_text_addf(out, "; smallest card %s", FRAG_BYTES(best->capacity_bytes));
		if (compared)
			frag_text_addf(out, " instead of %s", FRAG_BYTES(base->capacity_bytes));
	}
}

/* Does it save 1 %, or what else is asked for? A smaller saving is none. */
static bool gains(const struct frag_tuning *t, const struct tune *out)
{
	const struct setting *best = out->pick, *base = out->baseline;

	return t->options.objective != FRAG_TUNE_PEAK || !base->completed ||
	       !frag_tuning_reproduces(t) || best->refused_count < base->refused_count ||
	       best->against_baseline_ratio <= -LEAST_GAIN;
}

static void conclude(const struct frag_tuning *t, const struct tune *out, struct frag_answer *a)
{
	const struct setting *best = out->pick, *base = out->baseline;
	FRAG_AUTO(frag_text_release) struct frag_text more = { 0 };

	if (!best->completed) {
		frag_answer_conclude(a, "no setting completes: the trace needs a larger card or "
					"limit");
		return;
	}
	add_comparison(t, &more);
	a->failed |= more.failed;
	if (!frag_tuning_reproduces(t))
		frag_answer_conclude(a, "with %s it reserves %s%s; %s", best->params,
				     FRAG_BYTES(best->peak_reserved_bytes), frag_text_str(&more),
				     frag_not_reproduced_text(a, t->recorded_peak_bytes,
							      base->peak_reserved_bytes));
	else if (!t->found.baseline || !gains(t, out))
		frag_answer_conclude(a, "nothing tried is better%s than %s, which reserves %s%s",
				     t->found.baseline ? " by 1 %" : "", base->params,
				     FRAG_BYTES(best->peak_reserved_bytes), frag_text_str(&more));
	else if (!base->completed)
		frag_answer_conclude(
			a, "with %s it completes and reserves %s; %s runs out of memory%s",
			best->params, FRAG_BYTES(best->peak_reserved_bytes), base->params,
			frag_text_str(&more));
	else
		frag_answer_conclude(a, "with %s it reserves %s instead of %s (%+.1f %%)%s",
				     best->params, FRAG_BYTES(best->peak_reserved_bytes),
				     FRAG_BYTES(base->peak_reserved_bytes),
				     100 * best->against_baseline_ratio, frag_text_str(&more));
}

/* Is it among the options of a setting, "policy:key=value,key:value"? */
static bool has_option(const struct setting *s, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = s->params; (at = strstr(at, key)); at += n)
		if (at > s->params && strchr(":,", at[-1]) && strchr(":=", at[n]))
			return true;
	return false;
}

/* A clause for each option that a setting names; but: explained before, or NULL. */
static void explain_options(struct frag_answer *a, const struct setting *s,
			    const struct setting *but)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	if (!s->completed || frag_policy_spec_parse(s->policy, &spec, NULL))
		return;
	for (const struct frag_opt *o = frag_policy_spec_ops(spec)->opts;
	     o && o->type != FRAG_OPT_T_END; o++)
		if (has_option(s, o->key) && !(but && has_option(but, o->key)))
			frag_answer_item(a, "%s: %s", o->key, o->help);
}

/* What a log's library calls it. */
static void say_own(const struct frag_tuning *t, const struct setting *best, struct frag_answer *a)
{
	size_t n;
	const struct frag_own_allocator *own =
		frag_own_allocators(t->units.units[0].trace->format, &n);
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	if (!own || !best->completed || frag_policy_spec_parse(best->policy, &spec, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *other = NULL;

		if (own[i].line && !frag_policy_spec_parse(own[i].policy, &other, NULL) &&
		    frag_policy_spec_ops(other) == frag_policy_spec_ops(spec))
			frag_answer_paste(a, "", own[i].line);
	}
}

/* What to type. */
static void say_export(const struct frag_tuning *t, const struct tune *out, struct frag_answer *a)
{
	const struct setting *best = out->pick, *top = out->best;
	const char *const *torch = out->torch.rows;
	FRAG_AUTO(frag_text_release) struct frag_text line = { 0 };

	if (!gains(t, out))
		return;
	if (best->completed && best->conf) {
		frag_text_addf(&line, "%s PYTORCH_CUDA_ALLOC_CONF%s",
			       *best->conf ? "export" : "unset", *best->conf ? "=" : "");
		if (*best->conf)
			frag_text_add_shell(&line, best->conf);
		if (*best->conf && out->torch.count)
			frag_text_addf(&line, "   # for PyTorch %s", torch[0]);
		if (*best->conf && t->first_release != t->last_release)
			frag_text_addf(&line, " to %s", torch[1]);
		a->failed |= line.failed;
		frag_answer_gap(a);
		frag_answer_paste(a, "", frag_text_str(&line));
		frag_answer_gap(a);
	}
	say_own(t, best, a);
	explain_options(a, best, NULL);
	if (!out->simpler)
		return;
	frag_answer_say(a, "with more options, but within 1 %% of that: %s, %s",
			top->conf && *top->conf ? top->conf : top->params,
			FRAG_BYTES(top->peak_reserved_bytes));
	explain_options(a, top, best);
}

/* ---- tables and chart ------------------------------------------------------------ */

/* The first `top` that differ, and the baseline. */
static struct frag_rows best_rows(const struct frag_tuning *t, const struct tune *out, size_t top,
				  struct frag_answer *a)
{
	const struct setting *all = out->tried.rows;
	size_t room = FRAG_MIN(top, out->tried.count) + 1, n = 0;
	struct setting *rows = frag_answer_new(a, room, sizeof(*rows));
	bool base = false;

	for (size_t i = 0; rows && i < out->tried.count && n < top; i++) {
		const struct frag_tune_try *x = t->found.tries;
		bool repeats = false;

		/* an earlier one does the same to the byte and nanosecond: nothing new */
		for (size_t k = 0; k < i && i != t->found.baseline; k++)
			repeats |= x[k].completed == x[i].completed &&
				   x[k].peak_reserved_bytes == x[i].peak_reserved_bytes &&
				   x[k].driver_ns == x[i].driver_ns;
		if (repeats)
			continue;
		rows[n++] = all[i];
		base |= i == t->found.baseline;
	}
	if (rows && !base)
		rows[n++] = all[t->found.baseline];
	return (struct frag_rows){ rows, n };
}

#define POINT(F, P, S) \
	F(S, COUNT, series, NULL, "number of the setting") \
	F(S, TEXT, name, NULL, "its options") \
	F(S, COUNT, completed, NULL, "1 = it completes") \
	F(S, COUNT, front, NULL, "1 = no other beats it in both") \
	F(S, BYTES, peak_reserved_bytes, NULL, "reserved") \
	F(S, NS, driver_ns, NULL, "modelled driver time") \
	F(S, BYTES, lower_bound_bytes, NULL, "0 = not drawn")
FRAG_ROW(point, "point", POINT, "one setting of the chart");
/* Those of the table and of the front. */
static void chart(const struct frag_rows *shown, const struct tune *out, struct frag_answer *a)
{
	const struct setting *table = shown->rows, *front = out->front.rows, *best = out->pick;
	size_t most = shown->count + out->front.count, n = 0;
	struct point *points = frag_answer_new(a, most, sizeof(*points));
	struct frag_plot_point *places = frag_answer_new(a, most, sizeof(*places));
	struct frag_text figures = { 0 };

	for (size_t i = 0; points && places && i < most; i++) {
		const struct setting *s = i < shown->count ? &table[i] : &front[i - shown->count];

		if (s->completed && (i < shown->count ? !s->front : true)) {
			points[n] = (struct point){
				n, s->shown, 1, s->front, s->peak_reserved_bytes, s->modelled_ns, 0
			};
			places[n++] =
				(struct frag_plot_point){ (double)s->modelled_ns,
							  (double)s->peak_reserved_bytes, true };
		}
	}
	if (!n)
		return;
	frag_plot_pareto(places, n, 0, false, &figures);
	frag_answer_chart(a,
			  &(struct frag_answer_chart){
				  .script = "pareto",
				  .base = "tune",
				  .extra = frag_answer_take(a, &figures),
				  .title = frag_answer_print(a, "%s reserves %s", best->params,
							     FRAG_BYTES(best->peak_reserved_bytes)),
				  .caption = "Peak reserved memory against driver time: the best "
					     "settings, the baseline, and in circles those that no "
					     "other setting beats in both.",
				  .shape = &point_shape,
				  .rows = { points, n } });
}

int frag_tuning_answer(const struct frag_tuning *t, size_t top, struct frag_answer *a,
		       struct frag_err *err)
{
	struct tune *out = frag_answer_new(a, 1, sizeof(*out));
	struct frag_rows shown;

	FRAG_CHECK_ALLOC(out, "answer", err);
	FRAG_TRY(fill(t, out, a, err));
	a->title = "Settings of the allocator";
	a->question = "Which settings serve this trace best?";
	remarks(t, out, a);
	if (out->tried.count) {
		shown = best_rows(t, out, top, a);
		frag_recordings_warn(a, &t->units);
		conclude(t, out, a);
		say_export(t, out, a);
		chart(&shown, out, a);
		frag_answer_gap(a);
		frag_answer_table(a, &setting_shape, shown.rows, shown.count);
		frag_answer_heading(a, "Settings that no other beats in both reserved memory and "
				       "driver time");
		frag_answer_table(a, &setting_shape, out->front.rows, out->front.count);
	}
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
