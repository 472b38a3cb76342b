/* SPDX-License-Identifier: Apache-2.0 */
/* Figures for the scripts of charts. */
#include "plot_values.h"

#include <math.h>
#include <stdint.h>

#include <frag/base.h>

/* A curve beyond this multiple of the median peak is far away; how far a line may be above all. */
#define FAR 3
#define NEAR 1.3

static double known(double value)
{
	return isnan(value) || value >= (double)UINT64_MAX ? 0 : value;
}

void frag_plot_value(struct frag_text *out, const char *name, double value)
{
	frag_text_addf(out, "%s = %.17g; ", name, known(value));
}

void frag_plot_array(struct frag_text *out, const char *name, const double *values, size_t count)
{
	frag_text_addf(out, "array %s[%zu]; ", name, count);
	for (size_t i = 0; i < count; i++)
		frag_text_addf(out, "%s[%zu] = %.17g; ", name, i + 1, known(values[i]));
}

/* The highest peak that at most half of the others are below. */
static double median_peak(const struct frag_plot_curve *curves, size_t count)
{
	double median = 0;

	for (size_t i = 0; i < count; i++) {
		size_t below = 0;

		for (size_t k = 0; k < count; k++)
			below += curves[k].peak_bytes < curves[i].peak_bytes;
		if (below <= count / 2)
			median = fmax(median, curves[i].peak_bytes);
	}
	return median;
}

void frag_plot_curves(const struct frag_plot_curve *curves, size_t count,
		      const struct frag_plot_lines *lines, bool seconds, struct frag_text *out)
{
	static const char *const arrays[] = { "FIRST", "LAST", "PEAK",	"END_X",
					      "END_Y", "OOM",  "BEYOND" };
	double far = count > 2 ? FAR * median_peak(curves, count) : HUGE_VAL;
	double top = fmax(known(lines->bound_bytes), known(lines->placement_bytes)), high, last = 0;
	double room = known(lines->capacity_bytes), card = known(lines->card_bytes);
	size_t base = 0;
	bool clipped = false;

	for (size_t k = 0; k < FRAG_ARRAY_LEN(arrays); k++)
		frag_text_addf(out, "array %s[%zu]; ", arrays[k], count);
	for (size_t i = 0; i < count; i++) {
		const struct frag_plot_curve *c = &curves[i];

		frag_text_addf(out,
			       "FIRST[%zu] = %zu; LAST[%zu] = %zu; PEAK[%zu] = %.17g; END_X[%zu] = "
			       "%.17g; END_Y[%zu] = %.17g; OOM[%zu] = %d; BEYOND[%zu] = %d; ",
			       i + 1, c->first, i + 1, c->last, i + 1, c->peak_bytes, i + 1,
			       c->end_x, i + 1, c->end_bytes, i + 1, c->oom, i + 1,
			       c->peak_bytes > far);
		clipped |= c->peak_bytes > far;
		top = fmax(top, c->peak_bytes <= far ? c->peak_bytes : 0);
		if (curves[base].oom)
			base = i;
		last = fmax(last, c->end_x);
	}
	top = top > 0 ? top : (double)FRAG_MIB;
	high = top;
	if (room > high && room < NEAR * top)
		high = room;
	if (card > high && card < NEAR * top)
		high = card;
	frag_text_addf(out, "SECONDS = %d; CLIPPED = %d; BASE = %zu; ", seconds, clipped, base);
	frag_plot_value(out, "LAST_X", last);
	frag_plot_value(out, "TOP", top);
	frag_plot_value(out, "HIGH", high);
	frag_plot_value(out, "BOUND", lines->bound_bytes);
	frag_plot_value(out, "PLACE", lines->placement_bytes);
	frag_plot_value(out, "ROOM", room);
	frag_plot_value(out, "CARD", card);
}

#define LEAST_NS 1000.0

void frag_plot_pareto(const struct frag_plot_point *points, size_t count, double bound_bytes,
		      bool measured, struct frag_text *out)
{
	double least = HUGE_VAL, most = 0, low = HUGE_VAL, high = 0, bound = known(bound_bytes);

	frag_text_addf(out, "array DONE[%zu]; ", count);
	for (size_t i = 0; i < count; i++) {
		double ns = points[i].ns > 0 ? points[i].ns : LEAST_NS;

		frag_text_addf(out, "DONE[%zu] = %d; ", i + 1, points[i].completed);
		least = fmin(least, ns);
		most = fmax(most, ns);
		low = fmin(low, points[i].bytes);
		high = fmax(high, points[i].bytes);
	}
	frag_plot_value(out, "MEASURED", measured);
	frag_plot_value(out, "LEAST_NS", least);
	frag_plot_value(out, "MOST_NS", most);
	frag_plot_value(out, "HIGHEST", high);
	frag_plot_value(out, "BOUND", bound);
	frag_plot_value(out, "LOW", fmax(bound > 0 ? fmin(low, bound) : low, (double)FRAG_MIB));
	frag_plot_value(out, "TOP", fmax(fmax(high, bound), 2.0 * FRAG_MIB));
}
