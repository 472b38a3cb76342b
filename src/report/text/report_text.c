/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of compare: head lines with '#', a table per section, one sentence that
 * answers the question.
 */
#include "report/report.h"
#include "report/report_internal.h"
#include "report/spread.h"
#include "refusals.h"
#include "summary.h"

#include <inttypes.h>

void frag_report_head(const struct frag_report *r, const struct frag_section *s,
		      struct frag_text *out)
{
	frag_text_addf(out, "# cufrag %s %s: ", FRAG_VERSION, r->command);
	frag_section_title(s, out);
	frag_text_add(out, ", ");
	frag_section_recorded(s, out);
	frag_text_add(out, "\n# ");
	frag_text_add_grouped(out, s->events_count);
	frag_text_add(out, " events");
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
	frag_text_add(out, "\n# ");
	frag_report_settings(r, s, out);
	frag_text_add(out, "\n");
	frag_section_settled(r, s, out);
}

static int add_section(const struct frag_report *r, const struct frag_section *s,
		       struct frag_text *out, struct frag_err *err)
{
	struct frag_text line = { 0 };
	struct frag_table table;

	frag_report_head(r, s, out);
	FRAG_TRY(frag_refusals_text(r, s, true, out, err));
	FRAG_TRY(frag_summary_table(s, false, r->columns, &table, err));
	frag_table_print(&table, out);
	frag_table_release(&table);
	frag_section_planned(s, &line);
	if (line.len)
		frag_text_addf(out, "%s\n", line.s);
	frag_text_release(&line);
	if (*s->optimum.note)
		frag_text_addf(out, "no offline placement: %s\n", s->optimum.note);
	if (s->missing)
		frag_text_addf(out, "interrupted, missing: %s\n", s->missing);
	frag_text_add(out, "answer: ");
	frag_section_answer(s, out);
	frag_text_add(out, "\n");
	frag_section_export(s, &line);
	if (s->count > 1 && line.len)
		frag_text_addf(out, "to use it: %s\n", line.s);
	frag_text_release(&line);
	frag_section_run(s, &line);
	if (line.len)
		frag_text_addf(out, "or: %s\n", line.s);
	frag_text_release(&line);
	return 0;
}

/* What all of them need together: one card for each. */
static int add_spread(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	FRAG_AUTO(frag_spreads_release) struct frag_spreads s = { 0 };
	struct frag_table table;

	FRAG_TRY(frag_spreads_init(&s, r, err));
	if (s.count) {
		frag_text_addf(out, "\n# all %zu %s together: peak reserved of each\n", s.units,
			       frag_spreads_noun(r));
		frag_spreads_table(&s, r, &table);
		frag_table_print(&table, out);
		frag_table_release(&table);
		frag_text_add(out, "answer: ");
		frag_spreads_answer(&s, r, out);
		frag_text_add(out, "\n");
	}
	return 0;
}

int frag_report_table(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	for (size_t i = 0; i < r->count; i++) {
		if (i)
			frag_text_add(out, "\n");
		FRAG_TRY(add_section(r, &r->sections[i], out, err));
	}
	FRAG_TRY(add_spread(r, out, err));
	return frag_text_check(out, err);
}
