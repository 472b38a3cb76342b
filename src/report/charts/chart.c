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

static bool precedes(const struct frag_chart_ops *a, const struct frag_chart_ops *b)
{
	return a->rank < b->rank || (a->rank == b->rank && strcmp(a->name, b->name) < 0);
}

const struct frag_chart_ops *frag_chart_next(const struct frag_chart_ops *last)
{
	const struct frag_chart_ops *next = NULL;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(by_name); i++)
		if ((!last || precedes(last, by_name[i])) && (!next || precedes(by_name[i], next)))
			next = by_name[i];
	return next;
}

/* ---- on the page --------------------------------------------------------------------- */

static const char *subtitle_of(const struct frag_chart_ops *ops, const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	bool limited = s->limit_bytes != UINT64_MAX;

	return frag_answer_print(job->answer, "%s of %s, %s; replayed on %s%s%s", ops->heading,
				 frag_section_title_text(s, job->answer),
				 frag_section_recorded(s, job->answer), job->report->card.name,
				 limited ? ", limit " : "",
				 limited ? FRAG_BYTES(s->limit_bytes) : "");
}

static void add_title(const struct frag_chart_ops *ops, const struct frag_chart_job *job,
		      struct frag_answer_chart *chart)
{
	struct frag_title title = { 0 };

	if (ops->finding)
		ops->finding(job, &title);
	if (!title.text.len)
		frag_text_addf(&title.text, "%s: %s", ops->heading,
			       frag_section_title_text(job->section, job->answer));
	frag_answer_take_title(job->answer, &title, chart);
}

static void add_chart(const struct frag_chart_ops *ops, const struct frag_chart_job *job)
{
	struct frag_answer *a = job->answer;
	struct frag_answer_chart chart = {
		.script = ops->name, .base = ops->name, .shape = ops->shape, .rows = ops->rows(job)
	};
	struct frag_text caption = { 0 };

	if (!chart.rows.count)
		return;
	if (job->report->count > 1)
		chart.base =
			frag_answer_print(a, "dev%" PRIu32 "-%s", job->section->ordinal, ops->name);
	add_title(ops, job, &chart);
	chart.subtitle = subtitle_of(ops, job);
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
	const struct frag_chart_ops *ops;

	if (!order)
		return;
	frag_section_order(s, order);
	for (ops = NULL; (ops = frag_chart_next(ops));)
		add_chart(ops, &job);
}

/* ---- pieces that charts share -------------------------------------------------------- */

void frag_chart_advised(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *base = &s->results[s->baseline], *r;
	const char *bytes, *ratio;
	struct frag_advice a;
	uint64_t x, y, by;

	frag_section_advice(s, &a);
	if (a.pick == SIZE_MAX) {
		frag_text_add(&out->text, "Every policy runs out of memory");
		return;
	}
	r = &s->results[a.pick];
	x = r->m.peak_reserved_bytes;
	y = base->m.peak_reserved_bytes;
	frag_text_addf(&out->text, "%s peaks at %s", r->policy,
		       frag_title_bytes(out, "peak_reserved_bytes", x));
	if (r == base) {
		frag_text_add(&out->text, s->count > 1 ? ", and none of its kind needs less" : "");
	} else if (!base->completed) {
		frag_text_addf(&out->text, "; %s runs out of memory", base->policy);
	} else if (x != y && y) {
		by = x < y ? y - x : x - y;
		bytes = frag_title_bytes(out, "difference_bytes", by);
		ratio = frag_title_percent(out, "difference_ratio", (double)by / (double)y, 0);
		frag_text_addf(&out->text, ", %s (%s) %s %s", bytes, ratio,
			       x < y ? "below" : "above", base->policy);
	}
}

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
