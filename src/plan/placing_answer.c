/* SPDX-License-Identifier: Apache-2.0 */
/* Placements as an answer: the bound, each method, how far the lowest is from it; see placing.h. */
#include <math.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "placing.h"
#include "recording/settled_shape.h"

#define CHARTS_MOST 8u

static double over(uint64_t height, uint64_t bound)
{
	return bound ? (double)height / (double)bound : 1;
}

/* ---- one method ------------------------------------------------------------------ */

#define METHOD(F, P, S) \
	F(S, TEXT, trace, p->unit->trace->name, NULL, "its name", .csv_only = true) \
	F(S, COUNT, device, p->unit->dev->ordinal, NULL, "number of the device", .csv_only = true) \
	F(S, COUNT, buffers_count, p->b.count, NULL, "allocations", .csv_only = true) \
	F(S, BYTES, lower_bound_bytes, p->bound, NULL, "most live at one moment", \
	  .csv_only = true) \
	F(S, TEXT, method, p->methods[i].name, "placement", "how it was found") \
	F(S, BYTES, height_bytes, p->methods[i].height, "height", "what it needs") \
	P(S, COUNT, bytes, p->methods[i].height, "bytes", "the same", .spare = 1) \
	F(S, REAL, over_bound_ratio, over(p->methods[i].height, p->bound), "of the bound", \
	  "height / lower bound", .precision = 5, .no_csv = true) \
	F(S, NS, host_ns, p->methods[i].ns, "time", "that it took here", .spare = 2, .no_csv = true)
struct method {
	FRAG_ROW_MEMBERS(METHOD)
	uint64_t number;
};
FRAG_VALUED_SHAPE(static, method_shape, method, "method", METHOD, "one placement");

#define BAR(F, P, S) \
	F(S, COUNT, number, NULL, "of the method") \
	F(S, TEXT, method, NULL, "how it was found") \
	F(S, BYTES, height_bytes, NULL, "what it needs") \
	F(S, BYTES, lower_bound_bytes, NULL, "no placement needs less")
FRAG_ROW_SHAPE(static, bar_shape, method, "bar", BAR, "one bar of the chart");

/* ---- a plan of the steps --------------------------------------------------------- */

#define STEP_PLAN(F, P, S) \
	F(S, COUNT, steps_count, s->steps_count, NULL, "steps of the trace") \
	F(S, COUNT, trained_count, s->trained_count, NULL, "of them planned from") \
	F(S, BOOL, windows, s->windows, NULL, "windows instead of marked steps") \
	F(S, COUNT, period, s->period, NULL, "steps after which it repeats; 0: it does not") \
	F(S, RATIO, similarity_ratio, s->similarity, NULL, \
	  "of the last planned step, in the one a period before") \
	F(S, COUNT, requests_count, s->requests_count, NULL, "requests in the plan") \
	F(S, BYTES, height_bytes, s->height_bytes, NULL, "what they need") \
	F(S, BYTES, lower_bound_bytes, s->bound_bytes, NULL, "no placement needs less") \
	F(S, BYTES, reserve_bytes, s->reserve_bytes, NULL, "height and slack")
FRAG_VALUED_ROW(step_plan, "step_plan", STEP_PLAN, "a plan of the first steps");

/* NULL: none was made. */
static const void *step_plan(const struct frag_step_plan *s, struct frag_answer *a)
{
	struct step_plan row = FRAG_ROW_VALUES(step_plan, STEP_PLAN);

	return s->requests_count ? FRAG_ANSWER_KEEP(a, row) : NULL;
}

/* ---- one device ------------------------------------------------------------------ */

