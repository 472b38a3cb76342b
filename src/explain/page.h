/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page beside report.html: a paragraph, charts with their data, tables as text, and the command that
 * makes it again. Charts are drawn first, the page comes last and is complete or absent.
 */
#ifndef FRAG_EXPLAIN_PAGE_H
#define FRAG_EXPLAIN_PAGE_H

#include <frag/base.h>

#include "answer/draw/plot.h"
#include "answer/textbuf.h"

struct frag_page_chart {
	const char *base, *heading, *caption, *title, *subtitle;
	bool stacked;		    /* areas, else lines */
	struct frag_text csv;	    /* site,name,x,time_s,bytes,upto_bytes; the page's to release */
	const char *script, *extra; /* of scripts/plot with another CSV; NULL: sites */
};

#define FRAG_PAGE_CHARTS 3
struct frag_page {
	const char *dir, *file; /* "explain.html" */
	const char *title, *question, *answer;
	struct frag_page_chart charts[FRAG_PAGE_CHARTS];
	size_t charts_count;
	const char *text;  /* tables, as the command prints them */
	char *const *argv; /* the command line */
	int argc;
	unsigned threads;
};
/* Errors: FRAG_EOUTPUT, FRAG_ENOMEM. Releases the CSVs in any case. */
int frag_page_write(struct frag_page *page, struct frag_err *err);

/* One point of a curve: rows of a chart's CSV, all of one curve together. */
void frag_page_point(struct frag_text *csv, size_t site, const char *name, double x,
		     uint64_t time_us, uint64_t bytes, uint64_t upto);
/* The header line of such a CSV; x: what the third column is called. */
void frag_page_header(struct frag_text *csv, const char *x);

#endif
