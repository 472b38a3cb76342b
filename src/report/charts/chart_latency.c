/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percentiles of latency per policy and class: host time (measured) and
 * driver time (modelled on sim) in two panels, never in one.
 */
#include "chart.h"

#define CLASSES (FRAG_CLASS_COUNT + 1) /* the last one: free */
#define DRAWN_MAX 8u		       /* policies in the picture; the CSV has all */

#define COLUMNS(X, s) \
	X(s, INT, row, line) \
	X(s, TEXT, policy, policy) \
	X(s, TEXT, class, class) \
	X(s, TEXT, clock, clock) \
	X(s, COUNT, count, h->count) \
	X(s, NS, min_ns, h->min) \
	X(s, NS, p50_ns, frag_hist_quantile(h, 0.5)) \
	X(s, NS, p90_ns, frag_hist_quantile(h, 0.9)) \
	X(s, NS, p99_ns, frag_hist_quantile(h, 0.99)) \
	X(s, NS, p999_ns, frag_hist_quantile(h, 0.999)) \
	X(s, NS, max_ns, h->max) \
	X(s, NS, total_ns, h->sum)
FRAG_CSV_ROW(row, COLUMNS)

/* NULL: nothing was counted. */
static const struct frag_hist *hist_of(const struct frag_chart_job *job,
				       const struct frag_result *r, int cls, bool host)
{
	const struct frag_hist *h =
		cls == FRAG_CLASS_COUNT ? (host ? &r->free_host_ns : &r->free_modelled_ns)
					: &(host ? r->alloc_host_ns : r->alloc_modelled_ns)[cls];

	return h->count && !(host && job->report->omit_host) ? h : NULL;
}

struct lines {
	struct row *list;
	size_t count;
	int64_t next; /* line of the chart */
};

/* Each class has a line for its heading, and one for each policy that is drawn; -1 = not drawn,
 * because a logarithmic axis has nothing to show. */
static void add_class(const struct frag_chart_job *job, int c, struct lines *l)
{
	const char *class = c == FRAG_CLASS_COUNT ? "free" : frag_class_name((enum frag_class)c);
	bool headed = false;

	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = frag_chart_result(job, i);
		const struct frag_hist *of[] = { hist_of(job, r, c, false),
						 hist_of(job, r, c, true) };
		int64_t line = -1;

		if (i < DRAWN_MAX && ((of[0] && of[0]->max) || (of[1] && of[1]->max))) {
			l->next += !headed;
			headed = true;
			line = l->next++;
		}
		for (unsigned k = 0; k < 2; k++) {
			const char *policy = r->policy, *clock = k ? "host" : "driver";
			const struct frag_hist *h = of[k];

			if (h)
				l->list[l->count++] = FRAG_CSV_VALUES(row, COLUMNS);
		}
	}
}

static struct frag_rows rows(const struct frag_chart_job *job)
{
	size_t most = job->section->count * CLASSES * 2;
	struct lines l = { .list = frag_answer_new(job->answer, most, sizeof(*l.list)) };

	for (int c = 0; l.list && c < CLASSES; c++)
		add_class(job, c, &l);
	return (struct frag_rows){ l.list, l.next ? l.count : 0 };
}

/* What new memory costs with the baseline. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_result *r = &job->section->results[job->section->baseline];
	const struct frag_hist *grow = &r->alloc_modelled_ns[FRAG_CLASS_GROW];

	if (!grow->count || !grow->max)
		return;
	frag_text_addf(&out->text, "With %s new memory costs %s in the driver (median)", r->policy,
		       frag_title_ns(out, "grow_median_ns", frag_hist_quantile(grow, 0.5)));
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_addf(out, " Driver time is %s.",
		       job->report->card.modelled ? "modelled from a profile of a real card"
						  : "measured");
	if (!job->report->omit_host)
		frag_text_add(out, " Host time is what the policy itself took on this machine, "
				   "measured on a sample of the calls.");
	if (job->section->count > DRAWN_MAX)
		frag_text_addf(out, " The picture shows the best %u of %zu policies, the CSV all.",
			       DRAWN_MAX, job->section->count);
}

const struct frag_chart_ops frag_chart_latency = {
	.name = "latency",
	.rank = 60,
	.heading = "Latency by class",
	FRAG_CHART_HOOKS,
	.caption = "Time per call by how the request was served. Hit: a free block as it was; "
		   "split: part of a larger one; grow: new memory from the driver; map: physical "
		   "pages mapped behind addresses; stitch: free pieces mapped as one block; "
		   "release: new memory, after cached memory was given back; refused: not at all. "
		   "Free: all frees. Dot: median; thick bar: median to 99th percentile; thin bar: "
		   "minimum to maximum. Calls that need no driver are not drawn there.",
	.note = note,
	.extra = frag_chart_time_kind,
};
