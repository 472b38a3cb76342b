/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: one row per result, columns from the list of metrics, measured ones last. */
#include "report/report.h"

#include <inttypes.h>

static void add_metric(const struct frag_metrics *m, const struct frag_metric_info *info,
		       struct frag_text *out)
{
	const char *at = (const char *)m + info->offset;

	frag_text_add(out, ",");
	if (info->type == FRAG_METRIC_T_U64)
		frag_text_addf(out, "%" PRIu64, *(const uint64_t *)at);
	else
		frag_text_add_number(out, *(const double *)at);
}

static void add_metrics(const struct frag_metrics *m, bool host, struct frag_text *out)
{
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);

	for (size_t i = 0; i < count; i++) {
		if (frag_report_is_host(&list[i]) != host)
			continue;
		if (m)
			add_metric(m, &list[i], out);
		else
			frag_text_addf(out, ",%s", list[i].name);
	}
}

/* Empty fields: not available. */
static void add_row(const struct frag_section *s, const struct frag_result *res, bool omit_host,
		    struct frag_text *out)
{
	frag_text_add_csv(out, s->trace);
	frag_text_addf(out, ",%" PRIu32 ",", s->ordinal);
	frag_text_add_csv(out, res->policy);
	frag_text_add(out, ",");
	frag_text_add_csv(out, res->params ? res->params : "");
	frag_text_addf(out, ",%s,", res->completed ? "true" : "false");
	if (res->oom.happened)
		frag_text_addf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, res->oom.event,
			       res->oom.time_us, res->oom.bytes, res->oom.step);
	else
		frag_text_add(out, ",,,");
	frag_text_add(out, ",");
	if (s->optimum.placed)
		frag_text_addf(out, "%" PRIu64, s->optimum.place_bytes);
	add_metrics(&res->m, false, out);
	if (!omit_host)
		add_metrics(&res->m, true, out);
	frag_text_add(out, "\n");
}

void frag_report_csv(const struct frag_report *r, struct frag_text *out)
{
	frag_text_add(out, "trace,device_ordinal,policy,params,completed,first_oom,"
			   "first_oom_time_us,first_oom_bytes,first_oom_step,placement_bytes");
	add_metrics(NULL, false, out);
	if (!r->omit_host)
		add_metrics(NULL, true, out);
	frag_text_add(out, "\n");
	for (size_t i = 0; i < r->count; i++) {
		for (size_t k = 0; k < r->sections[i].count; k++)
			add_row(&r->sections[i], &r->sections[i].results[k], r->omit_host, out);
	}
}
