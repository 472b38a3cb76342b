/* SPDX-License-Identifier: Apache-2.0 */
/* The answer: a row for each change, then the best together; see trial.h. */
#include <math.h>
#include <string.h>

#include "answer/draw/plot_values.h"
#include "answer/row.h"
#include "base/clean.h"
#include "trial.h"

#define LEAST_RATIO 0.01 /* of the peak; smaller savings are no advice */

#define CHANGE_ROW(F, P, S) \
	F(S, TEXT, change, x->change, "change", "its name, as --changes takes it") \
	F(S, TEXT, what, x->what, NULL, "what to change") \
	F(S, TEXT, where, *x->where ? x->where : NULL, "where", "file and line of the program", \
	  .spare = 2) \
	F(S, BYTES, saved_bytes, known ? frag_advice_above(before, after) : UINT64_MAX, "saves", \
	  "reserved less at the peak: of a recording under its settings, else in the better one") \
	F(S, RATIO, saved_ratio, \
	  (known && before) ? (double)frag_advice_above(before, after) / (double)before : NAN, \
	  "of all", "the saving as a part of memory reserved without the change", .unit = "%", \
	  .precision = 1, .spare = 5) \
	F(S, BYTES, requested_bytes, known ? x->after.requested : UINT64_MAX, "requested", \
	  "peak of requested bytes after it", .spare = 4) \
	F(S, BYTES, reserved_bytes, known ? x->after.reserved : UINT64_MAX, "reserved", \
	  "peak reserved after it, under the recorded settings; of a program, the default") \
	F(S, BYTES, expandable_bytes, known && !x->replayed ? x->after.expandable : UINT64_MAX, \
	  "expandable", "peak reserved after it, with expandable segments", .spare = 3) \
	F(S, BYTES, before_requested_bytes, x->before.requested, NULL, \
	  "peak of requested bytes before it") \
	F(S, BYTES, before_reserved_bytes, x->before.reserved, NULL, "peak reserved before it") \
	F(S, BYTES, before_expandable_bytes, x->before.expandable, NULL, \
	  "peak reserved before it, with expandable segments") \
	F(S, BYTES, moved_bytes, known ? x->cost.moved : UINT64_MAX, "over PCIe", \
	  "bytes moved between card and host in the whole run", .if_any = true, .spare = 6) \
	F(S, COUNT, calls_count, known ? x->cost.calls : UINT64_MAX, NULL, \
	  "requests of memory more, in the whole run") \
	F(S, REAL, seconds, \
	  known && !x->untimed && (!x->tried || span > 0) ? x->cost.seconds : NAN, NULL, \
	  "more modelled time of the whole run: a roofline of the card's bandwidth and " \
	  "tensor cores, and 25 GB/s over PCIe") \
	P(S, TEXT, time_text, NULL, "modelled time", \
	  "of the whole run, relative to the unchanged program", .right = true, .spare = 1) \
	F(S, TEXT, numerics, x->numerics, NULL, "numerical differences; empty: none") \
	F(S, TEXT, how, \
	  !known	? "left out" \
	  : x->tried	? "tried" \
	  : x->replayed ? "replayed" \
			: "estimated", \
	  "how", \
	  "tried: the program ran with it; replayed: its recording, under other " \
	  "settings; estimated: the recording was edited and replayed; left out: " \
	  "left_out says why") \
	F(S, TEXT, card, known ? x->card : NULL, "smallest card", \
	  "smallest card with room for it and the margin; null: none of the list") \
	F(S, TEXT, left_out, x->left_out, NULL, "why it was not tried; empty: it was")
FRAG_VALUED_ROW_AS(static, change_shape, change_row, "change", CHANGE_ROW,
		   "one change of the program");

#define TOGETHER_ROW(F, P, S) \
	F(S, TEXTS, changes, FRAG_ROWS(names, v->members_count), NULL, \
	  "their names; empty: the unchanged program") \
	F(S, BYTES, requested_bytes, p->requested, NULL, "peak of requested bytes") \
	F(S, BYTES, reserved_bytes, p->reserved, NULL, "peak reserved, with default settings") \
	F(S, BYTES, expandable_bytes, p->expandable, NULL, \
	  "peak reserved, with expandable segments") \
	F(S, TEXT, card, v->named ? v->card.label : NULL, NULL, "the given card; null: none") \
	F(S, BYTES, spare_bytes, v->named && v->fits ? room - need : UINT64_MAX, NULL, \
	  "memory of the card left at the peak; null: it does not fit, or no card was given") \
	F(S, BOOL, completed, v->completed, NULL, "it ran to its end on a card of that size") \
	F(S, TEXT, smallest_card, card ? card->name : NULL, NULL, \
	  "smallest card with room for it and the margin; null: none of the list")
