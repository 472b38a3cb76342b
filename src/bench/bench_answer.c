/* SPDX-License-Identifier: Apache-2.0 */
/* What bench measured, as an answer: driver calls by size, or policies on traces. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "answer/row.h"
#include "base/term.h"

#define LLU(x) ((unsigned long long)(x))

#define CALL_ROW(F, P, S) \
	F(S, TEXT, call, r->item, "call", "the driver's name, or a case of the call") \
	F(S, BYTES, bytes, r->bytes, NULL, "of one call; 0 = it has no size") \
	P(S, TEXT, size, r->bytes ? frag_answer_print(a, "%s", FRAG_BYTES(r->bytes)) : NULL, \
	  "size", "of one call", .right = true) \
	F(S, COUNT, handles, r->handles, "handles", "in one call", .spare = 4) \
	F(S, COUNT, samples_count, r->count, "samples", "calls that were timed", .spare = 3) \
	F(S, NS, min_ns, r->ns[0], "min", "the fastest", .unit = "us", .precision = 2, .spare = 7) \
	F(S, NS, p10_ns, p10, NULL, "10 % are faster") \
	F(S, NS, median_ns, median, "median", "half are faster", .unit = "us", .precision = 2) \
	F(S, NS, p90_ns, p90, "p90", "90 % are faster", .unit = "us", .precision = 2, .spare = 5) \
	F(S, NS, p99_ns, frag_bench_quantile(r, 0.99), "p99", "99 % are faster", .unit = "us", \
	  .precision = 2) \
	F(S, NS, max_ns, r->ns[r->count - 1], "max", "the slowest", .unit = "us", .precision = 2, \
	  .spare = 6) \
	F(S, RATIO, noise_ratio, median ? (double)(p90 - p10) / (double)median : 0, "noise", \
	  "from p10 to p90, over the median", .unit = "%", .spare = 1)
FRAG_VALUED_ROW(call_row, "bench_call", CALL_ROW, "one driver call at one size");

#define CLASS_ROW(F, P, S) \
	F(S, TEXT, class, frag_class_name(c), NULL, "of requests") \
	F(S, COUNT, allocs_count, p->class_ns[c].count, NULL, "allocations of it in one pass") \
	F(S, NS, p50_ns, p->class_ns[c].at[0].median_ns, NULL, "median call") \
	F(S, NS, p99_ns, p->class_ns[c].at[2].median_ns, NULL, "99 % are faster") \
	F(S, NS, p999_ns, p->class_ns[c].at[3].median_ns, NULL, "99.9 % are faster")
FRAG_VALUED_ROW(class_row, "bench_class", CLASS_ROW, "allocations of one class");

/* Medians over the passes, and how far these are apart. */
#define MEDIANS(F, S, call) \
	F(S, NS, call##_p50_ns, p->call##_ns.at[0].median_ns, NULL, \
	  "median call; the median of all passes, so below") \
	F(S, NS, call##_p90_ns, p->call##_ns.at[1].median_ns, NULL, "90 % are faster") \
	F(S, NS, call##_p99_ns, p->call##_ns.at[2].median_ns, NULL, "99 % are faster") \
	F(S, NS, call##_p999_ns, p->call##_ns.at[3].median_ns, NULL, "99.9 % are faster") \
	F(S, NS, call##_max_ns, p->call##_ns.at[4].median_ns, NULL, "the slowest call")
#define RANGE(F, S, call, quantile, k) \
	F(S, NS, call##_##quantile##_min_ns, p->call##_ns.at[k].min_ns, NULL, \
	  "in the fastest pass") \
	F(S, NS, call##_##quantile##_max_ns, p->call##_ns.at[k].max_ns, NULL, "in the slowest pass")
#define RANGES(F, S, call) \
	RANGE(F, S, call, p50, 0) \
	RANGE(F, S, call, p90, 1) \
	RANGE(F, S, call, p99, 2) RANGE(F, S, call, p999, 3) RANGE(F, S, call, max, 4)
#define POLICY_ROW(F, P, S) \
	F(S, TEXT, trace, frag_answer_print(b->a, "%s", trace), "trace", \
	  "trace of the replayed operations") \
	F(S, TEXT, policy, policy, "policy", "that served them") \
	F(S, TEXT, device, device, NULL, "sim, cuda or null") \
	F(S, COUNT, ops_count, p->ops, "operations", "allocs and frees of one pass") \
	F(S, REAL, cold_ns_per_op, p->cold_ns, "cold", "without cached memory", .unit = "ns/op", \
	  .precision = 1) \
	F(S, REAL, warm_ns_per_op, p->warm_ns, "warm", "with all memory cached: the median pass", \
	  .unit = "ns/op", .precision = 1) \
	F(S, REAL, warm_min_ns_per_op, p->warm_min_ns, NULL, "the fastest warm pass") \
	F(S, REAL, warm_max_ns_per_op, p->warm_max_ns, NULL, "the slowest warm pass") \
	P(S, TEXT, warm_range, \
	  frag_answer_print(b->a, "%.1f-%.1f", p->warm_min_ns, p->warm_max_ns), "warm, range", \
	  "fastest and slowest pass", .unit = "ns/op", .right = true, .spare = 3) \
	F(S, COUNT, warm_driver_calls_count, p->warm_driver_calls, "driver calls", \
	  "of all warm passes", .spare = 4) \
	P(S, TEXT, alloc_text, median_text(b->a, &p->alloc_ns), "alloc p50 / p99 / p99.9", \
	  "single calls", .unit = "ns", .right = true, .spare = 6) \
	P(S, TEXT, alloc_range, range_text(b->a, &p->alloc_ns), "over passes", \
	  "fastest and slowest pass", .unit = "ns", .right = true, .spare = 2) \
	P(S, TEXT, free_text, median_text(b->a, &p->free_ns), "free p50 / p99 / p99.9", \
	  "single calls", .unit = "ns", .right = true, .spare = 5) \
	P(S, TEXT, free_range, range_text(b->a, &p->free_ns), "over passes", \
	  "fastest and slowest pass", .unit = "ns", .right = true, .spare = 1) \
	MEDIANS(F, S, alloc) \
	MEDIANS(F, S, free) \
	F(S, NS, clock_ns, p->clock_ns, NULL, "time to read the clock, part of every call") \
	RANGES(F, S, alloc) \
	RANGES(F, S, free) \
	F(S, LIST, classes, class_rows(b->a, p), NULL, "allocations by class", \
	  .of = &class_row_shape)
FRAG_VALUED_ROW_AS(static, policy_row_shape, frag_bench_policy_row, "bench_policy", POLICY_ROW,
		   "one policy on one trace");

#define BENCH_ROW(F, P, S) \
	F(S, TEXT, device, NULL, "calls: the card that was measured") \
	F(S, TEXT, driver, NULL, "calls: driver and runtime") \
	F(S, LIST, calls, NULL, "without traces: driver calls", .of = &call_row_shape) \
	F(S, COUNT, passes, NULL, "policies: warm passes, and timed ones") \
	F(S, LIST, policies, NULL, "with traces: policies", .of = &policy_row_shape)
FRAG_ROW_STRUCT(bench_row, BENCH_ROW);
FRAG_ROW_SHAPE(, frag_bench_shape, bench_row, "bench", BENCH_ROW,
	       "what driver calls, or policies, cost on a card");

/* ---- driver calls ---------------------------------------------------------------------- */

static struct call_row call_row(struct frag_answer *a, const struct frag_bench_row *r)
{
	uint64_t median = frag_bench_quantile(r, 0.5), p10 = frag_bench_quantile(r, 0.1),
		 p90 = frag_bench_quantile(r, 0.9);

	return FRAG_ROW_VALUES(call_row, CALL_ROW);
}

void frag_bench_calls_answer(const struct frag_bench *b, struct frag_answer *a)
{
	struct call_row *rows = frag_answer_new(a, b->rows_count, sizeof(*rows));
	struct bench_row *data = frag_answer_new(a, 1, sizeof(*data));
	struct frag_device_info info;

	if (!rows || !data)
		return;
	frag_dev_info(b->dev, &info);
	for (size_t i = 0; i < b->rows_count; i++)
		rows[i] = call_row(a, &b->rows[i]);
	*data = (struct bench_row){ .device = frag_answer_print(a, "%s", info.name),
				    .driver = *info.driver ? frag_answer_print(a, "%s", info.driver)
							   : NULL,
				    .calls = { rows, b->rows_count },
				    .passes = UINT64_MAX };
	a->title = data->device;
	a->question = "What does each driver call cost on this card?";
	frag_answer_data(a, &frag_bench_shape, data);
	frag_answer_csv(a, &call_row_shape, rows, b->rows_count);
	frag_answer_remark(a, "cufrag %s bench: %s%s%s", FRAG_VERSION, info.name,
			   *info.driver ? ", " : "", info.driver);
	frag_answer_table(a, &call_row_shape, rows, b->rows_count);
}

/* ---- policies -------------------------------------------------------------------------- */

/* "60 / 143 / 279" */
static const char *median_text(struct frag_answer *a, const struct frag_bench_latency *l)
{
	return frag_answer_print(a, "%llu / %llu / %llu", LLU(l->at[0].median_ns),
				 LLU(l->at[2].median_ns), LLU(l->at[3].median_ns));
}

/* "59-61 / 140-151 / 270-300" */
static const char *range_text(struct frag_answer *a, const struct frag_bench_latency *l)
{
	return frag_answer_print(a, "%llu-%llu / %llu-%llu / %llu-%llu", LLU(l->at[0].min_ns),
				 LLU(l->at[0].max_ns), LLU(l->at[2].min_ns), LLU(l->at[2].max_ns),
				 LLU(l->at[3].min_ns), LLU(l->at[3].max_ns));
}

static struct frag_rows class_rows(struct frag_answer *a, const struct frag_bench_policy *p)
{
	struct class_row *rows = frag_answer_new(a, FRAG_CLASS_COUNT, sizeof(*rows));
	size_t n = 0;

	for (unsigned c = 0; rows && c < FRAG_CLASS_COUNT; c++)
		if (p->class_ns[c].count)
			rows[n++] = FRAG_ROW_VALUES(class_row, CLASS_ROW);
	return (struct frag_rows){ rows, n };
}

static int bench_one(struct frag_bench_policies *b, const char *trace, const char *policy,
		     const struct frag_bench_ops *ops, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_bench_policy result, *p = &result;
	const char *device = b->host->device;
	struct frag_device_info info;
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;

	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	FRAG_TRY(b->host->open(b->host->ctx, 0, &dev, err));
	frag_dev_info(dev, &info);
	FRAG_TRY(frag_bench_policy(spec, dev, ops, b->passes,
				   frag_limit_bytes(b->limit, info.total_bytes), &result, err));
	b->rows[b->rows_count++] = FRAG_ROW_VALUES(frag_bench_policy_row, POLICY_ROW);
	return 0;
}

static int bench_trace(struct frag_bench_policies *b, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	struct frag_progress progress;
	struct frag_bench_ops ops;
	char note[600];
	int rc;

	frag_progress_show(&progress, "reading");
	rc = frag_trace_read(path, NULL, &trace, err);
	frag_progress_end(&progress);
	FRAG_TRY(rc);
	if (!trace->devs_count)
		return FRAG_INPUT(err, "'%.200s' holds no events", path);
	FRAG_TRY(frag_bench_ops_take(&trace->devs[0], &ops, err));
	for (size_t i = 0; !rc && i < b->policies->count; i++) {
		rc = bench_one(b, trace->name, b->policies->text[i], &ops, err);
		if (rc != FRAG_ECHECK && rc != FRAG_ENOTSUP)
			continue;
		snprintf(note, sizeof(note), "%.100s on '%.100s' is left out: %.300s",
			 b->policies->text[i], trace->name, err->msg);
		b->host->note(b->host->ctx, note);
		rc = 0;
	}
	frag_host_free(ops.at);
	return rc;
}

static void show_policies(struct frag_bench_policies *b, struct bench_row *data)
{
	struct frag_answer *a = b->a;

	*data = (struct bench_row){ .passes = b->passes, .policies = { b->rows, b->rows_count } };
	a->title = "policies";
	a->question = "What does an operation cost in each policy?";
	frag_answer_data(a, &frag_bench_shape, data);
	frag_answer_csv(a, &policy_row_shape, b->rows, b->rows_count);
	frag_answer_remark(a,
			   "cufrag %s bench: the policy alone, with its driver calls; warm and "
			   "percentiles: medians of %u passes",
			   FRAG_VERSION, b->passes);
	frag_answer_table(a, &policy_row_shape, b->rows, b->rows_count);
}

int frag_bench_policies_answer(struct frag_bench_policies *b, char *const *paths, size_t count,
			       struct frag_err *err)
{
	struct bench_row *data = frag_answer_new(b->a, 1, sizeof(*data));

	FRAG_TRY(frag_policy_texts_default(b->policies, "pytorch", err));
	b->rows = frag_answer_new(b->a, count * b->policies->count, sizeof(*b->rows));
	FRAG_CHECK_ALLOC(data, "answer", err);
	FRAG_CHECK_ALLOC(b->rows, "answer", err);
	for (size_t i = 0; i < count; i++)
		FRAG_TRY(bench_trace(b, paths[i], err));
	show_policies(b, data);
	return 0;
}
