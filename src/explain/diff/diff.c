/* SPDX-License-Identifier: Apache-2.0 */
/* Where two runs differ, as the answer of diff: a sentence, peaks, live blocks, call sites. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#include "diff.h"
#include "explain/curve_point.h"

#define SHARE_ROW(F, P, S) FRAG_CHANGE_ROW(F, P, S) F(S, TEXT, what, "memory", "kind of memory")
FRAG_ROW_SHAPE(static, share_shape, frag_change, "share", SHARE_ROW,
	       "one kind of memory in both runs");
static const struct frag_field site_fields[] = {
	FRAG_CHANGE_ROW(FRAG_ROW_FIELD_, FRAG_ROW_SHOWN_, frag_change)
		FRAG_FIELD_AS(TEXT, "site", struct frag_change, what, "requested at",
			      "call site; without stacks, size and step"),
	FRAG_FIELD_END,
};
static const struct frag_shape site_shape =
	FRAG_SHAPE("changed call site", struct frag_change, site_fields,
		   "live memory of a call site at the peak of live memory, as requested");
FRAG_ROW_SHAPE(static, side_shape, frag_side, "run", FRAG_SIDE_ROW, "one run");
FRAG_ROW_SHAPE(, frag_comparison_shape, frag_comparison, "diff", FRAG_COMPARISON_ROW,
	       "what a change did to two runs");

/* ---- the facts -------------------------------------------------------------------------- */

static struct frag_change change_of(struct frag_answer *a, const char *what, uint64_t before,
				    uint64_t after)
{
	uint64_t by = before > after ? before - after : after - before;
	const char *sign = before > after ? "-" : after > before ? "+" : "";
	const char *growth = before && after
				     ? frag_answer_print(a, "%+.1f %%",
							 100 * ((double)after / (double)before - 1))
			     : before ? "gone"
			     : after  ? "new"
				      : "";

	return (struct frag_change){ before, after,
				     frag_answer_print(a, "%s%s", sign, FRAG_BYTES(by)), growth,
				     what };
}

static double growth(uint64_t before, uint64_t after)
{
	return before && after ? (double)after / (double)before - 1 : NAN;
}

static uint64_t distance(const struct frag_change *c)
{
	return c->before_bytes > c->after_bytes ? c->before_bytes - c->after_bytes
						: c->after_bytes - c->before_bytes;
}

FRAG_COMPARE(by_change, struct frag_change, FRAG_ORDER(distance(y), distance(x)),
	     strcmp(x->what, y->what))

/* Both are sorted by name: a merge. A run without sites says nothing about them. */
static struct frag_rows changed_sites(const struct frag_side *x, const struct frag_side *y,
				      struct frag_answer *a)
{
	struct frag_change *rows =
		frag_answer_new(a, x->sites_count + y->sites_count, sizeof(*rows));
	size_t n = 0;

	if (!rows || !x->sites_count || !y->sites_count)
		return (struct frag_rows){ 0 };
	for (size_t i = 0, k = 0; i < x->sites_count || k < y->sites_count;) {
		int order = i == x->sites_count	  ? 1
			    : k == y->sites_count ? -1
						  : strcmp(x->sites[i].name, y->sites[k].name);
		const char *name = order <= 0 ? x->sites[i].name : y->sites[k].name;
		uint64_t before = order <= 0 ? x->sites[i++].bytes : 0;
		uint64_t after = order >= 0 ? y->sites[k++].bytes : 0;

		if (before != after)
			rows[n++] = change_of(a, name, before, after);
	}
	qsort(rows, n, sizeof(*rows), by_change);
	return (struct frag_rows){ rows, n };
}

static struct frag_rows at_peak_of(const struct frag_side *before, const struct frag_side *after,
				   struct frag_answer *a)
{
	const struct frag_loss *x = &before->loss, *y = &after->loss;
	struct frag_change *rows = frag_answer_new(a, 5, sizeof(*rows));
	size_t n = 0;