FRAG_VALUED_ROW_AS(static, together_shape, together_row, "combination", TOGETHER_ROW,
		   "the best changes together, tried as one");

#define ADVISE_ROW(F, P, S) \
	F(S, BYTES, requested_bytes, v->first.peaks.requested, NULL, \
	  "peak of requested bytes of the unchanged program") \
	F(S, BYTES, recorded_peak_bytes, v->unchanged.before.reserved ?: UINT64_MAX, NULL, \
	  "peak reserved when it was recorded; null: not known") \
	F(S, BYTES, reserved_bytes, v->first.peaks.reserved, NULL, \
	  "peak reserved in a replay of the recorded settings; of a program, the default") \
	F(S, BYTES, expandable_bytes, v->first.peaks.expandable, NULL, \
	  "peak reserved, with expandable segments") \
	F(S, COUNT, steps_count, v->first.steps ? v->first.steps : UINT64_MAX, NULL, \
	  "steps of its optimizers; null: not known") \
	F(S, BOOL, out_of_memory, v->enlarged, NULL, \
	  "the unchanged program runs out of memory on the card") \
	F(S, BOOL, complete, !v->interrupted, NULL, "it was not interrupted") \
	F(S, RATIO, least_ratio, LEAST_RATIO, NULL, "changes that save less do not count") \
	F(S, LIST, changes, FRAG_ROWS(rows, v->count), NULL, "the largest saving first", \
	  .of = &change_shape) \
	F(S, OBJECT, together, together(v, a), NULL, "the best together", .of = &together_shape)
FRAG_VALUED_ROW_AS(, frag_advise_shape, advise, "advise", ADVISE_ROW,
		   "what to change in a program");

static struct change_row change_row(const struct frag_advice *x, double span, struct frag_answer *a)
{
	uint64_t before = frag_advice_need(&x->before), after = frag_advice_need(&x->after);
	bool known = !*x->left_out && after;
	struct change_row row = FRAG_ROW_VALUES(change_row, CHANGE_ROW);

	if (known && x->tried && !x->untimed && span > 0)
		row.time_text = frag_answer_print(a, "%+.0f %%", 100 * x->cost.seconds / span);
	return row;
}

static const char *names_of(const struct frag_advising *v, struct frag_answer *a)
{
	const char *text = "";

	for (size_t i = 0; i < v->members_count; i++)
		text = frag_answer_print(a, "%s%s%s", text,
					 !i			    ? ""
					 : i + 1 < v->members_count ? ", "
								    : " and ",
					 v->members[i]->change);
	return text;
}

static const struct frag_advice_peaks *best_peaks(const struct frag_advising *v)
{
	return v->members_count ? &v->best.peaks : &v->first.peaks;
}

static struct together_row *together(const struct frag_advising *v, struct frag_answer *a)
{
	const struct frag_advice_peaks *p = best_peaks(v);
	uint64_t need = frag_advice_need(p), room = frag_advising_room(v, false);
	const struct frag_gpu *card = frag_catalog_pick(&v->catalog, need, &v->headroom);
	const char **names = frag_answer_new(a, v->members_count + 1, sizeof(*names));
	struct together_row row = FRAG_ROW_VALUES(together_row, TOGETHER_ROW);

	for (size_t i = 0; names && i < v->members_count; i++)
		names[i] = v->members[i]->change;
	return frag_answer_copy(a, &row, sizeof(row));
}

/* ---- in words -------------------------------------------------------------------------------- */

