/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of scalar metrics, generated from metrics.def; release of a result.
 */
#include <frag/metrics.h>

#include <string.h>

static const struct frag_metric_info list[] = {
#define FRAG_METRIC_U64(n, u, h, ...) \
	{ .name = #n, \
	  .unit = u, \
	  .help = h, \
	  .type = FRAG_METRIC_T_U64, \
	  .offset = offsetof(struct frag_metrics, n) },
#define FRAG_METRIC_F64(n, u, h, ...) \
	{ .name = #n, \
	  .unit = u, \
	  .help = h, \
	  .type = FRAG_METRIC_T_F64, \
	  .offset = offsetof(struct frag_metrics, n) },
#include "metrics.def"
#undef FRAG_METRIC_U64
#undef FRAG_METRIC_F64
};

const struct frag_metric_info *frag_metric_list(size_t *count)
{
	*count = FRAG_ARRAY_LEN(list);
	return list;
}

void frag_counters_free(struct frag_counter *counters)
{
	for (size_t i = 0; counters && counters[i].name; i++)
		frag_host_free(counters[i].name);
	frag_host_free(counters);
}

void frag_result_release(struct frag_result *r)
{
	if (!r)
		return;
	FRAG_FREE(r->policy, r->params, r->conf, r->conf_variable, r->plan, r->trace, r->refused,
		  r->series.windows, r->series.losses);
	frag_counters_free(r->counters);
	memset(r, 0, sizeof(*r));
}
