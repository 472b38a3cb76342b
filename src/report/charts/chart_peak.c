/* SPDX-License-Identifier: Apache-2.0 */
/* Peak reserved per policy, and what each byte of it was used for. */
#include "chart.h"

#include <inttypes.h>

static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	uint64_t bound = frag_section_bound(job->section);

	frag_text_add(out,
		      "rank,policy,completed,peak_reserved_bytes,requested_bytes,"
		      "rounding_bytes,waiting_bytes,non_releasable_bytes,releasable_bytes,"
		      "other_bytes,lower_bound_bytes,placement_bytes," FRAG_CHART_ROOM_HEAD "\n");
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];
		const struct frag_loss *l = &r->peak;

		frag_text_addf(out, "%zu,", i);
		frag_text_add_csv(out, r->policy);
		frag_text_addf(out,
			       ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			       ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
			       r->completed, r->m.peak_reserved_bytes, l->requested_bytes,
			       l->rounding_bytes, l->waiting_bytes, l->non_releasable_bytes,
			       l->releasable_bytes, l->other_bytes, bound);
		if (job->section->optimum.placed)
			frag_text_addf(out, "%" PRIu64, job->section->optimum.place_bytes);
		frag_text_add(out, ",");
		frag_chart_add_room(job, out);
		frag_text_add(out, "\n");
	}
}

/* What the baseline loses, and to what. */
static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *r = &s->results[s->baseline];
	uint64_t kept = r->peak.non_releasable_bytes, cache = r->peak.releasable_bytes;

	if (!r->m.peak_reserved_bytes)
		return;
	frag_text_addf(out, "At its peak %s holds ", r->policy);
	frag_text_add_bytes(out, r->m.peak_reserved_bytes);
	frag_text_add(out, ", of which ");
	frag_text_add_bytes(out, kept + cache);
	frag_text_addf(out, " (%.0f %%) are free",
		       100.0 * (double)(kept + cache) / (double)r->m.peak_reserved_bytes);
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(
		out, "Length of a bar: the largest memory the policy ever took from the card. "
		     "Its parts: where those bytes were at that moment. Everything but "
		     "\xe2\x80\x9crequested\xe2\x80\x9d is lost; non-releasable bytes are free but "
		     "cannot be given back because a live block sits in the same segment.");
	if (!job->section->optimum.hidden)
		frag_text_add(out, " The dashed line is the lower bound: no allocator can need "
				   "less.");
	if (job->section->optimum.placed)
		frag_text_add(out, " The dotted one, where it can be told apart, is what "
				   "suffices if all requests are known in advance (offline "
				   "placement, checked).");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Stacked bars of peak reserved memory. ");
	frag_chart_list_peaks(job, out);
	frag_chart_list_optimum(job, out);
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_peak = {
	.name = "peak",
	.rank = 20,
	.heading = "Peak reserved memory by cause",
	.finding = finding,
	.csv = csv,
	.caption = caption,
	.alt = alt,
};