/* Of a recording: the best edit and the best setting, which tune takes, too. */
static void say_edited(const struct frag_advising *v, struct frag_answer *a)
{
	const uint64_t recorded = v->unchanged.before.reserved, was = v->first.peaks.reserved;
	const struct frag_advice *edit = NULL, *other = NULL;
	const char *text = "", *then = "";

	for (size_t i = 0; i < v->count; i++) {
		const struct frag_advice *x = &v->list[i];

		if (x->replayed && (!other || !strcmp(x->change, "settings")))
			other = x;
		else if (!x->replayed && !edit && !*x->left_out)
			edit = x;
	}
	if (other)
		then = frag_answer_print(a,
					 "with %s the unchanged program reserves %s in place of %s "
					 "(%+.1f %%); cufrag tune tries more",
					 strcmp(other->change, "settings") ? other->change
									   : other->what,
					 FRAG_BYTES(other->after.reserved), FRAG_BYTES(was),
					 100 * ((double)other->after.reserved / (double)was - 1));
	else if (recorded && recorded != was)
		then = frag_answer_print(a,
					 "the replay, which has no limit, reserves %s, not %s as "
					 "recorded; cufrag tune tries settings",
					 FRAG_BYTES(was), FRAG_BYTES(recorded));
	if (edit)
		text = frag_answer_print(a,
					 "estimated: %s would reserve %s in place of %s under %s; "
					 "cufrag advise -- PROGRAM tries it%s",
					 edit->change, FRAG_BYTES(edit->after.reserved),
					 FRAG_BYTES(was), v->unchanged.change, *then ? "; " : "");
	frag_answer_conclude(a, "%s%s", text, edit || *then ? then : "nothing helps more than 1 %");
}

/* Does it save enough to be advised? */
static bool helps(const struct frag_advice *x)
{
	uint64_t before = frag_advice_need(&x->before), after = frag_advice_need(&x->after);

	return !*x->left_out && after &&
	       (double)frag_advice_above(before, after) >= LEAST_RATIO * (double)before;
}

/* Nothing was found, or not yet. */
static void say_none(const struct frag_advising *v, struct frag_answer *a)
{
	const struct frag_advice *best = v->list; /* those that were tried come first */
	const bool tried = v->count && (best->tried || best->replayed);

	if (v->interrupted && tried && helps(best))
		frag_answer_conclude(a,
				     "interrupted after %zu of %zu changes: the best so far is %s, "
				     "which needs %s in place of %s",
				     v->tried, v->count, best->change,
				     FRAG_BYTES(frag_advice_need(&best->after)),
				     FRAG_BYTES(frag_advice_need(&best->before)));
	else
		frag_answer_conclude(a, v->interrupted ? "interrupted before the best was known"
					: tried	       ? "nothing helps more than 1 %%"
						       : "nothing was tried: no change applies to "
							 "what this program does");
}

static void say_best(const struct frag_advising *v, struct frag_answer *a)
{
	const struct frag_advice_peaks *p = best_peaks(v);
	const uint64_t need = frag_advice_need(p), before = frag_advice_need(&v->first.peaks);
	const uint64_t spare = frag_advice_above(frag_advising_room(v, false), need);
	const struct frag_gpu *card = frag_catalog_pick(&v->catalog, need, &v->headroom);
	const char *setting = need < p->reserved ? " with expandable segments" : "",
		   *names = names_of(v, a), *label = v->card.label, *why;
	size_t untried;

	if (v->named && v->fits && !v->members_count)
		frag_answer_conclude(a, "fits %s unchanged%s, with %s to spare", label, setting,
				     FRAG_BYTES(spare));
	else if (v->named && v->fits)
		frag_answer_conclude(a, "fits %s with %s to spare: %s; reserves %s%s%s", label,
				     FRAG_BYTES(spare), names, FRAG_BYTES(need), setting,
				     v->completed ? ", and completed on it" : "");
	else if (*v->why)
		frag_answer_conclude(
			a, "did not complete on %s with %s, though its peak of %s fits: %s", label,
			names, FRAG_BYTES(need), v->why);
	else if (v->named && v->members_count)
		frag_answer_conclude(a,
				     "does not fit %s: with %s it still reserves %s%s, and the "
				     "card has %s beside the margin",
				     label, names, FRAG_BYTES(need), setting,
				     FRAG_BYTES(frag_advising_room(v, true)));
	else if (v->members_count)
		frag_answer_conclude(
			a, "with %s it needs %s%s in place of %s%s%s", names, FRAG_BYTES(need),
			setting, FRAG_BYTES(before),
			card ? "; the smallest known card with room for that and a margin is " : "",
			card ? card->label : "");
	else if (v->edited)
		say_edited(v, a);
	else if ((why = frag_advising_unknown(v, &untried)))
		frag_answer_conclude(a,
				     "%zu of %zu changes could not be tried (%s), so whether "
				     "anything helps is unknown",
				     untried, v->count, why);
	else
		say_none(v, a);
	if (*setting && v->members_count)
		frag_answer_paste(a, "to use it",
				  "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

/* Lists the tried changes that save less, inside or outside of compiled models. */
static void say_idle(const struct frag_advising *v, bool compiled, const char *what,
		     struct frag_answer *a)
{
	const char *idle = "";

	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].tried && !helps(&v->list[i]) && v->list[i].compiled == compiled)
			idle = frag_answer_print(a, "%s%s%s", idle, *idle ? ", " : "",
						 v->list[i].change);
	if (*idle)
		frag_answer_item(a, "tried without effect%s: %s", what, idle);
}

