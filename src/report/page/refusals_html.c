/* SPDX-License-Identifier: Apache-2.0 */
/* What was refused when the trace was recorded: a section of the page begins with it. */
#include "html.h"

#include "report/text/refusals.h"

int frag_html_refusals(const struct frag_section *s, struct frag_text *out, struct frag_err *err)
{
	FRAG_AUTO(frag_table_release) struct frag_table moments = { 0 }, outcomes = { 0 };
	struct frag_text t = { 0 };

	if (!frag_refusals_count(s))
		return 0;
	FRAG_TRY(frag_refusals_tables(s, 0, &moments, &outcomes, err));
	frag_refusals_sentence(s, &t);
	frag_text_add(out, "<section class=\"refused\">\n<p class=\"warn\">");
	frag_text_add_html(out, frag_text_str(&t));
	frag_text_add(out, ".</p>\n");
	frag_text_release(&t);
	if (moments.cells_count) {
		frag_table_html(&moments, SIZE_MAX, out);
		frag_refusals_rest(s, &t);
		frag_text_add(out, "<p class=\"meta\">");
		frag_text_add_html(out, frag_text_str(&t));
		frag_text_add(out, "The same requests under each policy:</p>\n");
		frag_table_html(&outcomes, SIZE_MAX, out);
	}
	frag_text_add(out, "</section>\n");
	frag_text_release(&t);
	return 0;
}