	if (!rows || x->requested_bytes == UINT64_MAX || y->requested_bytes == UINT64_MAX)
		return (struct frag_rows){ 0 };
	rows[n++] = change_of(a, "live, as requested", x->requested_bytes, y->requested_bytes);
	if (before->has_loss && after->has_loss) {
		rows[n++] = change_of(a, "lost to rounding", x->rounding_bytes, y->rounding_bytes);
		rows[n++] = change_of(a, "waiting for another stream", x->waiting_bytes,
				      y->waiting_bytes);
	}
	rows[n++] = change_of(a, "free, non-releasable", x->non_releasable_bytes,
			      y->non_releasable_bytes);
	rows[n++] = change_of(a, "free, releasable", x->releasable_bytes, y->releasable_bytes);
	return (struct frag_rows){ rows, n };
}

static void compare_steps(struct frag_comparison *c, const struct frag_side *x,
			  const struct frag_side *y)
{
	c->steps_count = c->first_step = UINT64_MAX;
	c->first_step_before_bytes = c->first_step_after_bytes = UINT64_MAX;
	if (!x->steps_listed || !y->steps_listed)
		return;
	c->steps_count = FRAG_MIN(x->steps_listed, y->steps_listed);
	for (size_t i = 0; i < c->steps_count; i++) {
		if (!x->steps[i] ||
		    fabs((double)y->steps[i] / (double)x->steps[i] - 1) <= FRAG_DIFF_UNCHANGED)
			continue;
		c->first_step = i + 1;
		c->first_step_before_bytes = x->steps[i];
		c->first_step_after_bytes = y->steps[i];
		return;
	}
}

/* ---- what people read ------------------------------------------------------------------- */

static const char *settings_of(const char *policy)
{
	const char *colon = strchr(policy, ':');

	return !strncmp(policy, "pytorch", 7) ? (colon ? colon + 1 : "the defaults") : policy;
}

/* state: of two moments, not of peaks. */
static const char *move_of(struct frag_answer *a, const char *what, uint64_t before, uint64_t after,
			   bool state)
{
	if (before == after)
		return frag_answer_print(a, "%s stays at %s", what, FRAG_BYTES(after));
	return frag_answer_print(a, "%s %s %s %s %s (%+.1f %%)", what,
				 state		  ? "is"
				 : after > before ? "grows from"
						  : "falls from",
				 FRAG_BYTES(state ? after : before), state ? "instead of" : "to",
				 FRAG_BYTES(state ? before : after),
				 100 * ((double)after / (double)before - 1));
}

/* "peak reserved memory falls from 23.44 GiB to 16.73 GiB (-28.6 %) with …; peak live memory …" */
static const char *verdict_of(struct frag_answer *a, const struct frag_comparison *c,
			      const struct frag_side *x, const struct frag_side *y)
{
	const struct frag_change *sites = c->sites.rows;
	bool live_changed = fabs(c->live_growth_ratio) > FRAG_DIFF_UNCHANGED;
	const char *reserved = x->state ? "reserved memory" : "peak reserved memory";
	const char *live = x->state ? "live memory" : "peak live memory";
	struct frag_text t = { 0 };

	if (x->peak_reserved_bytes && y->peak_reserved_bytes)
		frag_text_add(&t, move_of(a, reserved, x->peak_reserved_bytes,
					  y->peak_reserved_bytes, x->state));
	if (x->state)
		frag_text_add(&t, t.len ? "; " : "");
	else if (y->torch && !x->torch)
		frag_text_addf(&t, " under the rules of PyTorch %s", y->torch);
	else if (!strcmp(x->policy, y->policy))
		frag_text_add(&t, " with the same settings");
	else
		frag_text_addf(&t, " with %s instead of %s", settings_of(y->policy),
			       settings_of(x->policy));
	if (x->peak_live_bytes && y->peak_live_bytes)
		frag_text_addf(&t, "%s%s%s", x->state ? "" : "; ",
			       live_changed ? move_of(a, live, x->peak_live_bytes,
						      y->peak_live_bytes, x->state)
					    : live,
			       live_changed ? "" : " does not change");
	if (live_changed && c->sites.count)
		frag_text_addf(&t, "; the largest change: %s", sites[0].what);
	return frag_answer_take(a, &t);
}

