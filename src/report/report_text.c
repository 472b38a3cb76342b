/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of compare: head lines with '#', a table per section, one sentence that
 * answers the question.
 */
#include "report.h"
#include "report_internal.h"
#include "summary.h"

#include <inttypes.h>
#include <string.h>

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
	if (s->truncated || s->seed_blocks)
		frag_text_addf(out, ", began with %" PRIu64 " live blocks", s->seed_blocks);
	frag_text_add(out, "\n# ");
	frag_report_settings(r, out);
	frag_text_add(out, "\n");
}

static int add_section(const struct frag_report *r, const struct frag_section *s,
		       struct frag_text *out, struct frag_err *err)
{
	struct frag_table table;

	frag_report_head(r, s, out);
	FRAG_TRY(frag_summary_table(s, false, &table, err));
	frag_table_print(&table, out);
	frag_table_release(&table);
	frag_text_add(out, "answer: ");
	frag_section_answer(r, s, out);
	frag_text_add(out, "\n");
	return 0;
}

/* Least that device `s` needs: its best policy, else what was reached before memory ran out. */
static uint64_t need_of(const struct frag_section *s)
{
	size_t best = frag_section_best(s);
	uint64_t need = 0;

	if (best != SIZE_MAX)
		return s->results[best].m.peak_reserved_bytes;
	for (size_t i = 0; i < s->count; i++)
		need = FRAG_MAX(need, s->results[i].m.peak_reserved_bytes);
	return need;
}

/* Several devices: the one that needs most decides which cards will do. */
static void add_worst(const struct frag_report *r, size_t first, size_t end, struct frag_text *out)
{
	size_t worst = first;

	for (size_t i = first + 1; i < end; i++) {
		if (need_of(&r->sections[i]) > need_of(&r->sections[worst]))
			worst = i;
	}
	frag_text_addf(out, "worst device: %" PRIu32 " needs ", r->sections[worst].ordinal);
	frag_text_add_bytes(out, need_of(&r->sections[worst]));
	frag_text_addf(out, " at least, the most of %zu\n", end - first);
}

int frag_report_table(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	for (size_t i = 0, first = 0; i < r->count; i++) {
		bool last = i + 1 == r->count ||
			    strcmp(r->sections[i + 1].trace, r->sections[i].trace) != 0;

		if (i)
			frag_text_add(out, "\n");
		FRAG_TRY(add_section(r, &r->sections[i], out, err));
		if (!last)
			continue;
		if (i > first)
			add_worst(r, first, i + 1, out);
		first = i + 1;
	}
	return frag_text_check(out, err);
}
