/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawing: gnuplot as a child process on the scripts of scripts/plot. Texts go
 * as arguments, never as gnuplot commands.
 */
#ifndef FRAG_ANSWER_PLOT_H
#define FRAG_ANSWER_PLOT_H

#include <frag/error.h>

#include "answer/textbuf.h"

#include <stddef.h>

/* Formats of charts. */
#define FRAG_FORMAT_SVG 1u
#define FRAG_FORMAT_PNG 2u
#define FRAG_FORMAT_PDF 4u
#define FRAG_FORMAT_ONE_PDF 8u /* charts.pdf: all of them, one to a page */

/* One picture. Strings are borrowed. */
struct frag_plot {
	const char *script; /* name without ending; with a '/': the path of a program */
	const char *csv, *output;
	const char *format; /* "svg", "png", "pdf" */
	const char *title, *subtitle, *extra;
};

/*
 * The folder of the scripts in new memory: $FRAG_SHARE/plot, then share/cufrag/plot of
 * the prefix that the program is installed in, then scripts/plot of the source tree
 * it was built in. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_plot_scripts(char **dir, struct frag_err *err);

/* Letters of a title and of a line below it that have room on a sheet. */
#define FRAG_PLOT_TITLE 50u
#define FRAG_PLOT_SUBTITLE 68u
/* Breaks `text` into lines of at most `width` letters, between words where that is possible. */
void frag_plot_wrap(const char *text, size_t width, struct frag_text *out);

/* A new folder in `dir` (NULL: $TMPDIR), with a path that gnuplot takes. Errors: FRAG_EOUTPUT. */
int frag_plot_aside(const char *dir, char **folder, struct frag_err *err);
/* Draws all, `threads` at a time. Errors: FRAG_EOUTPUT with gnuplot's own words. */
int frag_plot_run(const struct frag_plot *plots, size_t count, unsigned threads,
		  struct frag_err *err);

#endif
