/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawing: gnuplot as a child process on the scripts of scripts/plot. Texts go
 * as arguments, never as gnuplot commands.
 */
#ifndef FRAG_REPORT_PLOT_H
#define FRAG_REPORT_PLOT_H

#include <frag/error.h>

#include <stddef.h>

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

/* Draws all, `threads` at a time. Errors: FRAG_EOUTPUT with gnuplot's own words. */
int frag_plot_run(const struct frag_plot *plots, size_t count, unsigned threads,
		  struct frag_err *err);

#endif
