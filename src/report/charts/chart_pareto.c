/* SPDX-License-Identifier: Apache-2.0 */
/* Memory against time in the driver: which policies are not beaten in both. */
#include "chart.h"

#include <math.h>

#include "answer/draw/plot_values.h"

/* No completed policy is at least as good in both and better in one. */
static bool on_front(const struct frag_section *s, size_t k)
{
	const struct frag_metrics *m = &s->results[k].m;

	if (!s->results[k].completed)
		return false;
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_metrics *o = &s->results[i].m;

		if (s->results[i].completed && o->peak_reserved_bytes <= m->peak_reserved_bytes &&
		    o->modelled_ns <= m->modelled_ns &&
		    (o->peak_reserved_bytes < m->peak_reserved_bytes ||
		     o->modelled_ns < m->modelled_ns))
			return false;
	}
	return true;
}

#define COLUMNS(X, s) \
	X(s, COUNT, series, k) \
	X(s, TEXT, policy, r->policy) \
	X(s, COUNT, completed, r->completed) \
	X(s, NS, driver_ns, r->m.modelled_ns) \
	X(s, BYTES, peak_reserved_bytes, r->m.peak_reserved_bytes) \
	X(s, BYTES, lower_bound_bytes, frag_section_bound(section)) \
	X(s, COUNT, front, on_front(section, k))
FRAG_CSV_ROW(row, COLUMNS)

static struct frag_rows rows(const struct frag_chart_job *job)
{
	const struct frag_section *section = job->section;
	struct row *list = frag_answer_new(job->answer, section->count, sizeof(*list));

	for (size_t k = 0; list && k < section->count; k++) {
		const struct frag_result *r = &section->results[k];

		list[k] = FRAG_CSV_VALUES(row, COLUMNS);
	}
	/* one policy is unbeaten */
	return (struct frag_rows){ list, section->count > 1 ? section->count : 0 };
}

static const char *extra(const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	struct frag_plot_point *list = frag_answer_new(job->answer, s->count, sizeof(*list));
	struct frag_text out = { 0 };

	for (size_t k = 0; list && k < s->count; k++)
		list[k] = (struct frag_plot_point){ (double)s->results[k].m.modelled_ns,
						    (double)s->results[k].m.peak_reserved_bytes,
						    s->results[k].completed };
	frag_plot_pareto(list, list ? s->count : 0, (double)frag_section_bound(s),
			 !job->report->card.modelled, &out);
	return frag_answer_take(job->answer, &out);
}

static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const char *unbeaten, *all;
	size_t front = 0;

	for (size_t k = 0; k < job->section->count; k++)
		front += on_front(job->section, k);
	if (!front)
		return;
	unbeaten = frag_title_count(out, "front_count", front);
	all = frag_title_count(out, "policies_count", job->section->count);
	frag_text_addf(&out->text,
		       "%s of %s policies are not beaten in both memory and driver time", unbeaten,
		       all);
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	const char *comma = " ";

	for (size_t i = 0; i < job->section->count; i++) {
		if (!on_front(job->section, job->order[i]))
			continue;
		frag_text_addf(out, "%s%s", comma, frag_chart_result(job, i)->policy);
		comma = ", ";
	}
	frag_text_add(out, *comma == ' ' ? " none." : ".");
}

const struct frag_chart_ops frag_chart_pareto = {
	.name = "pareto",
	.rank = 50,
	.heading = "Memory against driver time",
	FRAG_CHART_HOOKS,
	.caption = "Down is less memory, left is less time in the driver. Policies with a ring are "
		   "not beaten in both at once:",
	.note = note,
	.extra = extra,
};