static const char *count_of(struct frag_answer *a, uint64_t n, const char *one, const char *many)
{
	return n == UINT64_MAX ? NULL : frag_answer_count(a, n, one, many);
}

/* What makes two runs another comparison than that of one change; NULL: nothing that is known. */
static const char *differences_of(struct frag_answer *a, const struct frag_side *x,
				  const struct frag_side *y)
{
	static const char *const where[] = { "on a GPU", "without one" };
	const char *const list[][3] = {
		{ "cards ", x->card, y->card },
		{ "PyTorch ", x->release, y->release },
		{ "recorded ", where[x->estimate], where[y->estimate] },
		{ "", count_of(a, x->devices_count, "device", "devices"),
		  count_of(a, y->devices_count, "device", "devices") },
		{ "", count_of(a, x->steps_count, "step", "steps"),
		  count_of(a, y->steps_count, "step", "steps") },
	};
	struct frag_text t = { 0 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(list); i++)
		if (list[i][1] && list[i][2] && strcmp(list[i][1], list[i][2]) != 0)
			frag_text_addf(&t, "%s%s%s and %s", t.len ? "; " : "", list[i][0],
				       list[i][1], list[i][2]);
	return t.len ? frag_answer_take(a, &t) : NULL;
}

static void say_ended(struct frag_answer *a, const char *which, const struct frag_side *s)
{
	if (s->ended_above_bytes == UINT64_MAX)
		return;
	a->need_unknown = true;
	frag_answer_warn(a, "what %s needs is unknown above %s: it ended out of memory", which,
			 FRAG_BYTES(s->ended_above_bytes));
}

