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

static void add_size(const struct frag_section *s, struct frag_text *out)
{
	frag_text_addf(out, "%s events", FRAG_GROUPED(s->events_count));
	if (s->duration_us)
		frag_text_addf(out, " in %.*f s", s->duration_us < 10000000 ? 3 : 1,
			       (double)s->duration_us / 1e6);
	frag_text_addf(out, ", %" PRIu32 " stream%s", s->streams_count,
		       s->streams_count == 1 ? "" : "s");
	if (s->pools_count > 1)
		frag_text_addf(out, ", %" PRIu32 " private pool%s", s->pools_count - 1,
			       s->pools_count == 2 ? "" : "s");
	if (s->truncated || s->initial_blocks)
		frag_text_addf(out, ", began with %" PRIu64 " live blocks", s->initial_blocks);
}

void frag_section_remarks(const struct frag_report *r, const struct frag_section *s,
			  const char *who, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	frag_section_recorded(s, &t);
	frag_answer_remark(a, "%s%s, %s", who, frag_section_title_text(s, a),
			   frag_answer_take(a, &t) ?: "");
	frag_answer_last(a)->as_is = true;
	add_size(s, &t);
	frag_answer_remark(a, "%s", frag_answer_take(a, &t) ?: "");
	frag_report_settings(r, s, &t);
	frag_answer_remark(a, "%s", frag_answer_take(a, &t) ?: "");
	frag_section_settled(r, s, &t);
	if (t.len)
		frag_answer_remark(a, "%s", frag_text_str(&t));
	frag_text_release(&t);
	frag_ending_warn(a, frag_ending_row(a, frag_section_title_text(s, a), &s->ending));
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

/* Which row has the advised policy; SIZE_MAX = none. */
static size_t advised_row(const struct frag_section *s, const size_t *order)
{
	struct frag_advice advice;

	frag_section_advice(s, &advice);
	for (size_t i = 0; i < s->count; i++)
		if (order[i] == advice.pick)
			return i;
	return SIZE_MAX;
}

static void add_rows(const struct frag_report *r, const struct frag_section *s,
		     struct frag_answer *a)
{
	struct frag_result_row *rows = frag_answer_new(a, s->count + 2, sizeof(*rows));
	size_t *order = frag_answer_new(a, s->count, sizeof(*order)), n = 0;
	struct frag_part *table;

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
	table->mark = advised_row(s, order);
}

void frag_section_table(const struct frag_report *r, const struct frag_section *s,
			struct frag_answer *a)
{
	struct frag_text planned = { 0 };

	add_rows(r, s, a);
	frag_section_planned(s, &planned);
	if (planned.len)
		frag_answer_say(a, "%s", frag_text_str(&planned));
	frag_text_release(&planned);
	if (*s->optimum.note)
		frag_answer_say(a, "no offline placement: %s", s->optimum.note);
	if (s->missing)
		frag_answer_warn(a, "interrupted, missing: %s", s->missing);
}

/* ---- what to do ---------------------------------------------------------------------- */

void frag_section_conclusion(const struct frag_section *s, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	frag_section_answer(s, &t);
	frag_answer_conclude(a, "%s", frag_answer_take(a, &t) ?: "");
	frag_section_export(s, &t);
	if (s->count > 1 && t.len)
		frag_answer_paste(a, "to use it", t.s);
	frag_text_release(&t);
	frag_section_run(s, &t);
	if (t.len)
		frag_answer_paste(a, "or", t.s);
	frag_text_release(&t);
}
