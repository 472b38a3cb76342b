/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag suite: allocators measured on a fixed set of workloads. */
#include <string.h>

#include "cli/shared.h"
#include "suite/suite.h"

struct options {
	struct frag_policy_texts policies;
	const char *classes, *manifest;
	bool quick;
	uint64_t jobs, timeout_s, budget_s;
};

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	FRAG_CLI_POLICIES("policies", struct options, policies,
			  "policies, separated by ';', also ./mine.so (default: all that need no "
			  "plan); pytorch, the baseline, is always among them"),
	FRAG_CLI_POLICY(struct options, policies),
	{ FRAG_ARG_TEXT, "class", AT(classes), .value = "LIST",
	  .help = "only these classes of workloads, separated by commas" },
	{ FRAG_ARG_FLAG, "quick", AT(quick), .help = "only one workload of a class" },
	{ FRAG_ARG_UINT, "jobs", AT(jobs), .value = "N", .min = 1, .max = 256,
	  .help = "rows measured at a time (default: --threads)" },
	{ FRAG_ARG_UINT, "timeout", AT(timeout_s), .value = "S", .min = 1, .max = 86400,
	  .def = "300", .help = "seconds until a row has failed" },
	{ FRAG_ARG_UINT, "budget", AT(budget_s), .value = "S", .min = 1, .max = 86400, .rare = true,
	  .help = "on a card: stop after so many seconds; the same command goes on" },
	{ FRAG_ARG_TEXT, "manifest", AT(manifest), .value = "FILE", .rare = true,
	  .help = "workloads of your own (docs/suite.md)" },
	{ 0 },
};

/* A result as text and page. Returns the exit status, or an error. */
static int show(struct frag_cli *cli, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_suite_result_release) struct frag_suite_result r = { 0 };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	FRAG_TRY(frag_suite_result_open(&r, path, err));
	FRAG_TRY(frag_suite_answer(&r, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return r.complete ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

static int do_run(struct frag_cli *cli, const struct options *o, struct frag_suite *s,
		  struct frag_err *err)
{
	FRAG_AUTO_FREE char *path = NULL;

	s->card = cli->device == FRAG_CLI_DEVICE_CUDA;
	if (cli->device == FRAG_CLI_DEVICE_NULL || (s->card && !frag_cuda_built()))
		return FRAG_USAGE(err, s->card ? "this program was built without CUDA"
					       : "the suite runs on sim or cuda");
	FRAG_TRY(frag_suite_manifest_choose(&s->manifest, o->classes, o->quick, s->card, err));
	FRAG_TRY(frag_suite_policies(&s->policies, err));
	s->ordinal = cli->ordinal;
	s->open = frag_cli_open_nth;
	s->ctx = cli;
	s->jobs = o->jobs ? (unsigned)o->jobs : cli->threads;
	s->timeout_s = o->timeout_s;
	s->budget_s = o->budget_s;
	s->out = cli->out = cli->out ?: "suite-result";
	path = frag_path_join(s->out, "suite.json");
	FRAG_CHECK_ALLOC(path, "suite", err);
	FRAG_TRY(frag_suite_run(s, err));
	return show(cli, path, err);
}

static int do_list(struct frag_cli *cli, const struct options *o, struct frag_suite *s,
		   struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	FRAG_TRY(frag_suite_manifest_choose(&s->manifest, o->classes, o->quick, false, err));
	FRAG_TRY(frag_suite_describe(&s->manifest, &s->target, &a, err));
	return frag_cli_show_answer(cli, &a, err);
}

static int do_compare(struct frag_cli *cli, struct frag_err *err)
{
	FRAG_AUTO(frag_suite_result_release) struct frag_suite_result x = { 0 };
	FRAG_AUTO(frag_suite_result_release) struct frag_suite_result y = { 0 };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	size_t differ;

	FRAG_TRY(frag_suite_result_open(&x, cli->operands[1], err));
	FRAG_TRY(frag_suite_result_open(&y, cli->operands[2], err));
	FRAG_TRY(frag_suite_compare(&x, &y, &a, &differ, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return differ ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	static const char *const words[] = { "run", "list", "compare", "check", NULL },
				 *const more[] = { "", "", " A B", " RESULT" };
	static const size_t operands[] = { 1, 1, 3, 2 };
	const char *word = cli->operands_count ? cli->operands[0] : words[0];
	struct options *o = values;
	struct frag_suite s = { .target = cli->target, .policies = o->policies };
	size_t i = 0;
	int rc;

	while (words[i] && strcmp(words[i], word) != 0)
		i++;
	if (!words[i])
		return frag_fail_unknown(err, "unknown operand", word, words,
					 "; known are run, list, compare and check");
	if (FRAG_MAX(cli->operands_count, 1u) != operands[i])
		return FRAG_USAGE(err, "%s: cufrag suite %s%s",
				  cli->operands_count < operands[i] ? "missing operand"
								    : "unexpected operand",
				  word, more[i]);
	if (i == 2)
		return do_compare(cli, err);
	if (i == 3)
		return show(cli, cli->operands[1], err);
	FRAG_TRY(frag_suite_target(&s.target, err));
	FRAG_TRY(frag_suite_manifest_open(&s.manifest, o->manifest, err));
	rc = i ? do_list(cli, o, &s, err) : do_run(cli, o, &s, err);
	o->policies = s.policies;
	frag_suite_manifest_release(&s.manifest);
	return rc;
}

const struct frag_cmd frag_cmd_suite = {
	.name = "suite",
	.summary = "the benchmark of allocators: policies scored on a fixed set of workloads",
	.group = FRAG_GROUP_MEASURE,
	.operands = "[run|list|compare|check] [RESULT...]",
	.about = "run (the default) measures every policy on every workload and writes "
		 "DIR/suite.json and a page: memory reserved, the smallest card, requests refused "
		 "on small ones, time in the driver, and what repetition adds; scores for space "
		 "and time, over PyTorch's default. On the simulated card every machine gets the "
		 "same bytes. A run that was stopped goes on. list describes the workloads and how "
		 "far apart they are; compare says what differs beyond noise; check refuses a "
		 "result that breaks a rule (docs/suite.md), and shows it. Exits with 1 if rows "
		 "failed or differ. make bench is about the speed of cufrag itself.",
	.examples = "  cufrag suite --quick --out result\n"
		    "  cufrag suite --policy ./mine.so --class serving\n"
		    "  cufrag suite compare old/suite.json result/suite.json\n"
		    "  cufrag suite --device cuda --budget 500 --out card\n",
	.shared = FRAG_CLI_DEVICE | FRAG_CLI_PAGE,
	.answer = &frag_suite_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
