/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a chart of scripts/plot/sites.gp: bytes over time, a line or an area for each name. */
#ifndef FRAG_EXPLAIN_CURVE_POINT_H
#define FRAG_EXPLAIN_CURVE_POINT_H

#include "answer/field.h"

/* Points of one line are together. */
struct frag_curve_point {
	uint64_t line;
	const char *name;
	double x, time_s;
	uint64_t bytes, upto_bytes; /* upto: with those of all lines before it, for areas */
};

/* By what x is. */
extern const struct frag_shape frag_curve_by_event, frag_curve_by_run, frag_curve_by_step;

#endif
