/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures that a chart's script would have to compute, as assignments for its argument EXTRA (`eval
 * EXTRA`). Numbers only: texts come from the CSV, because a script must not run them.
 */
#ifndef FRAG_ANSWER_PLOT_VALUES_H
#define FRAG_ANSWER_PLOT_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "answer/textbuf.h"

/* "NAME = 1.5; " and "array NAME[2] = [1,2]; "; values that are NaN or UINT64_MAX are 0. */
void frag_plot_value(struct frag_text *out, const char *name, double value);
void frag_plot_array(struct frag_text *out, const char *name, const double *values, size_t count);

/* A curve of memory.gp: rows first to last of the CSV. */
struct frag_plot_curve {
	size_t first, last;
	double peak_bytes, end_x, end_bytes;
	bool oom; /* it ends out of memory */
};
/* Lines across it; 0, NaN or UINT64_MAX = there is none. */
struct frag_plot_lines {
	double bound_bytes, placement_bytes, capacity_bytes, card_bytes;
};
/*
 * What memory.gp needs: rows and ends of the curves (FIRST, LAST, PEAK, OOM, END_X, END_Y), the
 * highest byte that is drawn (TOP; HIGH with the lines near to it), the curve that requested memory
 * is drawn for (BASE), the lines (BOUND, PLACE, ROOM, CARD) and SECONDS: the x axis. A curve far
 * above all others would press them flat: it leaves the sheet (BEYOND).
 */
void frag_plot_curves(const struct frag_plot_curve *curves, size_t count,
		      const struct frag_plot_lines *lines, bool seconds, struct frag_text *out);

/* A point of pareto.gp: time in the driver, and peak reserved bytes. */
struct frag_plot_point {
	double ns, bytes;
	bool completed;
};
/*
 * What pareto.gp needs: which points completed (DONE), MEASURED, and the ends of both axes. bound_bytes: 0 or
 * UINT64_MAX = there is none. The time axis is logarithmic, so 0 ns is drawn as a microsecond.
 */
void frag_plot_pareto(const struct frag_plot_point *points, size_t count, double bound_bytes,
		      bool measured, struct frag_text *out);

#endif
