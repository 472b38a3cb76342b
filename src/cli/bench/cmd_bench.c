/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag bench: what driver calls cost on a card, by size; with traces, what policies cost per
 * operation on it.
 */
#include "cli/common.h"
#include "cli/recordings.h"
#include "recording/policy_texts.h"

#include <string.h>

#include "answer/table.h"
#include "bench.h"

struct options {
	struct frag_policy_texts policies;
	const char *profile, *ops;
	uint64_t repeats, passes;
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_UINT, "repeats", FRAG_ARG_AT(struct options, repeats), .value = "N", .min = 1,
	  .max = 10000, .def = "32",
	  .help = "samples of a call at each size, at most 64 at a time" },
	{ FRAG_ARG_TEXT, "profile", FRAG_ARG_AT(struct options, profile), .value = "FILE",
	  .file = FRAG_ARG_WRITES,
	  .help = "write a cost profile, for --cost of the other commands" },
	{ FRAG_ARG_OWN, "policies", FRAG_ARG_AT(struct options, policies),
	  .set = frag_policy_texts_set_list, .value = "POLICIES",
	  .help = "with traces: policies, separated by ';' (default: pytorch)" },
	{ FRAG_ARG_UINT, "passes", FRAG_ARG_AT(struct options, passes), .value = "N", .min = 1,
	  .max = 10000, .def = "5",
	  .help = "with traces: warm passes, and timed ones for the percentiles" },
	{ FRAG_ARG_TEXT, "ops", FRAG_ARG_AT(struct options, ops), .value = "FILE",
	  .file = FRAG_ARG_WRITES, .laboratory = true,
	  .help = "with one trace: write its operations, for scripts/lab/bench_peer_torch.sh" },
	{ 0 },
};

/* To a file, or to standard output for "-". */
static int put(const char *path, struct frag_text *text, struct frag_err *err)
{
	int rc = path ? frag_text_put(text, path, err) : frag_text_check(text, err);

	frag_text_release(text);
	return rc;
}

static bool to_terminal(const struct frag_cli *cli)
{
	return !cli->csv || strcmp(cli->csv, "-") != 0;
}

/* ---- driver calls ------------------------------------------------------------------- */

static int print_calls(const struct frag_cli *cli, const struct options *o,
		       const struct frag_bench *b, struct frag_err *err)
{
	struct frag_text table = { 0 }, csv = { 0 }, profile = { 0 };
	struct frag_device_info info;
	int rc;

	frag_dev_info(b->dev, &info);
	frag_text_addf(&table, "# cufrag %s bench: %s%s%s\n", FRAG_VERSION, info.name,
		       *info.driver ? ", " : "", info.driver);
	frag_bench_table(b, &table);
	rc = put(to_terminal(cli) ? "-" : NULL, &table, err);
	if (!rc && cli->csv) {
		frag_bench_csv(b, &csv);
		rc = put(cli->csv, &csv, err);
	}
	if (!rc && o->profile) {
		rc = frag_bench_scaled_profile(cli, b, &profile, err);
		rc = rc ? rc : put(o->profile, &profile, err);
	}
	return rc;
}

static int bench_calls(const struct frag_cli *cli, const struct options *o, struct frag_err *err)
{
	struct frag_bench b = { .repeats = (unsigned)FRAG_MIN(o->repeats, 64u) };
	struct frag_device_info info;
	uint64_t left = 0, total = 0;
	int rc;

	FRAG_TRY(frag_cli_open_device(cli, &b.dev, err));
	frag_dev_info(b.dev, &info);
	rc = frag_dev_mem_info(b.dev, &left, &total, err);
	b.whole_card = !cli->target.limit.text;
	b.budget_bytes = FRAG_MIN(FRAG_MIN(left / 2, frag_limit_bytes(&cli->target.limit, total)),
				  32 * FRAG_GIB);
	if (!rc)
		rc = frag_dev_make_ready(b.dev, 0, err) ?: frag_bench_calls(&b, err);
	if (!rc)
		rc = print_calls(cli, o, &b, err);
	frag_dev_close(b.dev);
	frag_bench_release(&b);
	return rc;
}

/* ---- policies ----------------------------------------------------------------------- */

