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

/* A new folder in `dir` (NULL: $TMPDIR), with a path that gnuplot takes. Errors: FRAG_EOUTPUT. */
int frag_plot_aside(const char *dir, char **folder, struct frag_err *err);
/* Draws all, `threads` at a time. Errors: FRAG_EOUTPUT with gnuplot's own words. */
int frag_plot_run(const struct frag_plot *plots, size_t count, unsigned threads,
		  struct frag_err *err);
/* The gnuplot program that draws `plots` into the file `output`, each on a page of its own. */
void frag_one_pdf_script(const struct frag_plot *plots, size_t count, const char *scripts,
			 const char *output, struct frag_text *out);

/*
 * Appends `svg` (a whole file) to a page: no prolog, no size (CSS scales it), no
 * background, ids made unique by `prefix`, our inks as CSS variables
 * (--ink, --axis, --grid, --area), and `alt` as its description.
 */
void frag_svg_inline(const char *svg, const char *prefix, const char *alt, struct frag_text *out);
/* A picture that was drawn, as text in new memory. Errors: FRAG_EOUTPUT, FRAG_ENOMEM. */
int frag_svg_read(const char *path, char **svg, struct frag_err *err);

#endif