#define RESULT(F, P, S) \
	F(S, TEXT, trace, p->unit->trace->name, NULL, "its name") \
	F(S, COUNT, device_ordinal, p->unit->dev->ordinal, NULL, "number of the device") \
	F(S, COUNT, buffers_count, p->b.count, NULL, "allocations") \
	F(S, BYTES, align_bytes, p->align, NULL, "unit of sizes and offsets") \
	F(S, BYTES, lower_bound_bytes, p->bound, NULL, "most live at one moment") \
	F(S, COUNT, bound_event, p->when, NULL, "that moment") \
	F(S, BYTES, target_bytes, p->target, NULL, "good enough") \
	F(S, BYTES, best_bytes, p->best, NULL, "lowest placement found") \
	F(S, RATIO, over_bound_ratio, p->methods_count ? over(p->best, p->bound) : NAN, NULL, \
	  "best / lower bound") \
	F(S, BOOL, checked, true, NULL, "every placement was checked") \
	F(S, BOOL, complete, p->complete, NULL, "it was not interrupted") \
	F(S, BOOL, proved_optimal, p->best <= p->bound, NULL, "no placement is lower") \
	F(S, BOOL, target_impossible, p->searched && p->answer == FRAG_SEARCH_NONE, NULL, \
	  "the search proved that no placement is as low as the target") \
	F(S, COUNT, nodes_count, p->nodes, NULL, "decisions of the search") \
	F(S, LIST, methods, FRAG_ROWS(methods, p->methods_count), NULL, "each placement", \
	  .of = &method_shape) \
	F(S, OBJECT, plan, step_plan(&p->steps, a), NULL, "of the steps, with --output", \
	  .of = &step_plan_shape)
FRAG_VALUED_ROW(result, "placement", RESULT, "one device of one trace");

static void say_steps(const struct frag_step_plan *s, const char *path, struct frag_answer *a)
{
	FRAG_AUTO(frag_text_release) struct frag_text line = { 0 };
	const char *why =
		s->windows ? "the trace marks too few steps, or windows were asked for, so it is "
			     "of the beginning only"
		: s->period
			? frag_answer_print(a, "period %u, %.1f %% of a step is in an earlier one",
					    s->period, 100 * s->similarity)
			: frag_answer_print(a,
					    "they do not repeat (%.1f %% of a step is in an "
					    "earlier one), so it is of the beginning only",
					    100 * s->similarity);

	frag_answer_gap(a);
	frag_answer_say(a, "plan of %u of %u %s: %s; %zu requests in %s (%.4f of their load)",
			s->trained_count, s->steps_count, s->windows ? "windows" : "steps", why,
			s->requests_count, FRAG_BYTES(s->height_bytes),
			over(s->height_bytes, s->bound_bytes));
	frag_text_add(&line, "cufrag replay TRACE --policy planned:plan=");
	frag_text_add(&line, path);
	a->failed |= line.failed;
	frag_answer_paste(a, "", frag_text_str(&line));
}

static void chart(const struct result *r, const char *label, size_t i, struct frag_answer *a)
{
	if (i < CHARTS_MOST)
		frag_answer_chart(
			a, &(struct frag_answer_chart){
				   .script = "bars",
				   .base = frag_answer_print(a, i ? "plan%zu" : "plan", i + 1),
				   .extra = "what the placement needs|height|lower bound",
				   .title = frag_answer_print(
					   a, "%s: the lowest placement takes %.5f of the bound",
					   label, r->over_bound_ratio),
				   .caption = "Each placement, and the most bytes that are live at "
					      "one moment: none can be lower.",
				   .shape = &bar_shape,
				   .rows = r->methods });
}

