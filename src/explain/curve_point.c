/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of charts over time; see curve_point.h. */
#include "curve_point.h"

#define POINT_FIELDS(x_name, x_help) \
	{ \
		FRAG_FIELD_AS(COUNT, "site", struct frag_curve_point, line, NULL, \
			      "number of the line"), \
			FRAG_FIELD(TEXT, struct frag_curve_point, name, NULL, "of the line"), \
			FRAG_FIELD_AS(REAL, x_name, struct frag_curve_point, x, NULL, x_help), \
			FRAG_FIELD(REAL, struct frag_curve_point, time_s, NULL, \
				   "since the recording began"), \
			FRAG_FIELD(BYTES, struct frag_curve_point, bytes, NULL, "then"), \
			FRAG_FIELD(BYTES, struct frag_curve_point, upto_bytes, NULL, \
				   "with those of all lines before it"), \
			FRAG_FIELD_END \
	}

static const struct frag_field by_event[] = POINT_FIELDS("event", "number of the event");
static const struct frag_field by_run[] = POINT_FIELDS("run_percent", "part of the run");
static const struct frag_field by_step[] = POINT_FIELDS("step", "number of the step");

const struct frag_shape frag_curve_by_event =
	FRAG_SHAPE("curve point", struct frag_curve_point, by_event, "memory at an event");
const struct frag_shape frag_curve_by_run =
	FRAG_SHAPE("curve point", struct frag_curve_point, by_run, "memory at a part of the run");
const struct frag_shape frag_curve_by_step =
	FRAG_SHAPE("curve point", struct frag_curve_point, by_step, "memory in a step");