static const char header[] =
	"trace,policy,device,ops_count,cold_ns_per_op,warm_ns_per_op,warm_min_ns_per_op,"
	"warm_max_ns_per_op,warm_driver_calls_count,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,"
	"alloc_p999_ns,alloc_max_ns,free_p50_ns,free_p90_ns,free_p99_ns,free_p999_ns,free_max_ns,"
	"clock_ns,"
	"alloc_p50_min_ns,alloc_p50_max_ns,alloc_p90_min_ns,alloc_p90_max_ns,alloc_p99_min_ns,"
	"alloc_p99_max_ns,alloc_p999_min_ns,alloc_p999_max_ns,alloc_max_min_ns,alloc_max_max_ns,"
	"free_p50_min_ns,free_p50_max_ns,free_p90_min_ns,free_p90_max_ns,free_p99_min_ns,"
	"free_p99_max_ns,free_p999_min_ns,free_p999_max_ns,free_max_min_ns,free_max_max_ns\n";

static void add_latency(struct frag_text *csv, const struct frag_bench_latency *l)
{
	for (size_t i = 0; i < FRAG_BENCH_QUANTILES; i++)
		frag_text_addf(csv, ",%llu", (unsigned long long)l->at[i].median_ns);
}

static void add_spread(struct frag_text *csv, const struct frag_bench_latency *l)
{
	for (size_t i = 0; i < FRAG_BENCH_QUANTILES; i++)
		frag_text_addf(csv, ",%llu,%llu", (unsigned long long)l->at[i].min_ns,
			       (unsigned long long)l->at[i].max_ns);
}

/* "60 / 143 / 279", and how far the passes are apart: "59-61 / 140-151 / 270-300" */
static void latency_cells(struct frag_table *t, const struct frag_bench_latency *l)
{
	const struct frag_bench_spread *p50 = &l->at[0], *p99 = &l->at[2], *p999 = &l->at[3];

	frag_table_cell(t, "%llu / %llu / %llu", (unsigned long long)p50->median_ns,
			(unsigned long long)p99->median_ns, (unsigned long long)p999->median_ns);
	frag_table_cell(t, "%llu-%llu / %llu-%llu / %llu-%llu", (unsigned long long)p50->min_ns,
			(unsigned long long)p50->max_ns, (unsigned long long)p99->min_ns,
			(unsigned long long)p99->max_ns, (unsigned long long)p999->min_ns,
			(unsigned long long)p999->max_ns);
}

static void add_result(struct frag_text *csv, struct frag_table *t, const char *trace,
		       const char *policy, const char *device, const struct frag_bench_policy *p)
{
	frag_text_add_csv(csv, trace);
	frag_text_add(csv, ",");
	frag_text_add_csv(csv, policy);
	frag_text_addf(csv, ",%s,%llu,%.1f,%.1f,%.1f,%.1f,%llu", device, (unsigned long long)p->ops,
		       p->cold_ns, p->warm_ns, p->warm_min_ns, p->warm_max_ns,
		       (unsigned long long)p->warm_driver_calls);
	add_latency(csv, &p->alloc_ns);
	add_latency(csv, &p->free_ns);
	frag_text_addf(csv, ",%llu", (unsigned long long)p->clock_ns);
	add_spread(csv, &p->alloc_ns);
	add_spread(csv, &p->free_ns);
	frag_text_add(csv, "\n");
	frag_table_cell(t, "%s", trace);
	frag_table_cell(t, "%s", policy);
	frag_table_cell(t, "%llu", (unsigned long long)p->ops);
	frag_table_cell(t, "%.1f", p->cold_ns);
	frag_table_cell(t, "%.1f", p->warm_ns);
	frag_table_cell(t, "%.1f-%.1f", p->warm_min_ns, p->warm_max_ns);
	frag_table_cell(t, "%llu", (unsigned long long)p->warm_driver_calls);
	latency_cells(t, &p->alloc_ns);
	latency_cells(t, &p->free_ns);
}

struct outputs {
	struct frag_text csv, classes;
	struct frag_table table;
};

static int bench_one(const struct frag_cli *cli, const struct options *o, const char *trace,
		     const char *text, const struct frag_bench_ops *ops, struct outputs *out,
		     struct frag_err *err)
{
	struct frag_bench_policy result;
	struct frag_policy_spec *spec;
	struct frag_device_info info;
	struct frag_device *dev;
	int rc;

	FRAG_TRY(frag_policy_spec_parse(text, &spec, err));
	rc = frag_cli_open_device(cli, &dev, err);
	if (!rc) {
		frag_dev_info(dev, &info);
		rc = frag_bench_policy(spec, dev, ops, (unsigned)o->passes,
				       frag_limit_bytes(&cli->target.limit, info.total_bytes),
				       &result, err);
		if (!rc)
			add_result(&out->csv, &out->table, trace, text, dev->ops->name, &result);
		frag_dev_close(dev);
	}
	frag_policy_spec_destroy(spec);
	for (unsigned c = 0; !rc && c < FRAG_CLASS_COUNT; c++) {
		const struct frag_bench_latency *l = &result.class_ns[c];

		if (l->count)
			frag_text_addf(&out->classes,
				       "# %s, %s, %s: %llu allocs a pass, p50 %llu, p99 %llu, "
				       "p99.9 %llu ns\n",
				       trace, text, frag_class_name(c),
				       (unsigned long long)l->count,
				       (unsigned long long)l->at[0].median_ns,
				       (unsigned long long)l->at[2].median_ns,
				       (unsigned long long)l->at[3].median_ns);
	}
	return rc;
}

