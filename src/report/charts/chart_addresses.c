/* SPDX-License-Identifier: Apache-2.0 */
/* Address-space map: what every address was used for over time, before and after. */
#include "chart.h"
#include "layout.h"

#include <inttypes.h>

static bool wanted(const struct frag_chart_job *job)
{
	for (size_t i = 0; i < job->section->layouts_count; i++) {
		if (job->section->layouts[i].count)
			return true;
	}
	return false;
}

static void add_box(const struct frag_chart_job *job, size_t panel, const struct frag_layout *l,
		    const struct frag_layout_box *b, struct frag_text *out)
{
	frag_text_addf(out, "%zu,", panel);
	frag_text_add_csv(out, l->policy);
	frag_text_addf(out, ",%s,%" PRIu64 ",%" PRIu64 ",", frag_layout_use_name(b->use),
		       b->from_event, b->to_event);
	frag_chart_add_seconds(job, b->from_us, out);
	frag_text_add(out, ",");
	frag_chart_add_seconds(job, b->to_us, out);
	frag_text_addf(out, ",%" PRIu64 ",%" PRIu64 "\n", b->low, b->high);
}

/* Rows of one policy after the other; addresses are those of the folded axis. */
static void csv(const struct frag_chart_job *job, struct frag_text *out)
{
	size_t panel = 0;

	frag_text_add(out, "panel,policy,use,from_event,to_event,from_s,to_s,low_bytes,high_"
			   "bytes\n");
	for (size_t i = 0; i < job->section->layouts_count; i++) {
		const struct frag_layout *l = &job->section->layouts[i];

		for (size_t k = 0; k < l->count; k++)
			add_box(job, panel, l, &l->boxes[k], out);
		panel += l->count > 0;
	}
}

static void finding(const struct frag_chart_job *job, struct frag_text *out)
{
	bool said = false;

	for (size_t i = 0; i < job->section->layouts_count; i++) {
		const struct frag_layout *l = &job->section->layouts[i];

		frag_text_addf(out, "%s%s %s", said ? ", " : "", l->policy,
			       said ? "" : "spreads over ");
		frag_text_add_bytes(out, l->span_bytes);
		said = true;
	}
	if (said)
		frag_text_add(out, " of addresses");
}

static void caption(const struct frag_chart_job *job, struct frag_text *out)
{
	const struct frag_layout *l = &job->section->layouts[0];

	frag_text_add(out,
		      "Each line across is a stretch of addresses, coloured by what most of it "
		      "is used for; blank: not taken from the card. Orange between grey is "
		      "fragmentation: free, but held fast by a live block in the same segment. ");
	frag_text_addf(out, "%zu moments, ", l->samples);
	frag_text_add_bytes(out, l->cell_bytes);
	frag_text_add(out, " to a line; addresses that were never in use are left out.");
}

static void alt(const struct frag_chart_job *job, struct frag_text *out)
{
	frag_text_add(out, "Map of addresses over time. ");
	for (size_t i = 0; i < job->section->layouts_count; i++) {
		const struct frag_layout *l = &job->section->layouts[i];

		frag_text_addf(out, "%s%s uses ", i ? "; " : "", l->policy);
		frag_text_add_bytes(out, l->span_bytes);
		frag_text_add(out, " of addresses");
	}
	frag_text_add(out, ".");
}

const struct frag_chart_ops frag_chart_addresses = {
	.name = "addresses",
	.rank = 32,
	.heading = "Address-space map",
	.finding = finding,
	.wanted = wanted,
	.csv = csv,
	.caption = caption,
	.alt = alt,
	.extra = frag_chart_x_unit,
};
