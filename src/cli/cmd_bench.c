/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag bench: what driver calls cost on a card, by size. */
#include "bench/bench.h"
#include "shared.h"

struct options {
	unsigned repeats;
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_UINT, "repeats", FRAG_ARG_AT(struct options, repeats), .value = "N", .min = 1,
	  .max = 10000, .def = "32",
	  .help = "samples of a call at each size, at most 64 at a time" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_bench_release)
	struct frag_bench b = { .repeats = FRAG_MIN(o->repeats, 64u) };
	struct frag_session_host host;

	frag_cli_host(cli, &host);
	FRAG_TRY(frag_bench_open(&b, &host, &cli->target.limit, err));
	FRAG_TRY(frag_bench_calls(&b, err));
	frag_bench_calls_answer(&b, &a);
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_bench = {
	.name = "bench",
	.summary = "what driver calls cost on a card",
	.group = FRAG_GROUP_MEASURE,
	.about = "Measures how long every driver call takes, by size. Holds at most half of the "
		 "free memory, 32 GiB, or --limit. What policies cost: cufrag suite.",
	.examples = "  cufrag bench --device cuda --csv calls.csv\n"
		    "  cufrag bench --repeats 8\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_MANAGED |
		  FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_bench_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
