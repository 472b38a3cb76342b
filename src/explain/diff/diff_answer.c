/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of diff: what changed in one sentence, both peaks, what was there, the call sites. */
#include "diff.h"

#include <math.h>
#include <string.h>

#include <frag/opt.h>

#include "answer/row.h"
#include "explain/curve_point.h"

/* ---- shapes ----------------------------------------------------------------------------------- */

#define CHANGE(F, P, S) \
	F(S, BYTES, before_bytes, "before", "in the first run") \
	F(S, BYTES, after_bytes, "after", "in the second run") \
	P(S, TEXT, change, "change", "after less before", .right = true) \
	P(S, TEXT, growth, "growth", "after / before - 1", .right = true)
#define SITE(F, P, S) \
	CHANGE(F, P, S) F(S, TEXT, site, "requested at", "call site; without stacks, size and step")
#define SHARE(F, P, S) CHANGE(F, P, S) F(S, TEXT, what, "memory", "kind of memory")
FRAG_ROW(site, "changed call site", SITE,
	 "live memory of a call site at the peak of live memory, as requested");
FRAG_ROW(share, "share", SHARE, "one kind of memory in both runs");

#define RUN(F, P, S) \
	F(S, TEXT, name, NULL, "of the recording or file") \
	F(S, TEXT, policy, NULL, "that is replayed") \
	F(S, BOOL, estimate, NULL, "recorded without a GPU") \
	F(S, BYTES, peak_reserved_bytes, NULL, "at most reserved") \
	F(S, BYTES, peak_live_bytes, NULL, "at most live") \
	F(S, BYTES, non_releasable_bytes, NULL, "at the peak of reserved memory")
FRAG_ROW(run, "run", RUN, "one run");

#define COMPARISON(F, P, S) \
	F(S, TEXT, verdict, NULL, "what changed, as a sentence") \
	F(S, OBJECT, before, NULL, "the first run", .of = &run_shape) \
	F(S, OBJECT, after, NULL, "the second run", .of = &run_shape) \
	F(S, RATIO, reserved_growth_ratio, NULL, "of peak reserved memory: 0.05 is 5 % more") \
	F(S, RATIO, live_growth_ratio, NULL, "of peak live memory") \
	F(S, LIST, at_peak, NULL, "what was there at the peak of reserved memory", \
	  .of = &share_shape) \
	F(S, COUNT, steps_count, NULL, "steps compared; null where a run has none") \
	F(S, COUNT, first_step, NULL, \
	  "the first whose live peak differs by more than 1 %; null: none") \
	F(S, BYTES, first_step_before_bytes, NULL, "its live peak") \
	F(S, BYTES, first_step_after_bytes, NULL, "its live peak") \
	F(S, LIST, sites, NULL, "changed, the largest change first", .of = &site_shape)
struct comparison {
	FRAG_ROW_MEMBERS(COMPARISON)
};
FRAG_ROW_SHAPE(, frag_comparison_shape, comparison, "diff", COMPARISON,
	       "what a change did to two runs");

/* ---- rows ------------------------------------------------------------------------------------- */

static struct share change_of(struct frag_answer *a, const char *what, uint64_t before,
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

	return (struct share){ before, after, frag_answer_print(a, "%s%s", sign, FRAG_BYTES(by)),
			       growth, what };
}

static const struct run *run_of(struct frag_answer *a, const struct frag_side *s)
{
	struct run *run = frag_answer_new(a, 1, sizeof(*run));

	if (run)
		*run = (struct run){ s->name,	       s->setting,   s->estimate,
				     s->peak_reserved, s->peak_live, s->loss.non_releasable_bytes };
	return run;
}

