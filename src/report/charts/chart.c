/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of charts and what all of them share. */
#include "chart.h"

#include <inttypes.h>

#define FRAG_ENTRY(name) extern const struct frag_chart_ops frag_chart_##name;
#include "chart_list.inc"
#undef FRAG_ENTRY

static const struct frag_chart_ops *const by_name[] = {
#define FRAG_ENTRY(name) &frag_chart_##name,
#include "chart_list.inc"
#undef FRAG_ENTRY
};

/* Rank of charts below, to place one without sorting a static table. */
static size_t place_of(size_t i)
{
	size_t place = 0;

	for (size_t k = 0; k < FRAG_ARRAY_LEN(by_name); k++)
		place += by_name[k]->rank < by_name[i]->rank ||
			 (by_name[k]->rank == by_name[i]->rank && k < i);
	return place;
}

const struct frag_chart_ops *frag_chart_at(size_t place)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(by_name); i++) {
		if (place_of(i) == place)
			return by_name[i];
	}
	return NULL;
}

void frag_chart_title(const struct frag_chart_ops *ops, const struct frag_chart_job *job,
		      struct frag_text *out)
{
	frag_text_addf(out, "%s: ", ops->heading);
	frag_section_title(job->section, out);
}

/* Two lines at most, broken between the halves where one would be too long. */
void frag_chart_subtitle(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t start = out->len;

	frag_section_recorded(job->section, out);
	frag_text_add(out, out->len - start > 55 ? "\n" : "; ");
	frag_text_add_grouped(out, job->section->events_count);
	frag_text_add(out, " events; ");
	frag_report_settings(job->report, out);
}

void frag_chart_list_peaks(const struct frag_chart_job *job, struct frag_text *out)
{
	for (size_t i = 0; i < job->section->count; i++) {
		const struct frag_result *r = &job->section->results[job->order[i]];

		frag_text_addf(out, "%s%s ", i ? "; " : "", r->policy);
		frag_text_add_bytes(out, r->m.peak_reserved_bytes);
		if (!r->completed)
			frag_text_addf(out, " (out of memory at event %" PRIu64 ")", r->oom.event);
	}
}

void frag_chart_list_optimum(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_optimum *o = &job->section->optimum;

	if (!o->hidden) {
		frag_text_add(out, "; lower bound ");
		frag_text_add_bytes(out, frag_section_bound(job->section));
	}
	if (o->placed) {
		frag_text_add(out, "; offline placement ");
		frag_text_add_bytes(out, o->place_bytes);
	}
}

void frag_chart_add_seconds(const struct frag_chart_job *job, uint64_t us, struct frag_text *out)
{
	if (job->section->duration_us)
		frag_text_addf(out, "%" PRIu64 ".%06u", us / 1000000, (unsigned)(us % 1000000));
}

const char *frag_chart_x_unit(const struct frag_chart_job *job)
{
	return frag_section_x_unit(job->section);
}
