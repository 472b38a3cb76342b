/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of replay: everything about one policy. Metrics by name, where the
 * bytes are at the peak, latency per class, driver calls, the policy's own
 * counters, and the story of an out of memory.
 */
#include "report/report.h"
#include "report/report_internal.h"
#include "refusals.h"

#include <inttypes.h>
#include <string.h>

static void add_metric(struct frag_table *t, const struct frag_metric_info *info,
		       const struct frag_metrics *m)
{
	const char *at = (const char *)m + info->offset;
	struct frag_text text = { 0 };

	frag_table_cell(t, "%s", info->name);
	if (info->type == FRAG_METRIC_T_U64) {
		uint64_t v = *(const uint64_t *)at;

		frag_table_cell(t, "%" PRIu64, v);
		if (!strcmp(info->unit, "B"))
			frag_text_add_bytes(&text, v);
		else if (!strcmp(info->unit, "ns"))
			frag_text_add_ns(&text, v);
	} else {
		frag_text_add_number(&text, *(const double *)at);
		frag_table_cell(t, "%s", text.len ? text.s : "-");
		frag_text_release(&text);
	}
	frag_table_cell(t, "%s", frag_text_str(&text));
	frag_table_cell(t, "%s", info->help);
	frag_text_release(&text);
}

static const char *const minor[] = {
	"peak_allocated_bytes", "frag_bytes",	    "mean_efficiency_ratio", "peak_event",
	"non_releasable_bytes", "releasable_bytes", "largest_free_bytes",    "frees_count",
};

/* For one screen: not what the parts of the peak say below, nor what is 0 and says nothing by it. */
static bool matters(const struct frag_metric_info *info, const struct frag_metrics *m)
{
	const char *at = (const char *)m + info->offset;
	bool host = frag_report_is_host(info);

	if (!strncmp(info->name, "at_peak_", 8) || !strncmp(info->name, "final_", 6))
		return false;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(minor); i++)
		if (!strcmp(info->name, minor[i]))
			return false;
	if (host)
		return !strcmp(info->name, "host_ns");
	return info->type == FRAG_METRIC_T_F64 || *(const uint64_t *)at ||
	       !strcmp(info->name, "ooms_count");
}

static void add_metrics(const struct frag_report *r, const struct frag_result *res,
			struct frag_text *out)
{
	static const char *const spare[] = { "value",
					     NULL }; /* beside it stands what can be read */
	FRAG_AUTO(frag_table_release)
	struct frag_table t = { .room = r->columns, .spare = spare, .wraps = true };
	size_t count;
	const struct frag_metric_info *list = frag_metric_list(&count);

	frag_table_column(&t, &(struct frag_table_column){ "metric", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "value", "", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "", "", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "meaning", "", true, NULL });
	for (size_t i = 0; i < count; i++) {
		if ((!r->omit_host || !frag_report_is_host(&list[i])) &&
		    (r->counters || matters(&list[i], &res->m)))
			add_metric(&t, &list[i], &res->m);
	}
	frag_table_print(&t, out);
}

static void add_share(struct frag_table *t, const char *name, uint64_t bytes, uint64_t all)
{
	frag_table_cell(t, "%s", name);
	frag_table_cell(t, "%.1f", (double)bytes / (double)FRAG_MIB);
	if (all)
		frag_table_cell(t, "%.1f", 100.0 * (double)bytes / (double)all);
	else
		frag_table_cell(t, "-");
}

static void add_loss(const struct frag_loss *l, struct frag_text *out)
{
	struct frag_table t = { 0 };

	frag_table_column(&t, &(struct frag_table_column){ "where the bytes are", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "size", "MiB", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "share", "%", false, NULL });
	add_share(&t, "requested", l->requested_bytes, l->reserved_bytes);
	add_share(&t, "rounding", l->rounding_bytes, l->reserved_bytes);
	add_share(&t, "waiting for a stream", l->waiting_bytes, l->reserved_bytes);
	add_share(&t, "free, non-releasable", l->non_releasable_bytes, l->reserved_bytes);
	add_share(&t, "free, releasable", l->releasable_bytes, l->reserved_bytes);
	add_share(&t, "other", l->other_bytes, l->reserved_bytes);
	add_share(&t, "reserved", l->reserved_bytes, l->reserved_bytes);
	frag_table_print(&t, out);
	frag_table_release(&t);
	frag_text_add(out, "largest free block: ");
	frag_text_add_bytes(out, l->largest_free_bytes);
	frag_text_add(out, "\n");
}

static void add_oom(const struct frag_report *r, const struct frag_result *res,
		    struct frag_text *out)
{
	const struct frag_oom *o = &res->oom;

	frag_text_addf(
		out, "\nout of memory: event %" PRIu64 " at %.6f s, step %" PRIu64 ": no room for ",
		o->event, (double)o->time_us / 1e6, o->step);
	frag_text_add_bytes(out, o->bytes);
	frag_text_add(out, frag_result_stopped(res) ? "; the replay stopped there\n"
						    : "; it was skipped and the replay went on\n");
	if (r->counters) {
		add_loss(&o->at, out);
		return;
	}
	frag_text_add(out, "reserved then ");
	frag_text_add_bytes(out, o->at.reserved_bytes);
	frag_text_add(out, ", of which free ");
	frag_text_add_bytes(out, o->at.non_releasable_bytes + o->at.releasable_bytes);
	frag_text_add(out, ", largest free block ");
	frag_text_add_bytes(out, o->at.largest_free_bytes);
	frag_text_add(out, "; --counters says where the rest was\n");
}

