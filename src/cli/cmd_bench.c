/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag bench: what driver calls cost on a card, by size; what policies cost per operation. */
#include "bench/bench.h"
#include "shared.h"

struct options {
	struct frag_policy_texts policies;
	uint64_t repeats; /* 0 = not given */
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_UINT, "repeats", FRAG_ARG_AT(struct options, repeats), .value = "N", .min = 1,
	  .max = 10000,
	  .help = "samples of a call at each size, at most 64 at a time (default: 32); with "
		  "traces, warm passes, and timed ones for the percentiles (default: 5)" },
	FRAG_CLI_POLICIES("policies", struct options, policies,
			  "with traces: policies, separated by ';' (default: pytorch)"),
	{ FRAG_ARG_UINT, "passes", FRAG_ARG_AT(struct options, repeats), .value = "N", .min = 1,
	  .max = 10000, .silent = true, .help = "the same as --repeats" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_bench_release)
	struct frag_bench b = { .repeats = o->repeats ? (unsigned)FRAG_MIN(o->repeats, 64u) : 32 };
	struct frag_session_host host;
	struct frag_bench_policies p = { .host = &host,
					 .limit = &cli->target.limit,
					 .policies = &o->policies,
					 .passes = o->repeats ? (unsigned)o->repeats : 5,
					 .a = &a };

	frag_cli_host(cli, &host);
	if (cli->operands_count) {
		FRAG_TRY(frag_bench_policies_answer(&p, cli->operands, cli->operands_count, err));
	} else {
		FRAG_TRY(frag_bench_open(&b, &host, &cli->target.limit, err));
		FRAG_TRY(frag_bench_calls(&b, err));
		frag_bench_calls_answer(&b, &a);
	}
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_bench = {
	.name = "bench",
	.summary = "what driver calls, or policies, cost on a card",
	.group = FRAG_GROUP_MEASURE,
	.operands = "[TRACE...]",
	.about = "Without traces: measures how long every driver call takes, by size. With traces: "
		 "runs only their allocs and frees through policies, first without cached memory, "
		 "then with all of it cached, and reports the time per operation. Holds at most "
		 "half of the free memory, 32 GiB, or --limit.",
	.examples =
		"  cufrag bench --device cuda --csv calls.csv\n"
		"  cufrag bench --device cuda --policies 'pytorch;vmm' traces/gnn.default.cft\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_MANAGED |
		  FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_bench_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
