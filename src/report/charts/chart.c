/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of charts and what all of them share. */
#include "chart.h"
#include "report/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FRAG_ENTRY(name) extern const struct frag_chart_ops frag_chart_##name;
#include "chart_list.inc"
#undef FRAG_ENTRY

static const struct frag_chart_ops *const by_name[] = {
#define FRAG_ENTRY(name) &frag_chart_##name,
#include "chart_list.inc"
#undef FRAG_ENTRY
};

#define RANKS 100u

static void add_chart(const struct frag_chart_ops *ops, const struct frag_chart_job *job)
{
	struct frag_answer *a = job->answer;
	const struct frag_section *s = job->section;
	const char *of = frag_section_title_text(s, a);
	bool limited = s->limit_bytes != UINT64_MAX;
	struct frag_answer_chart chart = {
		.script = ops->name, .base = ops->name, .shape = ops->shape, .rows = ops->rows(job)
	};
	struct frag_title title = { 0 };
	struct frag_text caption = { 0 };

	if (!chart.rows.count)
		return;
	if (job->report->count > 1)
		chart.base = frag_answer_print(a, "dev%" PRIu32 "-%s", s->ordinal, ops->name);
	if (ops->finding)
		ops->finding(job, &title);
	if (!title.text.len)
		frag_text_addf(&title.text, "%s: %s", ops->heading, of);
	frag_answer_take_title(a, &title, &chart);
	chart.subtitle = frag_answer_print(a, "%s of %s, %s; replayed on %s%s%s", ops->heading, of,
					   frag_section_recorded(s, a), job->report->card.name,
					   limited ? ", limit " : "",
					   limited ? FRAG_BYTES(s->limit_bytes) : "");
	chart.extra = ops->extra ? ops->extra(job) : NULL;
	frag_text_add(&caption, ops->caption);
	if (ops->note)
		ops->note(job, &caption);
	chart.caption = frag_answer_take(a, &caption) ?: "";
	frag_answer_chart(a, &chart);
}

void frag_charts_parts(const struct frag_report *r, const struct frag_section *s,
		       struct frag_answer *a)
{
	size_t *order = frag_answer_new(a, s->count, sizeof(*order));
	const struct frag_chart_job job = { r, s, order, a };

	if (!order)
		return;
	frag_section_order(s, order);
	/* ranks differ */
	for (unsigned rank = 0; rank < RANKS; rank++)
		for (size_t i = 0; i < FRAG_ARRAY_LEN(by_name); i++)
			if (by_name[i]->rank == rank)
				add_chart(by_name[i], &job);
}

/* ---- pieces that charts share -------------------------------------------------------- */

void frag_chart_room(const struct frag_chart_job *job, struct frag_chart_room *out)
{
	const struct frag_device_info *card = &job->report->card;
	const struct frag_section *s = job->section;
	uint64_t room = card->total_bytes - FRAG_MIN(card->context_bytes, card->total_bytes);
	struct frag_advice a;

	frag_section_advice(s, &a);
	*out = (struct frag_chart_room){
		.lower_bound_bytes = frag_section_bound(s),
		.placement_bytes = s->optimum.placed ? s->optimum.place_bytes : UINT64_MAX,
		.capacity_bytes = FRAG_MIN(room, s->limit_bytes),
		.card_bytes = a.card ? frag_gpu_room(a.card, NULL) : UINT64_MAX,
		.card = a.card ? a.card->label : NULL,
	};
}

double frag_chart_seconds(const struct frag_chart_job *job, uint64_t us)
{
	return job->section->duration_us ? (double)us / 1e6 : NAN;
}

const char *frag_chart_time_kind(const struct frag_chart_job *job)
{
	return job->report->card.modelled ? "modelled" : "measured";
}

const char *frag_chart_x_unit(const struct frag_chart_job *job)
{
	return frag_section_x_unit(job->section);
}