static int bench_trace(const struct frag_cli *cli, const struct options *o, const char *path,
		       struct outputs *out, struct frag_err *err)
{
	struct frag_text text = { 0 };
	struct frag_bench_ops ops;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	int rc;

	FRAG_TRY(frag_cli_read(path, NULL, &trace, err));
	rc = trace->devs_count ? frag_bench_ops_take(&trace->devs[0], &ops, err)
			       : frag_fail(err, FRAG_EINPUT, "'%.200s' holds no events", path);
	if (rc)
		return rc;
	if (o->ops) {
		frag_bench_ops_text(&ops, &text);
		rc = put(o->ops, &text, err);
	}
	for (size_t i = 0; !rc && i < o->policies.count; i++) {
		rc = bench_one(cli, o, trace->name, o->policies.text[i], &ops, out, err);
		/* a policy that cannot serve a trace, or not on this card, is no failure */
		if (rc == FRAG_ECHECK || rc == FRAG_ENOTSUP) {
			frag_cli_note(cli, "%s on '%s' is left out: %s", o->policies.text[i],
				      trace->name, err->msg);
			rc = 0;
		}
	}
	frag_host_free(ops.at);
	return rc;
}

static int bench_policies(const struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	static const struct frag_table_column columns[] = {
		{ "trace", "", true, NULL },
		{ "policy", "", true, NULL },
		{ "operations", "", false, NULL },
		{ "cold", "ns/op", false, NULL },
		{ "warm", "ns/op", false, NULL },
		{ "warm, range", "ns/op", false, NULL },
		{ "driver calls", "", false, NULL },
		{ "alloc p50 / p99 / p99.9", "ns", false, NULL },
		{ "over passes", "ns", false, NULL },
		{ "free p50 / p99 / p99.9", "ns", false, NULL },
		{ "over passes", "ns", false, NULL },
	};
	struct outputs out = { 0 };
	struct frag_text text = { 0 };
	int rc = 0;

	frag_table_columns(&out.table, columns, FRAG_ARRAY_LEN(columns));
	frag_text_add(&out.csv, header);
	if (!o->policies.count)
		rc = frag_policy_texts_add(&o->policies, "pytorch", err);
	for (size_t i = 0; !rc && i < cli->operands_count; i++)
		rc = bench_trace(cli, o, cli->operands[i], &out, err);
	if (!rc) {
		frag_text_addf(&text,
			       "# cufrag %s bench: the policy alone, calls of the driver "
			       "included; warm and percentiles: "
			       "medians of %llu passes\n",
			       FRAG_VERSION, (unsigned long long)o->passes);
		frag_table_print(&out.table, &text);
		frag_text_add(&text, frag_text_str(&out.classes));
		rc = put(to_terminal(cli) ? "-" : NULL, &text, err);
	}
	if (!rc && cli->csv)
		rc = put(cli->csv, &out.csv, err);
	frag_text_release(&out.csv);
	frag_text_release(&out.classes);
	frag_table_release(&out.table);
	return rc;
}

static void release(void *values)
{
	frag_policy_texts_release(&((struct options *)values)->policies);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	return cli->operands_count ? bench_policies(cli, values, err)
				   : bench_calls(cli, values, err);
}

const struct frag_cmd frag_cmd_bench = {
	.name = "bench",
	.summary = "what driver calls, or policies, cost on a card",
	.group = FRAG_GROUP_MEASURE,
	.operands = "[TRACE...]",
	.operands_min = 0,
	.operands_max = 10000,
	.about =
		"Without traces: measures the latency of every driver call by size, and writes a "
		"cost profile for the simulated card. With traces: runs only their allocs and "
		"frees "
		"through policies, first with no memory cached, then with all of it, and says what "
		"an operation takes. Holds at most half of the free memory, 32 GiB, or --limit; "
		"without "
		"--limit 55 % of what is free for a moment, to see how fast memory is cleared.",
	.examples =
		"  cufrag bench --device cuda --csv calls.csv --profile mycard.csv\n"
		"  cufrag bench --device cuda --policies 'pytorch;vmm' traces/gnn.default.cft\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_CSV,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
	.release = release,
};
