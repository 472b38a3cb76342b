/* SPDX-License-Identifier: Apache-2.0 */
/* Address-space map: what every address was used for over time, before and after. */
#include "chart.h"
#include "layout.h"

#define COLUMNS(X, s) \
	X(s, COUNT, panel, panel) \
	X(s, TEXT, policy, l->policy) \
	X(s, TEXT, use, frag_layout_use_name(b->use)) \
	X(s, COUNT, from_event, b->from_event) \
	X(s, COUNT, to_event, b->to_event) \
	X(s, REAL, from_s, frag_chart_seconds(job, b->from_us)) \
	X(s, REAL, to_s, frag_chart_seconds(job, b->to_us)) \
	X(s, BYTES, low_bytes, b->low) \
	X(s, BYTES, high_bytes, b->high)
FRAG_CSV_ROW(row, COLUMNS)

/* Rows of one policy after the other; addresses are those of the folded axis. */
static struct frag_rows rows(const struct frag_chart_job *job)
{
	const struct frag_section *s = job->section;
	size_t count = 0, n = 0, panel = 0;
	struct row *list;

	for (size_t i = 0; i < s->layouts_count; i++)
		count += s->layouts[i].count;
	list = frag_answer_new(job->answer, count, sizeof(*list));
	for (size_t i = 0; list && i < s->layouts_count; i++) {
		const struct frag_layout *l = &s->layouts[i];

		for (const struct frag_layout_box *b = l->boxes; b < l->boxes + l->count; b++)
			list[n++] = FRAG_CSV_VALUES(row, COLUMNS);
		panel += l->count > 0;
	}
	return (struct frag_rows){ list, n };
}

static void finding(const struct frag_chart_job *job, struct frag_title *out)
{
	bool said = false;

	for (size_t i = 0; i < job->section->layouts_count; i++) {
		const struct frag_layout *l = &job->section->layouts[i];

		frag_text_addf(&out->text, "%s%s %s%s", said ? ", " : "", l->policy,
			       said ? "" : "spreads over ",
			       frag_title_bytes(out, said ? "other_span_bytes" : "span_bytes",
						l->span_bytes));
		said = true;
	}
	if (said)
		frag_text_add(&out->text, " of addresses");
}

static void note(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_layout *l = &job->section->layouts[0];

	frag_text_addf(out,
		       " %zu moments, %s to a line; addresses that were never in use are left out.",
		       l->samples, FRAG_BYTES(l->cell_bytes));
}

const struct frag_chart_ops frag_chart_addresses = {
	.name = "addresses",
	.rank = 32,
	.heading = "Address-space map",
	FRAG_CHART_HOOKS,
	.caption = "Each line across is a stretch of addresses, coloured by what most of it is "
		   "used for; blank: not taken from the card. Orange between grey is "
		   "fragmentation: free, but held fast by a live block in the same segment.",
	.note = note,
	.extra = frag_chart_x_unit,
};
