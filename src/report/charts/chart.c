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
	size_t start = out->len;

	if (ops->finding)
		ops->finding(job, out);
	if (out->len > start)
		return;
	frag_text_addf(out, "%s: ", ops->heading);
	frag_section_title(job->section, out);
}

void frag_chart_subtitle(const struct frag_chart_ops *ops, const struct frag_chart_job *job,
			 struct frag_text *out)
{
	frag_text_addf(out, "%s of ", ops->heading);
	frag_section_title(job->section, out);
	frag_text_add(out, ", ");
	frag_section_recorded(job->section, out);
	frag_text_addf(out, "; replayed on %s", job->report->card.name);
	if (job->section->limit_bytes != UINT64_MAX) {
		frag_text_add(out, ", limit ");
		frag_text_add_bytes(out, job->section->limit_bytes);
	}
}

void frag_chart_advised(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *base = &s->results[s->baseline], *r;
	struct frag_advice a;
	uint64_t x, y;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX) {
		frag_text_add(out, "Every policy runs out of memory");
		return;
	}
	r = &s->results[a.pick];
	x = r->m.peak_reserved_bytes;
	y = base->m.peak_reserved_bytes;
	frag_text_addf(out, "%s peaks at ", r->policy);
	frag_text_add_bytes(out, x);
	if (r == base) {
		frag_text_add(out, s->count > 1 ? ", and none of its kind needs less" : "");
	} else if (!base->completed) {
		frag_text_addf(out, "; %s runs out of memory", base->policy);
	} else if (x != y && y) {
		frag_text_add(out, ", ");
		frag_text_add_bytes(out, x < y ? y - x : x - y);
		frag_text_addf(out, " (%.0f %%) %s %s",
			       100.0 * (double)(x < y ? y - x : x - y) / (double)y,
			       x < y ? "below" : "above", base->policy);
	}
}

void frag_chart_add_room(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_device_info *card = &job->report->card;
	uint64_t room = card->total_bytes - FRAG_MIN(card->context_bytes, card->total_bytes);
	struct frag_advice a;

	room = FRAG_MIN(room, job->section->limit_bytes);
	frag_section_advice(job->section, &a);
	frag_text_addf(out, "%" PRIu64 ",", room);
	if (a.card) {
		frag_text_addf(out, "%" PRIu64 ",", frag_gpu_room(a.card, NULL));
		frag_text_add_csv(out, a.card->label);
	} else {
		frag_text_add(out, ",");
	}
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

const char *frag_chart_time_kind(const struct frag_chart_job *job)
{
	return job->report->card.modelled ? "modelled" : "measured";
}

const char *frag_chart_x_unit(const struct frag_chart_job *job)
{
	return frag_section_x_unit(job->section);
}
