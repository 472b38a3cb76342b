/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What compare and replay print. compare: a table and a conclusion for each device of each trace.
 * replay: everything about one policy: metrics by name, where the bytes are at the peak, the story
 * of an out of memory and, with counters, latency by class, driver calls and the policy's own
 * statistics.
 */
#include <inttypes.h>
#include <string.h>

#include "rows.h"

void frag_report_compare(const struct frag_report *r, struct frag_answer *a)
{
	frag_report_data(r, a);
	for (size_t i = 0; i < r->count; i++) {
		const struct frag_section *s = &r->sections[i];

		if (i)
			frag_answer_gap(a);
		frag_section_remarks(r, s, true, a);
		frag_refusals_parts(s, true, a);
		frag_section_table(r, s, a);
		frag_section_conclusion(s, a);
	}
	frag_spread_parts(r, false, a);
}

/* ---- the metrics of a replay ------------------------------------------------------------ */

#define METRIC(F, P, S) \
	P(S, TEXT, name, "metric", "its name") \
	P(S, TEXT, value, "value", "exact", .right = true, .none = "", .spare = 1) \
	P(S, TEXT, readable, "", "with its unit", .right = true, .none = "") \
	P(S, TEXT, help, "meaning", "what it is")
FRAG_ROW(metric_row, "metric", METRIC, "a metric of a replay");

static struct metric_row metric_of(const struct frag_metric_info *info,
				   const struct frag_metrics *m, struct frag_answer *a)
{
	const char *at = (const char *)m + info->offset;
	struct metric_row row = { .name = info->name, .help = info->help };
	struct frag_text text = { 0 };
	uint64_t n;

	if (info->type == FRAG_METRIC_T_F64) {
		frag_text_add_number(&text, *(const double *)at);
		row.value = frag_answer_take(a, &text) ?: "-";
		return row;
	}
	n = *(const uint64_t *)at;
	row.value = frag_answer_print(a, "%" PRIu64, n);
	if (!strcmp(info->unit, "B"))
		row.readable = frag_answer_print(a, "%s", FRAG_BYTES(n));
	else if (!strcmp(info->unit, "ns"))
		row.readable = frag_answer_print(a, "%s", FRAG_NS(n));
	return row;
}

static const char *const minor[] = {
	"peak_allocated_bytes", "frag_bytes",	    "mean_efficiency_ratio", "peak_event",
	"non_releasable_bytes", "releasable_bytes", "largest_free_bytes",    "frees_count",
};

/* For one screen: not what the parts of the peak say below, nor zeros that say nothing. */
static bool matters(const struct frag_metric_info *info, const struct frag_metrics *m)
{
	const char *at = (const char *)m + info->offset;

	if (!strncmp(info->name, "at_peak_", 8) || !strncmp(info->name, "final_", 6))
		return false;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(minor); i++)
		if (!strcmp(info->name, minor[i]))
			return false;
	if (frag_report_is_host(info))
		return !strcmp(info->name, "host_ns");
	return info->type == FRAG_METRIC_T_F64 || *(const uint64_t *)at ||
	       !strcmp(info->name, "ooms_count");
}

static void add_metrics(const struct frag_report *r, const struct frag_result *res,
			struct frag_answer *a)
{
	size_t count, n = 0;
	const struct frag_metric_info *list = frag_metric_list(&count);
	struct metric_row *rows = frag_answer_new(a, count, sizeof(*rows));

	for (size_t i = 0; rows && i < count; i++)
		if ((!r->omit_host || !frag_report_is_host(&list[i])) &&
		    (r->counters || matters(&list[i], &res->m)))
			rows[n++] = metric_of(&list[i], &res->m, a);
	frag_answer_table(a, &metric_row_shape, rows, n)->wraps = true;
}

/* ---- the rest of a replay --------------------------------------------------------------- */

static void add_oom(const struct frag_report *r, const struct frag_result *res,
		    struct frag_answer *a)
{
	const struct frag_oom *o = &res->oom;

	frag_answer_heading(a,
			    "out of memory: event %" PRIu64 " at %.6f s, step %" PRIu64
			    ": no room for %s; %s",
			    o->event, (double)o->time_us / 1e6, o->step, FRAG_BYTES(o->bytes),
			    frag_result_stopped(res) ? "the replay stopped there"
						     : "it was skipped and the replay continued");
	if (r->counters) {
		frag_loss_table(&o->at, a);
		return;
	}
	frag_answer_say(a,
			"reserved then %s, of which free %s, largest free block %s; --counters "
			"says where the rest was",
			FRAG_BYTES(o->at.reserved_bytes),
			FRAG_BYTES(o->at.non_releasable_bytes + o->at.releasable_bytes),
			FRAG_BYTES(o->at.largest_free_bytes));
}

static void add_result(const struct frag_report *r, const struct frag_section *s,
		       const struct frag_result *res, struct frag_answer *a)
{
	frag_section_remarks(r, s, true, a);
	frag_refusals_parts(s, r->counters, a);
	frag_answer_say(a, "policy: %s", res->policy);
	if (res->params && *res->params && strcmp(res->params, res->policy) != 0)
		frag_answer_say(a, "params: %s", res->params);
	frag_answer_say(a, "result: %s",
			!res->oom.happened ? "completed"
			: frag_result_stopped(res)
				? "out of memory"
				: "continued without the requests that could not be served");
	frag_answer_gap(a);
	add_metrics(r, res, a);
	frag_answer_heading(a, "at peak reserved, event %" PRIu64 " at %.6f s", res->peak.event,
			    (double)res->peak.time_us / 1e6);
	frag_loss_table(&res->peak, a);
	if (res->oom.happened)
		add_oom(r, res, a);
	if (!r->counters)
		return;
	frag_latency_table(r->card.modelled ? "driver time per call, modelled"
					    : "driver time per call, measured",
			   res->alloc_modelled_ns, &res->free_modelled_ns, a);
	if (!r->omit_host)
		frag_latency_table("host time per call, measured (sampled)", res->alloc_host_ns,
				   &res->free_host_ns, a);
	frag_calls_table(res, a);
	frag_counters_table(res, a);
}

void frag_report_replay(const struct frag_report *r, struct frag_answer *a)
{
	frag_report_data(r, a);
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->sections[i].count; k++) {
			if (i || k)
				frag_answer_gap(a);
			add_result(r, &r->sections[i], &r->sections[i].results[k], a);
		}
}
