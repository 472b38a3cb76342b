/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time, before and after: the program as it is, and with what is advised; drawn as replays are (memory.gp). */
#include "answer/draw/plot_values.h"
#include "answer/row.h"
#include "trial.h"

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
	X(s, BYTES, card_bytes, card ? frag_advising_room(d->v, false) : UINT64_MAX) \
	X(s, TEXT, card, card ? d->v->card.label : NULL)
FRAG_CSV_ROW(curve_row, COLUMNS)

struct drawing {
	const struct frag_advising *v;
	struct curve_row *rows;
	size_t count;
};

/* requested: what the program asked for, in place of what was reserved. */
static void add(struct drawing *d, int64_t series, const char *name, const struct frag_curve *c,
		bool requested)
{
	const bool card = d->v->named;

	for (unsigned i = 0; i < c->count; i++) {
		const struct frag_curve_sample *p = &c->points[i];

		d->rows[d->count++] = FRAG_CSV_VALUES(curve_row, COLUMNS);
	}
}

static void describe(struct frag_plot_curve *c, const struct curve_row *rows, size_t first,
		     size_t end)
{
	*c = (struct frag_plot_curve){ .first = first,
				       .last = end - 1,
				       .end_x = rows[end - 1].time_s,
				       .end_bytes = (double)rows[end - 1].reserved_max_bytes };
	for (size_t i = first; i < end; i++)
		c->peak_bytes = FRAG_MAX(c->peak_bytes, (double)rows[i].reserved_max_bytes);
}

/* Two lines each: with more, the script would cut off what is far above the others. */
static void draw(const struct frag_advising *v, const struct frag_trial *after, const char *names,
		 bool requested, struct frag_answer *a)
{
	const struct frag_curve *before = &v->first.curve;
	const char *what = requested ? "requested" : "reserved";
	struct drawing d = { .v = v };
	struct frag_plot_curve curves[2];
	struct frag_text extra = { 0 };
	size_t middle;

	d.rows = frag_answer_new(a, before->count + after->curve.count, sizeof(*d.rows));
	if (!d.rows)
		return;
	add(&d, 0, "unchanged", before, requested);
	middle = d.count;
	add(&d, 1, frag_answer_print(a, "with %s", names), &after->curve, requested);
	describe(&curves[0], d.rows, 0, middle);
	describe(&curves[1], d.rows, middle, d.count);
	frag_plot_curves(curves, 2,
			 &(struct frag_plot_lines){ .card_bytes = (double)d.rows[0].card_bytes },
			 true, &extra);
	frag_plot_value(&extra, "STEPS", 0);
	frag_answer_chart(
		a, &(struct frag_answer_chart){
			   .script = "memory",
			   .base = requested ? "advise-requested" : "advise",
			   .heading = requested ? "Requested before and after"
						: "Reserved before and after",
			   .extra = frag_answer_take(a, &extra),
			   .title = frag_answer_print(
				   a, "%s: at most %s %s in place of %s", names,
				   FRAG_BYTES(requested ? after->peaks.requested
							: frag_advice_need(&after->peaks)),
				   what,
				   FRAG_BYTES(requested ? v->first.peaks.requested
							: frag_advice_need(&v->first.peaks))),
			   .subtitle = frag_answer_print(a, "%s over %s time", what,
							 *v->name ? "recorded" : "modelled"),
			   .caption = requested ? "Memory that the program requests, unchanged and "
						  "with the change."
						: "Memory that the program reserves, unchanged and "
						  "with the change, each in "
						  "the allocator's better setting. Grey: requested "
						  "memory of the unchanged "
						  "program.",
			   .shape = &curve_row_shape,
			   .rows = { d.rows, d.count } });
}

void frag_advise_chart(const struct frag_advising *v, const struct frag_trial *after,
		       const char *names, struct frag_answer *a)
{
	if (!v->first.curve.count || !after->curve.count)
		return;
	draw(v, after, names, false, a);
	draw(v, after, names, true, a);
}
