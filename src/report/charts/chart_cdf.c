/* SPDX-License-Identifier: Apache-2.0 */
/* Distribution of the time of an alloc: host time up to, driver time beyond. */
#include "chart.h"
#include "metrics/hist.h"

#include <inttypes.h>

static bool has(const struct frag_chart_job *job, const struct frag_result *r)
{
	for (int c = 0; c < FRAG_CLASS_COUNT; c++) {
		if (r->alloc_modelled_ns[c].max ||
		    (!job->report->omit_host && r->alloc_host_ns[c].count))
			return true;
	}
	return false;
}

static void add_row(size_t k, const char *policy, const char *clock, uint64_t ns, uint64_t upto,
		    uint64_t count, struct frag_text *out)
{
	frag_text_addf(out, "%zu,", k);
	frag_text_add_csv(out, policy);
	frag_text_addf(out, ",%s,%" PRIu64 ",", clock, ns);
	frag_text_add_number(out, (double)upto / (double)count);
	frag_text_add(out, ",");
	frag_text_add_number(out, (double)(count - upto) / (double)count);
	frag_text_add(out, "\n");
}

/*
 * One row where the distribution rises: the rank of a bucket's upper edge is
 * found by walking the quantiles of the merged histogram bucket by bucket.
 */
static void add_curve(size_t k, const char *policy, const char *clock, const struct frag_hist *h,
		      struct frag_text *out)
{
	uint64_t upto = 0;

	for (unsigned i = 0; i < FRAG_HIST_BUCKETS; i++) {
		uint64_t edge;

		if (!h->bucket[i])
			continue;
		upto += h->bucket[i];
		edge = frag_hist_upper_edge(i);
		add_row(k, policy, clock, FRAG_MIN(edge, h->max), upto, h->count, out);
	}
	if (h->over)
		add_row(k, policy, clock, h->max, h->count, h->count, out);
}

static void merged(struct frag_hist *all, const struct frag_hist *by_class)
{
	frag_hist_clear(all);
	for (int c = 0; c < FRAG_CLASS_COUNT; c++)
		frag_hist_merge(all, &by_class[c]);
}

static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	struct frag_hist *all = frag_host_alloc(sizeof(*all));

	if (!all) {
		out->failed = true;
		return;
	}
	frag_text_add(out, "series,policy,clock,ns,share_up_to,share_beyond\n");
	for (size_t k = 0; k < job->section->count; k++) {
		const struct frag_result *r = &job->section->results[k];

		merged(all, r->alloc_modelled_ns);
		add_curve(k, r->policy, "driver", all, out);
		if (job->report->omit_host)
			continue;
		merged(all, r->alloc_host_ns);
		add_curve(k, r->policy, "host", all, out);
	}
	frag_host_free(all);
}

/* How few of the baseline's allocs wait for the driver at all. */
static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_result *r = &job->section->results[job->section->baseline];
	uint64_t all = 0, hit = 0;

	for (int c = 0; c < FRAG_CLASS_COUNT; c++) {
		all += r->alloc_modelled_ns[c].count;
		hit += r->alloc_modelled_ns[c].max ? 0 : r->alloc_modelled_ns[c].count;
	}
	if (all)
		frag_text_addf(out, "With %s %.2f %% of the allocs are served without the driver",
			       r->policy, 100.0 * (double)hit / (double)all);
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	if (!job->report->omit_host)
		frag_text_add(out,
			      "Left: share of alloc calls that the policy itself served within "
			      "a time (measured on this machine; further left is faster). "
			      "Right: share");
	else
		frag_text_add(out, "Share");
	frag_text_add(out,
		      " of alloc calls that waited longer than a time for the driver; lower and "
		      "further left is better. A curve that begins at 0.01 says that one "
		      "alloc in a hundred had to wait for the driver at all.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Distribution of the time of an alloc per policy. Longest wait for the "
			   "driver: ");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];
		uint64_t max = 0;

		for (int c = 0; c < FRAG_CLASS_COUNT; c++)
			max = FRAG_MAX(max, r->alloc_modelled_ns[c].max);
		frag_text_addf(out, "%s%s ", i ? "; " : "", r->policy);
		frag_text_add_ns(out, max);
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_cdf = {
	.name = "cdf",
	.rank = 70,
	.heading = "Distribution of alloc time",
	.finding = finding,
	.has = has,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_time_kind,
};
