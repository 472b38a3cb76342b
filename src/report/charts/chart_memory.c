/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: what each policy reserves above what the program asks for. */
#include "chart.h"

#include <inttypes.h>

static void add_end(const struct frag_chart_job *job, size_t k, uint64_t event, uint64_t us,
		    const struct frag_window *w, const char *state, struct frag_text *out)
{
	const struct frag_result *r = &job->section->results[k];

	frag_text_addf(out, "%zu,", k);
	frag_text_add_csv(out, r->policy);
	frag_text_addf(out, ",%" PRIu64 ",", event);
	frag_chart_add_seconds(job, us, out);
	frag_text_addf(out,
		       ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		       ",%s,%" PRIu64 ",",
		       w->requested_min, w->requested_max, w->active_min, w->active_max,
		       w->reserved_min, w->reserved_max, state, frag_section_bound(job->section));
	if (job->section->optimum.placed)
		frag_text_addf(out, "%" PRIu64, job->section->optimum.place_bytes);
	frag_text_add(out, ",");
	frag_chart_add_room(job, out);
	frag_text_add(out, "\n");
}

/* More would run into each other. */
#define STEPS_MAX 100u

static bool is_step(const struct frag_event *ev)
{
	return ev->kind == FRAG_EV_MARK && ev->flags & FRAG_EVF_STEP && !(ev->flags & FRAG_EVF_END);
}

/* A row of series -1 where a step begins; every n-th where there are many. */
static void add_steps(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_trace_dev *d = job->section->events;
	size_t count = 0, seen = 0;

	for (size_t i = 0; d && d->events && i < d->events_count; i++)
		count += is_step(&d->events[i]);
	for (size_t i = 0; count && i < d->events_count; i++) {
		if (!is_step(&d->events[i]) || seen++ % ((count + STEPS_MAX - 1) / STEPS_MAX))
			continue;
		frag_text_addf(out, "-1,step,%zu,", i);
		frag_chart_add_seconds(job, d->events[i].time_us, out);
		frag_text_add(out, ",,,,,,,step,,,,,\n");
	}
}

/*
 * A row holds from its event to the next row's: extremes of a window, so no peak is
 * lost. The last row repeats the last values at the end of the curve; its state says why
 * the curve ends.
 */
static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "series,policy,event,time_s,requested_min_bytes,requested_max_bytes,"
			   "active_min_bytes,active_max_bytes,reserved_min_bytes,"
			   "reserved_max_bytes,state,lower_bound_bytes,placement_"
			   "bytes," FRAG_CHART_ROOM_HEAD "\n");
	for (size_t k = 0; k < job->section->count; k++) {
		const struct frag_result *r = &job->section->results[k];
		const struct frag_window *w = r->series.windows;
		size_t n = r->series.count;

		for (size_t i = 0; i < n; i++)
			add_end(job, k, w[i].first_event, w[i].first_us, &w[i], "run", out);
		if (n) {
			struct frag_window last = w[n - 1];

			last.requested_min = last.requested_max = last.requested_last;
			last.active_min = last.active_max = last.active_last;
			last.reserved_min = last.reserved_max = last.reserved_last;
			add_end(job, k, last.last_event + 1, last.last_us, &last,
				frag_result_stopped(r) ? "oom" : "end", out);
		}
	}
	add_steps(job, out);
}

static bool has(const struct frag_chart_job *job, const struct frag_result *r)
{
	(void)job;
	return r->series.count;
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t failed = 0;

	for (size_t k = 0; k < job->section->count; k++)
		failed += frag_result_stopped(&job->section->results[k]);
	frag_text_add(out, "Coloured lines: memory each policy has taken from the card. Grey area: "
			   "what the program asked for and has not freed; no policy can go below "
			   "it. The gap between a line and the area is memory the policy holds "
			   "but the program cannot use.");
	if (!job->section->optimum.hidden)
		frag_text_add(out, " Dashed: the lower bound, the largest sum of live requests.");
	if (job->section->optimum.placed)
		frag_text_add(out, " Dotted, where it can be told apart from that: one region "
				   "into which all requests fit if they are known in advance.");
	if (failed)
		frag_text_add(out, " A cross marks where a policy ran out of memory.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Line chart of reserved memory over recorded time. Peaks: ");
	frag_chart_list_peaks(job, out);
	frag_chart_list_optimum(job, out);
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_memory = {
	.name = "memory",
	.rank = 10,
	.heading = "Memory over time",
	.finding = frag_chart_advised,
	.has = has,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_x_unit,
};
