/* SPDX-License-Identifier: Apache-2.0 */
/* Loss by cause over time, one panel per policy. */
#include "chart.h"

#include <inttypes.h>

#define PANELS_MAX 12u /* more would be too small to read */
/* Samples drawn, all panels together: a panel has about as many pixels across, and each
 * sample costs six rectangles in the picture. */
#define SAMPLES_MAX 720u

static bool has(const struct frag_chart_job *job, const struct frag_result *r)
{
	(void)job;
	return r->series.losses_count > 1;
}

static void add_row(const struct frag_chart_job *job, size_t panel, const char *policy,
		    const struct frag_loss *l, struct frag_text *out)
{
	frag_text_addf(out, "%zu,", panel);
	frag_text_add_csv(out, policy);
	frag_text_addf(out, ",%" PRIu64 ",", l->event);
	frag_chart_add_seconds(job, l->time_us, out);
	frag_text_addf(out,
		       ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		       ",%" PRIu64 "\n",
		       l->requested_bytes, l->rounding_bytes, l->waiting_bytes,
		       l->non_releasable_bytes, l->releasable_bytes, l->other_bytes,
		       l->reserved_bytes);
}

/* The last sample again, where the curve ends: a row holds until the next one. */
static void add_end(const struct frag_chart_job *job, size_t panel, const struct frag_result *r,
		    struct frag_text *out)
{
	const struct frag_series *s = &r->series;
	struct frag_loss end;

	if (!s->losses_count || !s->count)
		return;
	end = s->losses[s->losses_count - 1];
	if (r->peak.event > end.event)
		end = r->peak;
	end.event = s->windows[s->count - 1].last_event + 1;
	end.time_us = s->windows[s->count - 1].last_us;
	add_row(job, panel, r->policy, &end, out);
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
static void add_policy(const struct frag_chart_job *job, size_t panel, size_t samples,
		       const struct frag_result *r, struct frag_text *out)
{
	size_t step = (r->series.losses_count + samples - 1) / samples;
	bool peak_done = r->peak.reserved_bytes == 0;

	for (size_t i = 0; i < r->series.losses_count; i += step) {
		const struct frag_loss *l = highest(&r->series, i, step);

		if (!peak_done && r->peak.event <= l->event) {
			if (r->peak.event < l->event)
				add_row(job, panel, r->policy, &r->peak, out);
			peak_done = true;
		}
		add_row(job, panel, r->policy, l, out);
	}
	if (!peak_done)
		add_row(job, panel, r->policy, &r->peak, out);
	add_end(job, panel, r, out);
}

static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t panels = FRAG_MIN(job->section->count, PANELS_MAX);

	frag_text_add(out, "panel,policy,event,time_s,requested_bytes,rounding_bytes,"
			   "waiting_bytes,non_releasable_bytes,releasable_bytes,other_bytes,"
			   "reserved_bytes\n");
	for (size_t i = 0; i < panels; i++)
		add_policy(job, i, SAMPLES_MAX / panels, &job->section->results[job->order[i]],
			   out);
}

/* How much the baseline holds that is free and cannot be given back. */
static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *r = &s->results[s->baseline];
	uint64_t most = 0;

	for (size_t i = 0; i < r->series.losses_count; i++)
		most = FRAG_MAX(most, r->series.losses[i].non_releasable_bytes);
	if (!r->series.losses_count)
		return;
	frag_text_addf(out, "With %s up to ", r->policy);
	frag_text_add_bytes(out, most);
	frag_text_add(out, " are free but cannot be given back");
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Reserved memory of each policy over time, split by cause. Grey is in "
			   "use; every colour is loss. Growing non-releasable memory is "
			   "fragmentation that "
			   "empty_cache cannot undo; releasable memory is a cache that it can.");
	if (job->section->count > PANELS_MAX)
		frag_text_addf(out, " Only the best %u of %zu policies are shown.", PANELS_MAX,
			       job->section->count);
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Stacked areas of reserved memory by cause over time, one panel per "
			   "policy. Free but non-releasable at each peak: ");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		frag_text_addf(out, "%s%s ", i ? "; " : "", r->policy);
		frag_text_add_bytes(out, r->peak.non_releasable_bytes);
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_loss = {
	.name = "loss",
	.rank = 30,
	.heading = "Where reserved memory goes",
	.finding = finding,
	.has = has,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_x_unit,
};
