/* SPDX-License-Identifier: Apache-2.0 */
/* Calls into the driver and the time they take, per policy. */
#include "chart.h"

#include <inttypes.h>

static void add_row(size_t rank, const char *policy, const char *call,
		    const struct frag_call_stat *st, struct frag_text *out)
{
	frag_text_addf(out, "%zu,", rank);
	frag_text_add_csv(out, policy);
	frag_text_add(out, ",");
	frag_text_add_csv(out, call);
	frag_text_addf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", st->count,
		       st->failed, st->bytes, st->ns);
}

/* One row per kind of call that was made, and one that sums them up ("all"). */
static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "rank,policy,call,count,failed,bytes,ns\n");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];
		struct frag_call_stat all = { 0 };

		for (int c = 0; c < FRAG_CALL_COUNT; c++) {
			const struct frag_call_stat *st = &r->calls[c];

			if (!st->count && !st->failed)
				continue;
			all.count += st->count;
			all.failed += st->failed;
			all.bytes += st->bytes;
			all.ns += st->ns;
			add_row(i, r->policy, frag_call_name((enum frag_call)c), st, out);
		}
		add_row(i, r->policy, "all", &all, out);
	}
}

static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *most = &s->results[0];

	for (size_t i = 1; i < s->count; i++)
		if (s->results[i].m.modelled_ns > most->m.modelled_ns)
			most = &s->results[i];
	if (!most->m.modelled_ns)
		return;
	frag_text_addf(out, "%s spends most in the driver: ", most->policy);
	frag_text_add_ns(out, most->m.modelled_ns);
	if (s->duration_us)
		frag_text_addf(out, ", %.2g %% of the recorded time",
			       (double)most->m.modelled_ns / 10.0 / (double)s->duration_us);
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	(void)job;
	frag_text_add(out,
		      "Left: how often each policy called the driver. Right: time spent in those "
		      "calls. Both axes are logarithmic. A policy that saves memory by "
		      "mapping or freeing often pays for it here; policies are in the order "
		      "of their peak.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Dot plot of driver calls and driver time per policy. ");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		frag_text_addf(out, "%s%s %" PRIu64 " calls, ", i ? "; " : "", r->policy,
			       r->m.driver_calls_count);
		frag_text_add_ns(out, r->m.modelled_ns);
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_calls = {
	.name = "calls",
	.rank = 40,
	.heading = "Driver calls and driver time",
	.finding = finding,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_time_kind,
};