static struct frag_rows at_peak_of(struct frag_answer *a, const struct frag_compared *c)
{
	const struct frag_loss *x = &c->before->loss, *y = &c->after->loss;
	struct share *rows = frag_answer_new(a, 5, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return (struct frag_rows){ 0 };
	rows[n++] = change_of(a, "live, as requested", x->requested_bytes, y->requested_bytes);
	if (c->before->has_loss && c->after->has_loss) {
		rows[n++] = change_of(a, "lost to rounding", x->rounding_bytes, y->rounding_bytes);
		rows[n++] = change_of(a, "waiting for another stream", x->waiting_bytes,
				      y->waiting_bytes);
	}
	rows[n++] = change_of(a, "free, but pinned by live blocks", x->non_releasable_bytes,
			      y->non_releasable_bytes);
	rows[n++] = change_of(a, "free, releasable", x->releasable_bytes, y->releasable_bytes);
	return (struct frag_rows){ rows, n };
}

static void say_peaks(struct frag_answer *a, const struct frag_compared *c)
{
	const struct frag_side *x = c->before, *y = c->after;
	struct share *rows = frag_answer_new(a, 2, sizeof(*rows));

	if (!rows)
		return;
	rows[0] = change_of(a, "reserved", x->peak_reserved, y->peak_reserved);
	rows[1] = change_of(a, "live (no policy can reserve less)", x->peak_live, y->peak_live);
	frag_answer_heading(a, "Peaks of the whole run");
	frag_answer_table(a, &share_shape, rows, x->peak_live && y->peak_live ? 2 : 1)->wraps =
		true;
}

static struct frag_rows sites_of(struct frag_answer *a, const struct frag_compared *c)
{
	struct site *rows = frag_answer_new(a, c->count, sizeof(*rows));

	for (size_t i = 0; rows && i < c->count; i++) {
		const struct frag_change *one = &c->changes[i];
		struct share s = change_of(a, one->site, one->before_bytes, one->after_bytes);

		rows[i] =
			(struct site){ s.before_bytes, s.after_bytes, s.change, s.growth, s.what };
	}
	return (struct frag_rows){ rows, rows ? c->count : 0 };
}

static struct comparison *fill(struct frag_answer *a, const struct frag_compared *c)
{
	const struct frag_side *x = c->before, *y = c->after;
	bool steps = x->steps_count && y->steps_count, differs = c->first_step != SIZE_MAX;
	struct comparison *k = frag_answer_new(a, 1, sizeof(*k));