static void say_peaks(struct frag_answer *a, const struct frag_side *x, const struct frag_side *y)
{
	struct frag_change *rows = frag_answer_new(a, 2, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return;
	if (x->peak_reserved_bytes && y->peak_reserved_bytes)
		rows[n++] =
			change_of(a, "reserved", x->peak_reserved_bytes, y->peak_reserved_bytes);
	if (x->peak_live_bytes && y->peak_live_bytes)
		rows[n++] = change_of(a, x->state ? "live" : "live (no policy can reserve less)",
				      x->peak_live_bytes, y->peak_live_bytes);
	frag_answer_heading(a, x->state ? "In each state" : "Peaks of the whole run");
	frag_answer_table(a, &share_shape, rows, n)->wraps = true;
}

static void say_steps(struct frag_answer *a, const struct frag_comparison *k)
{
	if (k->steps_count == UINT64_MAX)
		return;
	frag_answer_gap(a);
	if (k->first_step != UINT64_MAX)
		frag_answer_say(
			a, "the first step with another live peak: step %llu, %s before, %s after",
			(unsigned long long)k->first_step, FRAG_BYTES(k->first_step_before_bytes),
			FRAG_BYTES(k->first_step_after_bytes));
	else
		frag_answer_say(a, "the live peaks of %llu step%s agree within 1 %%",
				(unsigned long long)k->steps_count, k->steps_count == 1 ? "" : "s");
}

static void draw(struct frag_answer *a, const struct frag_side *x, const struct frag_side *y)
{
	static const char *const names[] = { "before: reserved", "after: reserved", "before: live",
					     "after: live" };
	struct frag_curve_point *list =
		frag_answer_new(a, FRAG_ARRAY_LEN(names) * FRAG_CURVE_POINTS, sizeof(*list));
	size_t n = 0;

	if (!list || !x->curves || !y->curves || x->state)
		return;
	for (size_t k = 0; k < FRAG_ARRAY_LEN(names); k++) {
		const struct frag_side *s = k % 2 ? y : x;
		const struct frag_curves *c = s->curves;

		for (size_t i = 0; i < c->points; i++) {
			uint64_t bytes = k < 2 ? c->reserved[i] : c->active[i];
			double percent = 100 * (double)(c->events[i] + 1) / (double)s->events;

			list[n++] = (struct frag_curve_point){ k,	names[k],
							       percent, (double)c->us[i] / 1e6,
							       bytes,	bytes };
		}
	}
	frag_answer_heading(a, "Over time");
	frag_answer_last(a)->page_only = true;
	frag_answer_chart(
		a, &(struct frag_answer_chart){
			   .script = "sites",
			   .base = "diff-memory",
			   .heading = "Memory over the run",
			   .title = frag_answer_print(a, "Peak reserved: %s before, %s after",
						      FRAG_BYTES(x->peak_reserved_bytes),
						      FRAG_BYTES(y->peak_reserved_bytes)),
			   .extra = "lines",
			   .caption = "Reserved and live memory; both runs are stretched to the "
				      "same length.",
			   .shape = &frag_curve_by_run,
			   .rows = { list, n } });
}

static void say_side(struct frag_answer *a, const char *which, const struct frag_side *s)
{
	frag_answer_remark(a, "%s: %s, %s%s%s%s", which, s->name, s->policy,
			   s->torch ? ", as PyTorch " : "", s->torch ? s->torch : "",
			   s->estimate ? ", an estimate" : "");
}

static void say(struct frag_answer *a, const struct frag_comparison *c, const struct frag_side *x,
		const struct frag_side *y, size_t top)
{
	a->estimated = x->estimate || y->estimate;
	a->title =
		frag_answer_print(a, "What the change did%s", a->estimated ? ", an estimate" : "");
	a->question = "Does it need more memory than before, and where?";
	say_side(a, "before", x);
	say_side(a, "after", y);
	frag_answer_conclude(a, "%s", c->verdict);
	if (c->differences)
		frag_answer_warn(a, "the runs differ in more than the change: %s", c->differences);
	say_ended(a, "BEFORE", x);
	say_ended(a, "AFTER", y);
	if (y->torch && !x->torch)
		frag_answer_say(a, "these are the recorded requests: another release may also "
				   "request other sizes, which a recording made with it shows");
	say_peaks(a, x, y);
	if (c->at_peak.count)
		frag_answer_heading(a, "What %s",
				    x->state ? "is there"
					     : "was there at the peak of reserved memory");
	frag_answer_table(a, &share_shape, c->at_peak.rows, c->at_peak.count)->wraps = true;
	say_steps(a, c);
	if (c->sites.count)
		frag_answer_heading(a, "Call sites%s",
				    x->state ? "" : " at the peak of live memory");
	frag_answer_table(a, &site_shape, c->sites.rows, FRAG_MIN(top, c->sites.count))->wraps =
		true;
	if (c->sites.count > top)
		frag_answer_say(a, "and %zu more (--top)", c->sites.count - top);
	draw(a, x, y);
}

int frag_diff(const struct frag_side *before, const struct frag_side *after, size_t top,
	      struct frag_answer *a, struct frag_err *err)
{
	struct frag_comparison *c = frag_answer_new(a, 1, sizeof(*c));

	if (before->state != after->state)
		return FRAG_INPUT(err,
				  "'%.100s' is a state without a history, which has no peaks that "
				  "can be compared with those of '%.100s'",
				  before->state ? before->name : after->name,
				  before->state ? after->name : before->name);
	if (c) {
		*c = (struct frag_comparison){
			.before = before,
			.after = after,
			.reserved_growth_ratio =
				growth(before->peak_reserved_bytes, after->peak_reserved_bytes),
			.live_growth_ratio =
				growth(before->peak_live_bytes, after->peak_live_bytes),
			.at_peak = at_peak_of(before, after, a),
			.sites = changed_sites(before, after, a),
		};
		c->differences = differences_of(a, before, after);
		compare_steps(c, before, after);
		c->verdict = verdict_of(a, c, before, after);
		frag_answer_data(a, &frag_comparison_shape, c);
		frag_answer_csv(a, &site_shape, c->sites.rows, c->sites.count);
		say(a, c, before, after, top);
	}
	return a->failed ? frag_fail_nomem(err, "comparison") : 0;
}
