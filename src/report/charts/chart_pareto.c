/* SPDX-License-Identifier: Apache-2.0 */
/* Memory against time in the driver: which policies are not beaten in both. */
#include "chart.h"

#include <inttypes.h>

/* Nobody who completed is at least as good in both and better in one. */
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

static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_section *s = job->section;

	frag_text_add(out, "series,policy,completed,driver_ns,peak_reserved_bytes,"
			   "lower_bound_bytes,front\n");
	for (size_t k = 0; k < s->count; k++) {
		const struct frag_result *r = &s->results[k];

		frag_text_addf(out, "%zu,", k);
		frag_text_add_csv(out, r->policy);
		frag_text_addf(out, ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", r->completed,
			       r->m.modelled_ns, r->m.peak_reserved_bytes, frag_section_bound(s),
			       on_front(s, k));
	}
}

static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t front = 0;

	for (size_t k = 0; k < job->section->count; k++)
		front += on_front(job->section, k);
	if (front)
		frag_text_addf(out,
			       "%zu of %zu policies are not beaten in both memory and driver time",
			       front, job->section->count);
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	bool said = false;

	frag_text_add(out,
		      "Down is less memory, left is less time in the driver. Policies with a ring "
		      "are not beaten in both at once: ");
	for (size_t i = 0; i < job->section->count; i++) {
		if (!on_front(job->section, job->order[i]))
			continue;
		frag_text_addf(out, "%s%s", said ? ", " : "",
			       job->section->results[job->order[i]].policy);
		said = true;
	}
	frag_text_add(out, said ? "." : "none.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Scatter of peak reserved memory against driver time. ");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		frag_text_addf(out, "%s%s ", i ? "; " : "", r->policy);
		frag_text_add_bytes(out, r->m.peak_reserved_bytes);
		frag_text_add(out, " and ");
		frag_text_add_ns(out, r->m.modelled_ns);
	}
	frag_text_add(out, ".");
}

static bool wanted(const struct frag_chart_job *job)
{
	return job->section->count > 1;
}

const struct frag_chart_ops frag_chart_pareto = {
	.name = "pareto",
	.rank = 50,
	.heading = "Memory against driver time",
	.finding = finding,
	.wanted = wanted,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_time_kind,
};
