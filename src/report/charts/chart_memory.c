/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: what each policy reserves above what the program asks for. */
#include "chart.h"

#include "answer/draw/plot_values.h"

#include <string.h>

#define COLUMNS(X, s) \
	X(s, INT, series, series) \
	X(s, TEXT, policy, series < 0 ? state : c->job->section->results[series].policy) \
	X(s, COUNT, event, event) \
	X(s, REAL, time_s, frag_chart_seconds(c->job, us)) \
	X(s, BYTES, requested_min_bytes, w->requested_min) \
	X(s, BYTES, requested_max_bytes, w->requested_max) \
	X(s, BYTES, active_min_bytes, w->active_min) \
	X(s, BYTES, active_max_bytes, w->active_max) \
	X(s, BYTES, reserved_min_bytes, w->reserved_min) \
	X(s, BYTES, reserved_max_bytes, w->reserved_max) \
	X(s, TEXT, state, state) \
	FRAG_CHART_ROOM(X, s)
FRAG_CSV_ROW(row, COLUMNS)

struct curves {
	const struct frag_chart_job *job;
	struct frag_chart_room room;
	struct row *list;
	size_t count;
};

/* series: a policy, or -1, which has no memory. */
static void add_row(struct curves *c, int64_t series, uint64_t event, uint64_t us,
		    const struct frag_window *w, const char *state)
{
	static const struct frag_chart_room none = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
						     NULL };
	const struct frag_chart_room *room = series < 0 ? &none : &c->room;

	c->list[c->count++] = FRAG_CSV_VALUES(row, COLUMNS);
}

/*
 * A row holds from its event to the next row's: extremes of a window, so no peak is lost. The last
 * row repeats the last values at the end of the curve; its state says why the curve ends.
 */
static void add_curve(struct curves *c, size_t k)
{
	const struct frag_result *r = &c->job->section->results[k];
	const struct frag_window *w = r->series.windows;
	size_t n = r->series.count;
	struct frag_window last;

	for (size_t i = 0; i < n; i++)
		add_row(c, (int64_t)k, w[i].first_event, w[i].first_us, &w[i], "run");
	if (!n)
		return;
	last = w[n - 1];
	last.requested_min = last.requested_max = last.requested_last;
	last.active_min = last.active_max = last.active_last;
	last.reserved_min = last.reserved_max = last.reserved_last;
	add_row(c, (int64_t)k, last.last_event + 1, last.last_us, &last,
		frag_result_stopped(r) ? "oom" : "end");
}

/* More would run into each other. */
#define STEPS_MAX 100u

static bool is_step(const struct frag_event *ev)
{
	return ev->kind == FRAG_EV_MARK && ev->flags & FRAG_EVF_STEP && !(ev->flags & FRAG_EVF_END);
}

static size_t steps_of(const struct frag_trace_dev *d)
{
	size_t count = 0;

	for (size_t i = 0; d && d->events && i < d->events_count; i++)
		count += is_step(&d->events[i]);
	return count;
}

/* A row of series -1 where a step begins; every n-th where there are many. */
static void add_steps(struct curves *c)
{
	const struct frag_trace_dev *d = c->job->section->events;
	size_t count = steps_of(d), seen = 0;
	struct frag_window none;

	memset(&none, 0xff, sizeof(none));
	for (size_t i = 0; count && i < d->events_count; i++)
		if (is_step(&d->events[i]) && seen++ % ((count + STEPS_MAX - 1) / STEPS_MAX) == 0)
			add_row(c, -1, i, d->events[i].time_us, &none, "step");
}

static struct frag_rows rows(const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	struct curves c = { .job = job };
	size_t most = 0;

	for (size_t k = 0; k < s->count; k++)
		most += s->results[k].series.count;
	c.list = frag_answer_new(job->answer, most + s->count + STEPS_MAX, sizeof(*c.list));
	if (!c.list || !most)
		return (struct frag_rows){ 0 };
	frag_chart_room(job, &c.room);
	for (size_t k = 0; k < s->count; k++)
		add_curve(&c, k);
	add_steps(&c);
	return (struct frag_rows){ c.list, c.count };
}

