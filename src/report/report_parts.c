/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks, table and conclusion of one device of a trace. */

#include <inttypes.h>
#include <math.h>

#include "recording/ending.h"
#include "rows.h"

const char *frag_section_title_text(const struct frag_section *s, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	frag_section_title(s, &t);
	return frag_answer_take(a, &t) ?: "";
}

/* ---- what was replayed --------------------------------------------------------------- */

static const char *size_of(const struct frag_section *s, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	frag_text_addf(&t, "%s events", FRAG_GROUPED(s->events_count));
	if (s->duration_us)
		frag_text_addf(&t, " in %.*f s", s->duration_us < 10000000 ? 3 : 1,
			       (double)s->duration_us / 1e6);
	frag_text_addf(&t, ", %" PRIu32 " stream%s", s->streams_count,
		       s->streams_count == 1 ? "" : "s");
	if (s->pools_count > 1)
		frag_text_addf(&t, ", %" PRIu32 " private pool%s", s->pools_count - 1,
			       s->pools_count == 2 ? "" : "s");
	if (s->truncated || s->initial_blocks)
		frag_text_addf(&t, ", began with %" PRIu64 " live blocks", s->initial_blocks);
	return frag_answer_take(a, &t) ?: "";
}

void frag_section_remarks(const struct frag_report *r, const struct frag_section *s, bool named,
			  struct frag_answer *a)
{
	const char *title = frag_section_title_text(s, a), *settled = frag_section_settled(r, s, a);
	const char *who =
		named ? frag_answer_print(a, "cufrag %s %s: ", FRAG_VERSION, r->command) : "";

	frag_answer_remark(a, "%s%s, %s", who, title, frag_section_recorded(s, a));
	frag_answer_last(a)->as_is = true;
	frag_answer_remark(a, "%s", size_of(s, a));
	frag_answer_remark(a, "%s", frag_report_settings(r, s, a));
	if (settled)
		frag_answer_remark(a, "%s", settled);
	frag_ending_warn(a, frag_ending_row(a, title, &s->ending));
}

/* ---- the table ----------------------------------------------------------------------- */

/* A row about the trace, not a policy: only its size. */
static struct frag_result_row trace_row(const struct frag_section *s, const char *name,
					uint64_t bytes)
{
	struct frag_result_row row = { .policy = name, .outcome = "" };
	uint64_t bound = frag_section_bound(s);
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);

	for (size_t i = 0; i < count; i++) {
		char *at = (char *)&row.m + list[i].offset;

		if (list[i].type == FRAG_METRIC_T_U64)
			*(uint64_t *)at = UINT64_MAX;
		else
			*(double *)at = NAN;
	}
	row.m.peak_reserved_bytes = bytes;
	if (bound)
		row.m.reserved_over_bound_ratio = (double)bytes / (double)bound;
	return row;
}

static void add_rows(const struct frag_report *r, const struct frag_section *s,
		     struct frag_answer *a)
{
	struct frag_result_row *rows = frag_answer_new(a, s->count + 2, sizeof(*rows));
	size_t *order = frag_answer_new(a, s->count, sizeof(*order)), n = 0;
	struct frag_part *table;
	struct frag_advice advice;

	if (!rows || !order)
		return;
	frag_section_order(s, order);
	for (; n < s->count; n++)
		frag_result_row(r, s, &s->results[order[n]], a, &rows[n]);
	if (s->optimum.placed)
		rows[n++] = trace_row(s, "(offline placement)", s->optimum.place_bytes);
	if (!s->optimum.hidden)
		rows[n++] = trace_row(s, "(lower bound)", frag_section_bound(s));
	table = frag_answer_table(a, &frag_result_shape, rows, n);
	table->wraps = true;
	frag_section_advice(s, &advice);
	for (size_t i = 0; i < s->count; i++)
		if (order[i] == advice.pick)
			table->mark = i;
}

void frag_section_table(const struct frag_report *r, const struct frag_section *s,
			struct frag_answer *a)
{
	const char *planned = frag_section_planned(s, a);

	add_rows(r, s, a);
	if (planned)
		frag_answer_say(a, "%s", planned);
	if (*s->optimum.note)
		frag_answer_say(a, "no offline placement: %s", s->optimum.note);
	if (s->missing)
		frag_answer_warn(a, "interrupted, missing: %s", s->missing);
}

/* ---- what to do ---------------------------------------------------------------------- */

void frag_section_conclusion(const struct frag_section *s, struct frag_answer *a)
{
	const char *set = frag_section_export(s, a), *run = frag_section_run(s, a);

	frag_answer_conclude(a, "%s", frag_section_answer(s, a));
	if (s->count > 1 && set)
		frag_answer_paste(a, "to use it", set);
	if (run)
		frag_answer_paste(a, "or", run);
}
