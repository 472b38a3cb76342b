/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All charts in one PDF: a gnuplot program that calls the scripts one after the other, each on
 * a page of its own. Texts go in as literals in single quotes, in which gnuplot knows no
 * escape and runs no command.
 */
#include "one_pdf.h"

/* 'it''s'; the break of a line is one outside of the quotes. */
static void add_literal(const char *name, const char *text, struct frag_text *out)
{
	frag_text_addf(out, "%s = '", name);
	for (const char *p = text; *p; p++) {
		if (*p == '\n')
			frag_text_add(out, "'.\"\\n\".'");
		else if ((unsigned char)*p < 0x20)
			frag_text_add(out, " ");
		else
			frag_text_addn(out, *p == '\'' ? "''" : p, *p == '\'' ? 2 : 1);
	}
	frag_text_add(out, "'\n");
}

void frag_one_pdf_script(const struct frag_plot *plots, size_t count, const char *scripts,
			 const char *output, struct frag_text *out)
{
	frag_text_add(out, "ONE_PDF = 1\nFORMAT = 'one_pdf'\nCHARTS = ''\nOUTPUT = ''\n"
			   "set term pdfcairo size 8.268in,11.693in fontscale 0.757 linewidth 1.2 "
			   "pointscale 0.757 font 'sans-serif,14' noenhanced rounded background "
			   "'#ffffff'\n");
	add_literal("CHARTS", output, out);
	frag_text_add(out, "set output CHARTS\n");
	for (size_t i = 0; i < count; i++) {
		const struct frag_plot *p = &plots[i];

		add_literal("SCRIPT", scripts, out);
		frag_text_addf(out, "SCRIPT = SCRIPT.'/%s.gp'\n", p->script);
		add_literal("CSV", p->csv, out);
		add_literal("TITLE", p->title, out);
		add_literal("SUBTITLE", p->subtitle, out);
		add_literal("EXTRA", p->extra, out);
		/* what a chart sets is not the next one's */
		frag_text_add(out, "call SCRIPT\nreset\n");
	}
	frag_text_add(out, "unset output\n");
}