static void say_changes(const struct frag_advising *v, struct frag_answer *a)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct frag_advice *x = &v->list[i];

		if (helps(x))
			frag_answer_item(a, "%s: %s%s%s", x->change, x->what,
					 *x->numerics ? "; changes numbers: " : "", x->numerics);
	}
	say_idle(v, false, "", a);
	say_idle(v, true, " within torch.compile's graph", a);
	for (size_t i = 0; i < v->count; i++)
		if (*v->list[i].left_out)
			frag_answer_item(a, "left out: %s: %s", v->list[i].change,
					 v->list[i].left_out);
}

/* The script, or else the program. */
static const char *program_name(const struct frag_advising *v)
{
	char **word = v->program.words;

	while (*word && !frag_stem(*word, ".py"))
		word++;
	return *word ? *word : v->program.words[0];
}

static void remarks(const struct frag_advising *v, struct frag_answer *a)
{
	const struct frag_advice_peaks *p = &v->first.peaks;
	const bool torch = p->expandable != UINT64_MAX;

	if (v->edited)
		frag_answer_remark(a,
				   "cufrag %s advise: %s, edited and replayed: what is not marked "
				   "as recorded is an estimate",
				   FRAG_VERSION, v->name);
	else
		frag_answer_remark(a,
				   "cufrag %s advise: %s, tried %zu changes in %s, %llu steps each",
				   FRAG_VERSION, program_name(v), v->tried, FRAG_NS(v->took_ns),
				   (unsigned long long)v->first.steps);
	frag_answer_remark(
		a, "unchanged: requested %s, reserved %s%s%s%s%s%s", FRAG_BYTES(p->requested),
		FRAG_BYTES(v->unchanged.before.reserved ?: p->reserved), v->edited ? " under " : "",
		v->edited ? v->unchanged.change : "",
		v->unchanged.before.reserved ? " (recorded)" : "",
		torch ? ", with expandable segments " : "", torch ? FRAG_BYTES(p->expandable) : "");
	if (!v->edited)
		frag_answer_remark(
			a, "pretended card: %s%s; modelled time: a roofline, and 25 GB/s over PCIe",
			v->card.label,
			v->enlarged ? ", with more memory, because the program runs out of it"
				    : "");
	frag_answer_remark(a,
			   "smallest card: by bytes; one of another compute capability may choose "
			   "other kernels (cufrag fit)");
}

/* ---- memory over time, before and after; drawn as replays are (memory.gp) -------------------- */

#define COLUMNS(X, s) \
	X(s, INT, series, series) \
	X(s, TEXT, policy, name) \
	X(s, REAL, time_s, (double)(p->time_us - c->points[0].time_us) / 1e6) \
	X(s, BYTES, requested_max_bytes, p->requested) \
	X(s, BYTES, active_max_bytes, p->active) \
	X(s, BYTES, reserved_max_bytes, requested ? p->requested : p->reserved) \
	X(s, TEXT, state, i + 1 < c->count ? "run" : "end") \
	X(s, BYTES, lower_bound_bytes, UINT64_MAX) \
	X(s, BYTES, placement_bytes, UINT64_MAX) \
	X(s, BYTES, capacity_bytes, UINT64_MAX) \
	X(s, BYTES, card_bytes, card ? frag_advising_room(v, false) : UINT64_MAX) \
	X(s, TEXT, card, card ? v->card.label : NULL)
FRAG_CSV_ROW(curve_row, COLUMNS)

