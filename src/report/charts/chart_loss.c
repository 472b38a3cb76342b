/* SPDX-License-Identifier: Apache-2.0 */
/* Loss by cause over time, one panel per policy. */
#include "chart.h"

#include <math.h>

#include "answer/draw/plot_values.h"

#define PANELS_MAX 12u /* more would be too small to read */
/* Samples drawn, all panels together: a panel has about as many pixels across, and each
 * sample costs six rectangles in the picture. */
#define SAMPLES_MAX 720u

#define COLUMNS(X, s) \
	X(s, COUNT, panel, p->panel) \
	X(s, TEXT, policy, p->r->policy) \
	X(s, COUNT, event, l->event) \
	X(s, REAL, time_s, frag_chart_seconds(p->job, l->time_us)) \
	FRAG_CHART_CAUSES(X, s) \
	X(s, BYTES, reserved_bytes, l->reserved_bytes)
FRAG_CSV_ROW(row, COLUMNS)

struct panels {
	const struct frag_chart_job *job;
	struct row *list;
	size_t count, panel;
	double first[PANELS_MAX], last[PANELS_MAX], peak[PANELS_MAX]; /* rows and bytes of each */
	const struct frag_result *r;				      /* of this panel */
};

static void add_row(struct panels *p, const struct frag_loss *l)
{
	p->list[p->count++] = FRAG_CSV_VALUES(row, COLUMNS);
}

/* The last sample again, where the curve ends: a row holds until the next one. */
static void add_end(struct panels *p)
{
	const struct frag_series *s = &p->r->series;
	struct frag_loss end;

	if (!s->losses_count || !s->count)
		return;
	end = s->losses[s->losses_count - 1];
	if (p->r->peak.event > end.event)
		end = p->r->peak;
	end.event = s->windows[s->count - 1].last_event + 1;
	end.time_us = s->windows[s->count - 1].last_us;
	add_row(p, &end);
}

/* Of `step` samples from i on the one that shows most. */
static const struct frag_loss *highest(const struct frag_series *s, size_t i, size_t step)
{
	const struct frag_loss *best = &s->losses[i];

	for (size_t k = i; k < i + step && k < s->losses_count; k++) {
		const struct frag_loss *l = &s->losses[k];

		if (l->reserved_bytes > best->reserved_bytes ||
		    (l->reserved_bytes == best->reserved_bytes &&
		     l->requested_bytes > best->requested_bytes))
			best = l;
	}
	return best;
}

/* Samples at window ends, with the moment of the peak put in where it belongs. */
static void add_policy(struct panels *p, size_t samples)
{
	const struct frag_series *series = &p->r->series;
	const struct frag_loss *peak = &p->r->peak;
	size_t step = (series->losses_count + samples - 1) / samples;
	bool peak_done = peak->reserved_bytes == 0;

	for (size_t i = 0; i < series->losses_count; i += step) {
		const struct frag_loss *l = highest(series, i, step);

		if (!peak_done && peak->event <= l->event) {
			if (peak->event < l->event)
				add_row(p, peak);
			peak_done = true;
		}
		add_row(p, l);
	}
	if (!peak_done)
		add_row(p, peak);
	add_end(p);
}

/* All panels; their number. */
static size_t add_panels(struct panels *p, const struct frag_chart_job *job)
{
	size_t panels = FRAG_MIN(job->section->count, (size_t)PANELS_MAX);

	/* beside its samples a panel has its peak and its end */
	p->list = frag_answer_new(job->answer, SAMPLES_MAX + 3 * panels, sizeof(*p->list));
	for (p->job = job; p->list && p->panel < panels; p->panel++) {
		p->r = frag_chart_result(job, p->panel);
		p->first[p->panel] = (double)p->count;
		add_policy(p, SAMPLES_MAX / panels);
		p->last[p->panel] = (double)p->count - 1;
		for (size_t i = (size_t)p->first[p->panel]; i < p->count; i++)
			p->peak[p->panel] =
				FRAG_MAX(p->peak[p->panel], (double)p->list[i].reserved_bytes);
	}
	return p->panel;
}

static struct frag_rows rows(const struct frag_chart_job *job)
{
	struct panels p = { 0 };
	bool any = false;

	for (size_t i = 0, n = add_panels(&p, job); i < n; i++)
		any |= frag_chart_result(job, i)->series.losses_count > 1;
	return (struct frag_rows){ p.list, any ? p.count : 0 };
}

/* Rows and peaks of the panels; one scale for all, unless one would be too flat. */
static const char *extra(const struct frag_chart_job *job)
{
	bool seconds = *frag_chart_x_unit(job) == 's';
	struct frag_text out = { 0 };
	struct panels p = { 0 };
	double top = 0, low = INFINITY, last_x = 0;
	size_t n = add_panels(&p, job);

	for (size_t i = 0; i < n; i++) {
		top = FRAG_MAX(top, p.peak[i]);
		low = FRAG_MIN(low, p.peak[i]);
	}
	for (size_t i = 0; i < p.count; i++)
		last_x = FRAG_MAX(last_x, seconds ? p.list[i].time_s : (double)p.list[i].event);
	frag_plot_array(&out, "FIRST", p.first, n);
	frag_plot_array(&out, "LAST", p.last, n);
	frag_plot_array(&out, "PEAK", p.peak, n);
	frag_plot_value(&out, "SECONDS", seconds);
	frag_plot_value(&out, "LAST_X", last_x);
	frag_plot_value(&out, "TOP", top);
	frag_plot_value(&out, "OWN", top > 3 * low);
	return frag_answer_take(job->answer, &out);
}

/* How much the baseline holds that is free and cannot be given back. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *r = &s->results[s->baseline];
	uint64_t most = 0;

	for (size_t i = 0; i < r->series.losses_count; i++)
		most = FRAG_MAX(most, r->series.losses[i].non_releasable_bytes);
	if (!r->series.losses_count)
		return;
	frag_text_addf(&out->text, "With %s up to %s are free but cannot be given back", r->policy,
		       frag_title_bytes(out, "non_releasable_bytes", most));
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	if (job->section->count > PANELS_MAX)
		frag_text_addf(out, " Only the best %u of %zu policies are shown.", PANELS_MAX,
			       job->section->count);
}

const struct frag_chart_ops frag_chart_loss = {
	.name = "loss",
	.rank = 30,
	.heading = "Where reserved memory goes",
	FRAG_CHART_HOOKS,
	.caption = "Reserved memory of each policy over time, split by cause. Grey is in use; "
		   "every colour is loss. Growing non-releasable memory is fragmentation that "
		   "empty_cache cannot undo; releasable memory is a cache that it can.",
	.note = note,
	.extra = extra,
};
