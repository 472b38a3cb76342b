/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percentiles of latency per policy and class: host time (measured) and
 * driver time (modelled on sim) in two panels, never in one.
 */
#include "chart.h"

#include <inttypes.h>

#define CLASSES (FRAG_CLASS_COUNT + 1) /* the last one: free */
#define DRAWN_MAX 8u		       /* policies in the picture; the CSV has all */

static const struct frag_hist *hist_of(const struct frag_result *r, int cls, bool host)
{
	if (cls == FRAG_CLASS_COUNT)
		return host ? &r->free_host_ns : &r->free_modelled_ns;
	return host ? &r->alloc_host_ns[cls] : &r->alloc_modelled_ns[cls];
}

/* Is there anything that a logarithmic axis can show? */
static bool drawable(const struct frag_chart_job *job, const struct frag_result *r, int cls)
{
	return hist_of(r, cls, false)->max ||
	       (!job->report->omit_host && hist_of(r, cls, true)->max);
}

static bool has_data(const struct frag_chart_job *job, const struct frag_result *r, int cls)
{
	return hist_of(r, cls, false)->count ||
	       (!job->report->omit_host && hist_of(r, cls, true)->count);
}

static bool has(const struct frag_chart_job *job, const struct frag_result *r)
{
	for (int c = 0; c < CLASSES; c++)
		if (drawable(job, r, c))
			return true;
	return false;
}

static void add_row(long row, const char *cls, const char *policy, const char *clock,
		    const struct frag_hist *h, struct frag_text *out)
{
	if (!h->count)
		return;
	frag_text_addf(out, "%ld,", row);
	frag_text_add_csv(out, policy);
	frag_text_addf(out,
		       ",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		       ",%" PRIu64 ",%" PRIu64 "\n",
		       cls, clock, h->count, h->min, frag_hist_quantile(h, 0.5),
		       frag_hist_quantile(h, 0.9), frag_hist_quantile(h, 0.99),
		       frag_hist_quantile(h, 0.999), h->max, h->sum);
}

/* `row`: line of the chart, -1 = not drawn; every class has a line for its heading. */
static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	long next = 0;

	frag_text_add(out, "row,policy,class,clock,count,min_ns,p50_ns,p90_ns,p99_ns,p99.9_ns,"
			   "max_ns,total_ns\n");
	for (int c = 0; c < CLASSES; c++) {
		const char *cls =
			c == FRAG_CLASS_COUNT ? "free" : frag_class_name((enum frag_class)c);
		bool headed = false;

		for (size_t i = 0; i < job->section->count; i++) {
			const struct frag_result *r = &job->section->results[job->order[i]];
			long row = -1;

			if (!has_data(job, r, c))
				continue;
			if (i < DRAWN_MAX && drawable(job, r, c)) {
				next += !headed;
				headed = true;
				row = next++;
			}
			add_row(row, cls, r->policy, "driver", hist_of(r, c, false), out);
			if (!job->report->omit_host)
				add_row(row, cls, r->policy, "host", hist_of(r, c, true), out);
		}
	}
}

/* What new memory costs with the baseline. */
static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_result *r = &job->section->results[job->section->baseline];
	const struct frag_hist *grow = &r->alloc_modelled_ns[FRAG_CLASS_GROW];

	if (!grow->count || !grow->max)
		return;
	frag_text_addf(out, "With %s new memory costs ", r->policy);
	frag_text_add_ns(out, frag_hist_quantile(grow, 0.5));
	frag_text_add(out, " in the driver (median)");
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_addf(out,
		       "Time per call by how the request was served (hit: a free block as it "
		       "was; split: part of a larger one; grow: new memory; \xe2\x80\xa6). Dot: "
		       "median; thick bar: median to 99th percentile; thin bar: minimum to "
		       "maximum. Driver time is %s.",
		       job->report->card.modelled ? "modelled from a profile of a real card"
						  : "measured");
	if (!job->report->omit_host)
		frag_text_add(out, " Host time is what the policy itself took on this machine, "
				   "measured on a sample of the calls.");
	frag_text_add(out, " Calls that need no driver are not drawn there.");
	if (job->section->count > DRAWN_MAX)
		frag_text_addf(out, " The picture shows the best %u of %zu policies, the CSV all.",
			       DRAWN_MAX, job->section->count);
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out,
		      "Percentiles of time per call, by policy and class, on logarithmic axes. "
		      "99th percentile of driver time where memory had to grow: ");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		frag_text_addf(out, "%s%s ", i ? "; " : "", r->policy);
		frag_text_add_ns(out,
				 frag_hist_quantile(&r->alloc_modelled_ns[FRAG_CLASS_GROW], 0.99));
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_latency = {
	.name = "latency",
	.rank = 60,
	.heading = "Latency by class",
	.finding = finding,
	.has = has,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_time_kind,
};
