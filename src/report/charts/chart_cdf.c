/* SPDX-License-Identifier: Apache-2.0 */
/* Distribution of the time of an alloc: host time up to, driver time beyond. */
#include "chart.h"
#include "metrics/hist.h"

#define COLUMNS(X, s) \
	X(s, COUNT, series, c->series) \
	X(s, TEXT, policy, c->policy) \
	X(s, TEXT, clock, clock) \
	X(s, NS, ns, ns) \
	X(s, RATIO, share_up_to, (double)upto / (double)count) \
	X(s, RATIO, share_beyond, (double)(count - upto) / (double)count)
FRAG_CSV_ROW(row, COLUMNS)

struct curves {
	struct row *list;
	size_t count;
	size_t series;
	const char *policy;
	bool any; /* a curve that can be drawn */
};

static void add_row(struct curves *c, const char *clock, uint64_t ns, uint64_t upto, uint64_t count)
{
	c->list[c->count++] = FRAG_CSV_VALUES(row, COLUMNS);
}

/* One row where the distribution rises: at the upper edge of each bucket that holds something. */
static void add_curve(struct curves *c, const char *clock, const struct frag_hist *by_class,
		      struct frag_hist *all)
{
	uint64_t upto = 0;

	frag_hist_clear(all);
	for (unsigned i = 0; i < FRAG_CLASS_COUNT; i++)
		frag_hist_merge(all, &by_class[i]);
	c->any |= *clock == 'h' ? all->count > 0 : all->max > 0;
	for (unsigned i = 0; i < FRAG_HIST_BUCKETS; i++) {
		if (!all->bucket[i])
			continue;
		upto += all->bucket[i];
		add_row(c, clock, FRAG_MIN(frag_hist_upper_edge(i), all->max), upto, all->count);
	}
	if (all->over)
		add_row(c, clock, all->max, all->count, all->count);
}

static struct frag_rows rows(const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	size_t most = s->count * 2 * (FRAG_HIST_BUCKETS + 1);
	struct curves c = { .list = frag_answer_new(job->answer, most, sizeof(*c.list)) };
	struct frag_hist *all = frag_answer_new(job->answer, 1, sizeof(*all));

	for (size_t k = 0; c.list && all && k < s->count; k++) {
		const struct frag_result *r = &s->results[k];

		c.series = k;
		c.policy = r->policy;
		add_curve(&c, "driver", r->alloc_modelled_ns, all);
		if (!job->report->omit_host)
			add_curve(&c, "host", r->alloc_host_ns, all);
	}
	return (struct frag_rows){ c.list, c.any ? c.count : 0 };
}

/* How few of the baseline's allocs wait for the driver at all. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_result *r = &job->section->results[job->section->baseline];
	uint64_t all = 0, hit = 0;

	for (int c = 0; c < FRAG_CLASS_COUNT; c++) {
		all += r->alloc_modelled_ns[c].count;
		hit += r->alloc_modelled_ns[c].max ? 0 : r->alloc_modelled_ns[c].count;
	}
	if (!all)
		return;
	frag_text_addf(
		&out->text, "With %s %s of the allocs are served without the driver", r->policy,
		frag_title_percent(out, "without_driver_ratio", (double)hit / (double)all, 2));
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	if (!job->report->omit_host)
		frag_text_add(out, " Above: the share that the policy itself served within a "
				   "time (measured on this machine; further left is faster).");
}

const struct frag_chart_ops frag_chart_cdf = {
	.name = "cdf",
	.rank = 70,
	.heading = "Distribution of alloc time",
	FRAG_CHART_HOOKS,
	.caption = "Below: the share of alloc calls that waited longer than a time for the driver; "
		   "lower and further left is better. A curve that begins at 0.01 says that one "
		   "alloc in a hundred had to wait for the driver at all.",
	.note = note,
	.extra = frag_chart_time_kind,
};
