/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: one self-contained page. */
#ifndef FRAG_REPORT_HTML_H
#define FRAG_REPORT_HTML_H

#include "answer/answer.h"
#include "report/charts/chart.h"

/* A chart as the page shows it. */
struct frag_figure {
	const struct frag_chart_ops *ops;
	size_t section; /* number in the report */
	char *base;	/* name of its files without ending */
	char *svg;	/* contents */
};

/* The whole page. figures: grouped by section, in the order of the page. Errors: FRAG_ENOMEM. */
int frag_html_page(const struct frag_report *r, const struct frag_figure *figures, size_t count,
		   unsigned formats, const char *ranks, struct frag_text *out,
		   struct frag_err *err);

/* The box with the answer; the sentence in t gets a capital. */
void frag_html_answer(struct frag_text *t, struct frag_text *out);
/* The requests that were refused when recorded; nothing where there are none. Errors: FRAG_ENOMEM. */
int frag_html_refusals(const struct frag_section *s, struct frag_text *out, struct frag_err *err);
/* Version and the command that makes the page again. */
void frag_html_again(const struct frag_report *r, struct frag_text *out);
/* What several ranks, devices or traces need together; nothing where there is one. figure: of
 * frag_ranks_draw. */
int frag_html_spread(const struct frag_report *r, const char *figure, struct frag_text *out,
		     struct frag_err *err);
/* Draws them into dir/ranks.csv, .svg, … and adds the figure to `out`; nothing where there is
 * one. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
int frag_ranks_draw(const struct frag_report *r, const char *dir, unsigned formats,
		    unsigned threads, struct frag_text *out, struct frag_err *err);
/* Title, question, author, date, whether the recording was reproduced, and the command. */
void frag_html_head(const struct frag_report *r, const char *subject, const char *question,
		    struct frag_text *out);

#endif