/* Adds a curve; requested: what the program asked for, in place of what was reserved. */
static size_t add_curve(const struct frag_advising *v, int64_t series, const char *name,
			const struct frag_curve *c, bool requested, struct curve_row *rows,
			size_t count, struct frag_plot_curve *line)
{
	const bool card = v->named;

	*line = (struct frag_plot_curve){ .first = count, .last = count + c->count - 1 };
	for (unsigned i = 0; i < c->count; i++) {
		const struct frag_curve_sample *p = &c->points[i];
		struct curve_row *row = &rows[count++];

		*row = FRAG_CSV_VALUES(curve_row, COLUMNS);
		line->end_x = row->time_s;
		line->end_bytes = (double)row->reserved_max_bytes;
		line->peak_bytes = FRAG_MAX(line->peak_bytes, line->end_bytes);
	}
	return count;
}

/* Two lines each: with more, the script would cut off what is far above the others. */
static void draw_one(const struct frag_advising *v, const struct frag_trial *after,
		     const char *names, bool requested, struct frag_answer *a)
{
	const struct frag_advice_peaks *was = &v->first.peaks, *is = &after->peaks;
	const char *what = requested ? "requested" : "reserved";
	const size_t most = v->first.curve.count + after->curve.count;
	struct curve_row *rows = frag_answer_new(a, most, sizeof(*rows));
	struct frag_plot_curve lines[2];
	struct frag_text extra = { 0 };
	size_t n;

	if (!rows)
		return;
	n = add_curve(v, 0, "unchanged", &v->first.curve, requested, rows, 0, &lines[0]);
	n = add_curve(v, 1, frag_answer_print(a, "with %s", names), &after->curve, requested, rows,
		      n, &lines[1]);
	frag_plot_curves(lines, 2,
			 &(struct frag_plot_lines){ .card_bytes = (double)rows[0].card_bytes },
			 true, &extra);
	frag_plot_value(&extra, "STEPS", 0);
	frag_answer_chart(
		a,
		&(struct frag_answer_chart){
			.script = "memory",
			.base = requested ? "advise-requested" : "advise",
			.heading = requested ? "Requested before and after"
					     : "Reserved before and after",
			.extra = frag_answer_take(a, &extra),
			.title = frag_answer_print(
				a, "%s: at most %s %s in place of %s", names,
				FRAG_BYTES(requested ? is->requested : frag_advice_need(is)), what,
				FRAG_BYTES(requested ? was->requested : frag_advice_need(was))),
			.subtitle = frag_answer_print(a, "%s over %s time", what,
						      v->edited ? "recorded" : "modelled"),
			.caption = requested ? "Memory that the program requests, unchanged and "
					       "with the change."
					     : "Memory that the program reserves, unchanged and "
					       "with the change, each in the setting that is "
					       "compared. Grey: requested memory of the unchanged "
					       "program.",
			.shape = &curve_row_shape,
			.rows = { rows, n } });
}

static void draw(const struct frag_advising *v, struct frag_answer *a)
{
	struct frag_trial after = v->best;
	const char *names = names_of(v, a);

	if (!v->members_count && v->count && helps(v->list)) {
		after = (struct frag_trial){ .peaks = v->list->after, .curve = v->list->curve };
		names = v->list->change;
	}
	for (unsigned requested = 0; requested < 2; requested++)
		if (v->first.curve.count && after.curve.count)
			draw_one(v, &after, names, requested, a);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int frag_advise_answer(const struct frag_advising *v, struct frag_answer *a, struct frag_err *err)
{
	struct change_row *rows = frag_answer_new(a, v->count + 1, sizeof(*rows));
	struct advise *data = frag_answer_new(a, 1, sizeof(*data));
	size_t shown = 0;

	FRAG_CHECK_ALLOC(rows && data ? rows : NULL, "answer", err);
	for (size_t i = 0; i < v->count; i++) {
		rows[i] = change_row(&v->list[i], (double)v->first.span_ns / 1e9, a);
		shown += helps(&v->list[i]); /* they come first */
	}
	*data = FRAG_ROW_VALUES(advise, ADVISE_ROW);
	a->command = "advise";
	a->title = "What to change in the program";
	a->question = "Which change saves most memory?";
	a->estimated = a->estimated || !v->edited;
	frag_answer_data(a, &frag_advise_shape, data);
	frag_answer_csv(a, &change_shape, rows, v->count);
	remarks(v, a);
	if (shown)
		frag_answer_table(a, &change_shape, rows, shown);
	say_changes(v, a);
	say_best(v, a);
	draw(v, a);
	return 0;
}