/* The number of a window's row is that of its place: windows of a policy, then a last row. */
static const char *extra(const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	struct frag_plot_curve *curves = frag_answer_new(job->answer, s->count, sizeof(*curves));
	bool seconds = *frag_chart_x_unit(job) == 's';
	struct frag_text out = { 0 };
	struct frag_chart_room room;
	size_t row = 0;

	for (size_t k = 0; curves && k < s->count; k++) {
		const struct frag_series *series = &s->results[k].series;
		struct frag_plot_curve *c = &curves[k];
		const struct frag_window *last;

		if (!series->count)
			continue;
		last = &series->windows[series->count - 1];
		c->first = row;
		row += series->count + 1;
		c->last = row - 1;
		for (size_t i = 0; i < series->count; i++)
			c->peak_bytes =
				FRAG_MAX(c->peak_bytes, (double)series->windows[i].reserved_max);
		c->end_x = seconds ? frag_chart_seconds(job, last->last_us)
				   : (double)(last->last_event + 1);
		c->end_bytes = (double)last->reserved_last;
		c->oom = frag_result_stopped(&s->results[k]);
	}
	frag_chart_room(job, &room);
	frag_plot_curves(curves, curves ? s->count : 0,
			 &(struct frag_plot_lines){
				 (double)room.lower_bound_bytes, (double)room.placement_bytes,
				 (double)room.capacity_bytes, (double)room.card_bytes },
			 seconds, &out);
	frag_plot_value(&out, "STEPS", steps_of(s->events) > 0);
	return frag_answer_take(job->answer, &out);
}

/* "'a' peaks at 9.65 GiB, 4.78 GiB (33 %) below the recorded 14.43 GiB": of what is advised. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *base = &s->results[s->baseline], *r;
	const char *bytes, *ratio;
	struct frag_advice a;
	uint64_t x, y, by;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX) {
		frag_text_add(&out->text, "Every policy runs out of memory");
		return;
	}
	r = &s->results[a.pick];
	x = r->m.peak_reserved_bytes;
	y = base->m.peak_reserved_bytes;
	frag_text_addf(&out->text, "%s peaks at %s", r->policy,
		       frag_title_bytes(out, "peak_reserved_bytes", x));
	if (r == base) {
		frag_text_add(&out->text, s->count > 1 ? ", and none of its kind needs less" : "");
	} else if (!base->completed) {
		frag_text_addf(&out->text, "; %s runs out of memory", base->policy);
	} else if (x != y && y && !s->not_reproduced_bytes) {
		by = x < y ? y - x : x - y;
		bytes = frag_title_bytes(out, "difference_bytes", by);
		ratio = frag_title_percent(out, "difference_ratio", (double)by / (double)y, 0);
		frag_text_addf(&out->text, ", %s (%s) %s %s", bytes, ratio,
			       x < y ? "below" : "above", base->policy);
	}
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t failed = 0;

	for (size_t k = 0; k < job->section->count; k++)
		failed += frag_result_stopped(&job->section->results[k]);
	if (!job->section->optimum.hidden)
		frag_text_add(out, " Dashed: the lower bound, the largest sum of live requests.");
	if (job->section->optimum.placed)
		frag_text_add(out, " Dotted, where it can be told apart from that: one region into "
				   "which all requests fit if they are known in advance.");
	if (failed)
		frag_text_add(out, " A cross marks where a policy ran out of memory.");
}

const struct frag_chart_ops frag_chart_memory = {
	.name = "memory",
	.rank = 10,
	.heading = "Memory over time",
	FRAG_CHART_HOOKS,
	.caption = "Coloured lines: memory each policy has taken from the card. Grey area: what "
		   "the program asked for and has not freed; no policy can go below it. The gap "
		   "between a line and the area is memory the policy holds but the program cannot "
		   "use.",
	.note = note,
	.extra = extra,
};
