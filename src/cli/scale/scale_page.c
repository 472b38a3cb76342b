/* SPDX-License-Identifier: Apache-2.0 */
/* scale --out: DIR/scale.html with the curve, its picture and its data. */
#include <inttypes.h>

#include "explain/page.h"
#include "scale_sheet.h"

/* What the card leaves to a process. */
static uint64_t room_bytes(const struct frag_cli *cli)
{
	uint64_t limit = frag_target_limit(&cli->target);

	return FRAG_MIN(limit, cli->target.card.total_bytes - cli->target.card.context_bytes);
}

static void add_data(struct frag_sheet *s, struct frag_text *csv)
{
	frag_text_add(csv, "site,name,value,recorded,requested_bytes,reserved_bytes,"
			   "reserved_most_bytes,room_bytes\n");
	for (size_t p = 0; p < s->specs_count; p++) {
		for (size_t i = 0; i < s->values_count; i++) {
			const struct frag_sheet_cell *c = &s->cells[i * s->specs_count + p];

			if (!c->completed)
				continue;
			frag_text_addf(csv, "%zu,", p);
			frag_text_add_csv(csv, frag_policy_spec_echo(s->specs[p]));
			frag_text_addf(csv,
				       ",%" PRIu64 ",%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64
				       ",%" PRIu64 "\n",
				       s->values[i],
				       frag_sheet_source(s, s->values[i]) == FRAG_SHEET_RECORDED,
				       c->peak_requested_bytes, c->low_bytes, c->high_bytes,
				       room_bytes(s->cli));
		}
	}
}

/* What the first policy reserves at the greatest value, and how many times that of the smallest. */
static void finding(const struct frag_sheet *s, struct frag_text *out)
{
	size_t last = s->values_count - 1;
	const struct frag_sheet_cell *a = &s->cells[0], *b = &s->cells[last * s->specs_count];

	if (!last || !a->completed || !b->completed || !a->low_bytes) {
		frag_text_addf(out, "Peak memory by %s", s->name);
		return;
	}
	frag_text_addf(out, "At %s = %" PRIu64 " %s reserves ", s->name, s->values[last],
		       frag_policy_spec_echo(s->specs[0]));
	frag_text_add_bytes(out, b->high_bytes);
	frag_text_addf(out, ", %.1f times that at %" PRIu64,
		       (double)b->high_bytes / (double)a->low_bytes, s->values[0]);
}

int frag_sheet_page(struct frag_sheet *s, const char *text, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text answer = { 0 }, x = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text title = { 0 };
	struct frag_page page = { .dir = s->cli->out,
				  .file = "scale.html",
				  .title = "How memory grows",
				  .question =
					  "What does the program need at other sizes, and what is "
					  "the greatest that the card takes?",
				  .text = text,
				  .argv = s->cli->argv,
				  .argc = s->cli->argc,
				  .threads = s->cli->threads,
				  .charts_count = 1 };
	int rc;

	frag_sheet_answer(s, &answer);
	frag_text_add(&answer, ". ");
	frag_sheet_trust(s, &answer);
	frag_text_add(&x, s->name);
	finding(s, &title);
	page.answer = frag_text_str(&answer);
	page.charts[0] = (struct frag_page_chart){
		.script = "scale",
		.extra = frag_text_str(&x),
		.base = "scale",
		.heading = "Peak memory by size",
		.caption = "Filled marks are recorded, open ones predicted. The area is what was "
			   "requested, the dashed line what the card has.",
		.title = frag_text_str(&title),
		.subtitle = s->parts[s->parts_count - 1].recording.trace->name
	};
	add_data(s, &page.charts[0].csv);
	rc = frag_text_check(&answer, err);
	if (!rc)
		rc = frag_page_write(&page, err);
	else
		frag_text_release(&page.charts[0].csv);
	return rc;
}
