/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time of one replay; see advice.h. */
#include "advice.h"

#include <frag/metrics.h>

/* A point has the maximum up to the next point, so no peak is lost. */
void frag_curve_take(struct frag_curve *c, const struct frag_series *s)
{
	c->count = 0;
	for (size_t i = 0; i < s->count && c->count < FRAG_CURVE_POINTS; i++)
		c->points[c->count++] =
			(struct frag_curve_sample){ .time_us = s->windows[i].first_us,
						    .requested = s->windows[i].requested_max,
						    .active = s->windows[i].active_max,
						    .reserved = s->windows[i].reserved_max };
}