static void add_hist(struct frag_table *t, const char *what, const char *cls,
		     const struct frag_hist *h)
{
	static const double q[] = { 0.5, 0.9, 0.99, 0.999 };

	if (!h->count)
		return;
	frag_table_cell(t, "%s", what);
	frag_table_cell(t, "%s", cls);
	frag_table_cell(t, "%" PRIu64, h->count);
	frag_table_cell(t, "%" PRIu64, h->min);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(q); i++)
		frag_table_cell(t, "%" PRIu64, frag_hist_quantile(h, q[i]));
	frag_table_cell(t, "%" PRIu64, h->max);
	frag_table_cell(t, "%" PRIu64, h->sum);
}

static void add_latency(const struct frag_report *r, const char *title,
			const struct frag_hist *alloc, const struct frag_hist *release,
			struct frag_text *out)
{
	static const char *const spare[] = { "p99.9", "p90", "min", NULL };
	static const char *const heads[] = { "count", "min",   "p50", "p90",
					     "p99",   "p99.9", "max", "total" };
	FRAG_AUTO(frag_table_release) struct frag_table t = { .room = r->columns, .spare = spare };

	frag_table_column(&t, &(struct frag_table_column){ "call", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "class", "", true, NULL });
	for (size_t i = 0; i < FRAG_ARRAY_LEN(heads); i++)
		frag_table_column(
			&t, &(struct frag_table_column){ heads[i], i ? "ns" : "", false, NULL });
	for (int c = 0; c < FRAG_CLASS_COUNT; c++)
		add_hist(&t, "alloc", frag_class_name((enum frag_class)c), &alloc[c]);
	add_hist(&t, "free", "", release);
	if (t.cells_count) {
		frag_text_addf(out, "\n%s\n", title);
		frag_table_print(&t, out);
	}
}

static void add_calls(const struct frag_result *res, struct frag_text *out)
{
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };

	frag_table_column(&t, &(struct frag_table_column){ "driver call", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "done", "", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "failed", "", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "bytes", "MiB", false, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "time", "ms", false, NULL });
	for (int c = 0; c < FRAG_CALL_COUNT; c++) {
		const struct frag_call_stat *st = &res->calls[c];

		if (!st->count && !st->failed)
			continue;
		frag_table_cell(&t, "%s", frag_call_name((enum frag_call)c));
		frag_table_cell(&t, "%" PRIu64, st->count);
		frag_table_cell(&t, "%" PRIu64, st->failed);
		frag_table_cell(&t, "%.1f", (double)st->bytes / (double)FRAG_MIB);
		frag_table_cell(&t, "%.3f", (double)st->ns / 1e6);
	}
	if (t.cells_count) {
		frag_text_add(out, "\n");
		frag_table_print(&t, out);
	}
}

static void add_counters(const struct frag_result *res, struct frag_text *out)
{
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };

	frag_table_column(&t,
			  &(struct frag_table_column){ "counter of the policy", "", true, NULL });
	frag_table_column(&t, &(struct frag_table_column){ "value", "", false, NULL });
	for (const struct frag_counter *c = res->counters; c && c->name; c++) {
		frag_table_cell(&t, "%s", c->name);
		frag_table_cell(&t, "%" PRId64, c->value);
	}
	if (t.cells_count) {
		frag_text_add(out, "\n");
		frag_table_print(&t, out);
	}
}

static int add_result(const struct frag_report *r, const struct frag_section *s,
		      const struct frag_result *res, struct frag_text *out, struct frag_err *err)
{
	frag_report_head(r, s, out);
	FRAG_TRY(frag_refusals_text(r, s, r->counters, out, err));
	frag_text_addf(out, "policy: %s\n", res->policy);
	if (res->params && *res->params && strcmp(res->params, res->policy) != 0)
		frag_text_addf(out, "params: %s\n", res->params);
	frag_text_addf(out, "result: %s\n\n",
		       !res->oom.happened	  ? "completed"
		       : frag_result_stopped(res) ? "out of memory"
						  : "went on without what could not be served");
	add_metrics(r, res, out);
	frag_text_addf(out, "\nat peak reserved, event %" PRIu64 " at %.6f s\n", res->peak.event,
		       (double)res->peak.time_us / 1e6);
	add_loss(&res->peak, out);
	if (res->oom.happened)
		add_oom(r, res, out);
	if (!r->counters)
		return 0;
	add_latency(r,
		    r->card.modelled ? "driver time per call, modelled"
				     : "driver time per call, measured",
		    res->alloc_modelled_ns, &res->free_modelled_ns, out);
	if (!r->omit_host)
		add_latency(r, "host time per call, measured (sampled)", res->alloc_host_ns,
			    &res->free_host_ns, out);
	add_calls(res, out);
	add_counters(res, out);
	return 0;
}

int frag_report_detail(const struct frag_report *r, struct frag_text *out, struct frag_err *err)
{
	for (size_t i = 0; i < r->count; i++) {
		for (size_t k = 0; k < r->sections[i].count; k++) {
			if (out->len)
				frag_text_add(out, "\n");
			FRAG_TRY(add_result(r, &r->sections[i], &r->sections[i].results[k], out,
					    err));
		}
	}
	return frag_text_check(out, err);
}