static void say_device(const struct frag_placing *p, const struct result *r, size_t i,
		       const char *plan, struct frag_answer *a)
{
	frag_answer_remark(a, "cufrag %s plan: %s, %zu buffers, aligned to %llu%s", FRAG_VERSION,
			   p->unit->label, p->b.count, (unsigned long long)p->align,
			   p->unit->trace->estimate ? ", an estimate" : "");
	frag_answer_say(a, "load lower bound: %llu (%s), first at event %llu",
			(unsigned long long)p->bound, FRAG_BYTES(p->bound),
			(unsigned long long)p->when);
	frag_answer_gap(a);
	if (!p->methods_count) {
		frag_answer_say(a, "interrupted before the first placement");
		return;
	}
	frag_answer_table(a, &method_shape, r->methods.rows, r->methods.count);
	chart(r, p->unit->label, i, a);
	frag_answer_gap(a);
	frag_answer_conclude(
		a, "%s: lowest placement %llu, %.5f of the bound; every placement was checked",
		p->unit->label, (unsigned long long)p->best, r->over_bound_ratio);
	if (r->proved_optimal)
		frag_answer_say(a, "optimal: no placement is lower than the load");
	else if (r->target_impossible)
		frag_answer_say(a, "proved: no placement is as low as %llu",
				(unsigned long long)p->target);
	if (!p->complete)
		frag_answer_say(a, "interrupted: this is what was found until then");
	if (r->plan)
		say_steps(&p->steps, plan, a);
}

/* Several traces or devices: the one that needs most decides. */
static void say_worst(const struct frag_placing *list, size_t count, struct frag_answer *a)
{
	const struct frag_placing *worst = &list[0];
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (!list[i].methods_count)
			return;
		least = FRAG_MIN(least, list[i].best);
		if (list[i].best > worst->best)
			worst = &list[i];
	}
	frag_answer_gap(a);
	frag_answer_conclude(a, "all %zu: %s to %s, most in %s", count, FRAG_BYTES(least),
			     FRAG_BYTES(worst->best), worst->unit->label);
}

/* ---- all of them ----------------------------------------------------------------- */

#define PLAN_ROW(F, P, S) \
	F(S, LIST, recordings, frag_recorded_unit_rows(a, units), NULL, \
	  "results of each recording", .of = &frag_recorded_unit_shape) \
	F(S, COUNT, seed, o->seed, NULL, "of the search") \
	F(S, BOOL, complete, count == units->units_count, NULL, "every device has a result") \
	F(S, COUNT, results_count, count, NULL, "devices placed") \
	F(S, LIST, results, FRAG_ROWS(results, count), NULL, "one for each device", \
	  .of = &result_shape)
FRAG_VALUED_ROW_AS(, frag_plan_shape, plan, "plan", PLAN_ROW, "how low a trace can be placed");

int frag_placing_answer(const struct frag_placing *list, size_t count,
			const struct frag_recordings *units, const struct frag_target *target,
			const struct frag_placing_options *o, struct frag_answer *a,
			struct frag_err *err)
{
	struct plan *plan = frag_answer_new(a, 1, sizeof(*plan));
	struct result *results = frag_answer_new(a, count, sizeof(*results));
	struct method *all = frag_answer_new(a, count * FRAG_PLACING_METHODS, sizeof(*all));
	size_t n = 0;

	FRAG_CHECK_ALLOC(plan && results && all, "answer", err);
	*plan = FRAG_ROW_VALUES(plan, PLAN_ROW);
	a->title = "How low it can be placed";
	a->question = "How near to the lower bound do placements come that know all lives?";
	frag_recordings_remark(a, units, target, "no limit applies to a placement");
	for (size_t k = 0; k < count; k++) {
		const struct frag_placing *p = &list[k];
		struct method *methods = &all[n];

		for (size_t i = 0; i < p->methods_count; i++) {
			methods[i] = FRAG_ROW_VALUES(method, METHOD);
			methods[i].number = i;
		}
		results[k] = FRAG_ROW_VALUES(result, RESULT);
		n += p->methods_count;
		plan->complete &= p->complete;
		if (k)
			frag_answer_gap(a);
		say_device(p, &results[k], k, o->plan, a);
	}
	if (count > 1)
		say_worst(list, count, a);
	frag_recordings_warn(a, units);
	frag_answer_data(a, &frag_plan_shape, plan);
	frag_answer_csv(a, &method_shape, all, n);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
