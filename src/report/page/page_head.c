/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a page: what it is about, by whom, of when, and what it rests on. */
#include "html.h"

#include <frag/replay.h>

static void add_fact(const char *name, const char *text, bool code, struct frag_text *out)
{
	if (!text || !*text)
		return;
	frag_text_addf(out, "<dt>%s</dt><dd>%s", name, code ? "<code>" : "");
	frag_text_add_html(out, text);
	frag_text_addf(out, "%s</dd>\n", code ? "</code>" : "");
}

/* One verdict where all are alike, else how many of them. */
static void add_verdicts(const struct frag_report *r, struct frag_text *out)
{
	size_t same = 0, known = 0, first = SIZE_MAX;
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		known += s->verdict != NULL;
		same += s->verdict && s->settled.identical;
		if (s->verdict && !s->settled.identical && first == SIZE_MAX)
			first = i;
	}
	if (!known)
		frag_text_add(&t, "nothing to compare with: no record of what the allocator did");
	else if (r->count == 1)
		frag_text_add(&t, r->sections[0].verdict);
	else
		frag_text_addf(&t, "identical to what was recorded: %zu of %zu", same, r->count);
	if (r->count > 1 && first != SIZE_MAX) {
		frag_text_add(&t, "; ");
		frag_section_title(&r->sections[first], &t);
		frag_text_addf(&t, ": %s", r->sections[first].verdict);
	}
	add_fact("Checked", frag_text_str(&t), false, out);
}

/* A limit that held when the recording was made, and how it is known. */
static void add_limits(const struct frag_report *r, struct frag_text *out)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	char text[600];

	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		if (!s->settled.checked || s->settled.limit_source == FRAG_LIMIT_NONE)
			continue;
		frag_text_add(&t, t.len ? "; " : "");
		if (r->count > 1) {
			frag_section_title(s, &t);
			frag_text_add(&t, ": ");
		}
		frag_text_add(&t, frag_settled_text(&s->settled, text, sizeof(text)));
	}
	add_fact("Recorded under", frag_text_str(&t), false, out);
}

void frag_html_head(const struct frag_report *r, const char *subject, const char *question,
		    struct frag_text *out)
{
	frag_text_add(out, "<header>\n<p class=\"kicker\">cufrag report</p>\n<h1>");
	frag_text_add_html(out, r->title ? r->title : subject);
	frag_text_add(out, "</h1>\n<p class=\"question\">");
	frag_text_add_html(out, question);
	frag_text_add(out, "</p>\n<dl class=\"facts\">\n");
	add_fact("Author", r->author, false, out);
	add_fact("Date", r->date, false, out);
	add_verdicts(r, out);
	add_limits(r, out);
	add_fact("Command", r->command_line, true, out);
	frag_text_add(out, "</dl>\n</header>\n");
}