	if (k)
		*k = (struct comparison){
			.before = run_of(a, x),
			.after = run_of(a, y),
			.reserved_growth_ratio = c->reserved_growth,
			.live_growth_ratio = c->live_growth,
			.at_peak = at_peak_of(a, c),
			.sites = sites_of(a, c),
			.steps_count =
				steps ? FRAG_MIN(x->steps_count, y->steps_count) : UINT64_MAX,
			.first_step = differs ? c->first_step + 1 : UINT64_MAX,
			.first_step_before_bytes = differs ? x->steps[c->first_step] : UINT64_MAX,
			.first_step_after_bytes = differs ? y->steps[c->first_step] : UINT64_MAX,
		};
	return k;
}

/* ---- what people read -------------------------------------------------------------------------- */

static const char *settings_of(const char *policy)
{
	const char *colon = strchr(policy, ':');

	return !strncmp(policy, "pytorch", 7) ? (colon ? colon + 1 : "the defaults") : policy;
}

static const char *move_of(struct frag_answer *a, const char *what, uint64_t before, uint64_t after)
{
	if (before == after)
		return frag_answer_print(a, "%s stays at %s", what, FRAG_BYTES(after));
	return frag_answer_print(a, "%s %s from %s to %s (%+.1f %%)", what,
				 after > before ? "grows" : "falls", FRAG_BYTES(before),
				 FRAG_BYTES(after), 100 * ((double)after / (double)before - 1));
}

/* "peak reserved memory falls from 23.44 GiB to 16.73 GiB (-28.6 %) with …; peak live memory stays …" */
static const char *verdict_of(struct frag_answer *a, const struct frag_compared *c)
{
	const struct frag_side *x = c->before, *y = c->after;
	struct frag_text t = { 0 };

	frag_text_add(&t, move_of(a, "peak reserved memory", x->peak_reserved, y->peak_reserved));
	if (!strcmp(x->setting, y->setting))
		frag_text_add(&t, " with the same settings");
	else
		frag_text_addf(&t, " with %s instead of %s", settings_of(y->setting),
			       settings_of(x->setting));
	if (x->peak_live && y->peak_live)
		frag_text_addf(
			&t, "; %s",
			fabs(c->live_growth) <= FRAG_DIFF_UNCHANGED
				? "peak live memory does not change"
				: move_of(a, "peak live memory", x->peak_live, y->peak_live));
	if (fabs(c->live_growth) > FRAG_DIFF_UNCHANGED && c->count)
		frag_text_addf(&t, "; the largest change: %s", c->changes[0].site);
	return frag_answer_take(a, &t);
}

static void say_steps(struct frag_answer *a, const struct comparison *k)
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

static size_t add_curve(struct frag_curve_point *list, size_t n, uint64_t line, const char *name,
			const struct frag_side *s, const uint64_t *bytes)
{
	for (size_t i = 0; i < s->points; i++)
		list[n++] = (struct frag_curve_point){ line,
						       name,
						       100.0 * (double)(i + 1) / (double)s->points,
						       (double)s->us[i] / 1e6,
						       bytes[i],
						       bytes[i] };
	return n;
}

static void draw(struct frag_answer *a, const struct frag_compared *c)
{
	const struct frag_side *x = c->before, *y = c->after;
	struct frag_curve_point *list =
		frag_answer_new(a, 2 * (x->points + y->points), sizeof(*list));
	size_t n = 0;

	if (!list || !x->points || !y->points)
		return;
	n = add_curve(list, n, 0, "before: reserved", x, x->reserved);
	n = add_curve(list, n, 1, "after: reserved", y, y->reserved);
	n = add_curve(list, n, 2, "before: live", x, x->active);
	n = add_curve(list, n, 3, "after: live", y, y->active);
	frag_answer_heading(a, "Over time");
	frag_answer_last(a)->page_only = true;
	frag_answer_chart(
		a, &(struct frag_answer_chart){
			   .script = "sites",
			   .base = "diff-memory",
			   .heading = "Memory over the run",
			   .title = frag_answer_print(a, "Peak reserved: %s before, %s after",
						      FRAG_BYTES(x->peak_reserved),
						      FRAG_BYTES(y->peak_reserved)),
			   .extra = "lines",
			   .caption = "Reserved and live memory; both runs are stretched to the "
				      "same "
				      "length.",
			   .shape = &frag_curve_by_run,
			   .rows = { list, n } });
}

int frag_compared_answer(const struct frag_compared *c, size_t top, struct frag_answer *a,
			 struct frag_err *err)
{
	const struct frag_side *x = c->before, *y = c->after;
	struct comparison *k = fill(a, c);

	FRAG_CHECK_ALLOC(k && !a->failed, "comparison", err);
	k->verdict = verdict_of(a, c);
	a->estimated = x->estimate || y->estimate;
	a->title =
		frag_answer_print(a, "What the change did%s", a->estimated ? ", an estimate" : "");
	a->question = "Does it need more memory than before, and where?";
	frag_answer_data(a, &frag_comparison_shape, k);
	frag_answer_csv(a, &site_shape, k->sites.rows, k->sites.count);
	frag_answer_remark(a, "before: %s, %s%s", x->name, x->setting,
			   x->estimate ? ", an estimate" : "");
	frag_answer_remark(a, "after: %s, %s%s", y->name, y->setting,
			   y->estimate ? ", an estimate" : "");
	frag_answer_conclude(a, "%s", k->verdict);
	say_peaks(a, c);
	frag_answer_heading(a, "What was there at the peak of reserved memory");
	frag_answer_table(a, &share_shape, k->at_peak.rows, k->at_peak.count)->wraps = true;
	say_steps(a, k);
	if (c->count)
		frag_answer_heading(a, "Call sites at the peak of live memory");
	frag_answer_table(a, &site_shape, k->sites.rows, FRAG_MIN(top, k->sites.count))->wraps =
		true;
	if (c->count > top)
		frag_answer_say(a, "and %zu more (--top)", c->count - top);
	draw(a, c);
	return 0;
}
