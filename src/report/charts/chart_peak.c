/* SPDX-License-Identifier: Apache-2.0 */
/* Peak reserved per policy, and what each byte of it was used for. */
#include "chart.h"

#define COLUMNS(X, s) \
	X(s, COUNT, rank, i) \
	X(s, TEXT, policy, r->policy) \
	X(s, COUNT, completed, r->completed) \
	X(s, BYTES, peak_reserved_bytes, r->m.peak_reserved_bytes) \
	X(s, COUNT, event, l->event) \
	X(s, REAL, time_s, frag_chart_seconds(job, l->time_us)) \
	FRAG_CHART_CAUSES(X, s) \
	FRAG_CHART_ROOM(X, s)
FRAG_CSV_ROW(row, COLUMNS)

static struct frag_rows rows(const struct frag_chart_job *job)
{
	size_t count = job->section->count;
	struct row *list = frag_answer_new(job->answer, count, sizeof(*list));
	struct frag_chart_room of_job, *room = &of_job;

	frag_chart_room(job, room);
	for (size_t i = 0; list && i < count; i++) {
		const struct frag_result *r = frag_chart_result(job, i);
		const struct frag_loss *l = &r->peak;

		list[i] = FRAG_CSV_VALUES(row, COLUMNS);
	}
	return (struct frag_rows){ list, list ? count : 0 };
}

/* What the baseline loses, and to what. */
static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	const struct frag_section *s = job->section;
	const struct frag_result *r = &s->results[s->baseline];
	uint64_t all = r->m.peak_reserved_bytes;
	uint64_t unused = r->peak.non_releasable_bytes + r->peak.releasable_bytes;
	const char *peak, *bytes, *ratio;

	if (!all)
		return;
	peak = frag_title_bytes(out, "peak_reserved_bytes", all);
	bytes = frag_title_bytes(out, "free_bytes", unused);
	ratio = frag_title_percent(out, "free_ratio", (double)unused / (double)all, 0);
	frag_text_addf(
		&out->text,
		"At its peak of reserved memory (event %s) %s holds %s, of which %s (%s) are free",
		frag_title_count(out, "event", r->peak.event), r->policy, peak, bytes, ratio);
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	if (!job->section->optimum.hidden)
		frag_text_add(out, " The dashed line is the lower bound: no allocator can need "
				   "less.");
	if (job->section->optimum.placed)
		frag_text_add(out, " The dotted one, where it can be told apart, is what suffices "
				   "if all requests are known in advance (offline placement, "
				   "checked).");
}

const struct frag_chart_ops frag_chart_peak = {
	.name = "peak",
	.rank = 20,
	.heading = "Peak reserved memory by cause",
	FRAG_CHART_HOOKS,
	.caption = "Length of a bar: the largest memory the policy ever took from the card. Its "
		   "parts: where those bytes were at that moment, the event in the table. "
		   "Everything but \xe2\x80\x9crequested\xe2\x80\x9d is lost; non-releasable bytes "
		   "are free but cannot be given back because a live block sits in the same "
		   "segment.",
	.note = note,
};
