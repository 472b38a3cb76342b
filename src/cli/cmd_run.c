/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag run: a PyTorch program with a policy of this repository as its allocator. */

#include "cli/launching.h"

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", 'p', FRAG_ARG_AT(struct frag_launch_policy, policy),
	  .value = "POLICY", .def = "vmm",
	  .help = "the policy to allocate with, as in the other commands" },
	{ FRAG_ARG_TEXT, "record", FRAG_ARG_AT(struct frag_launch_policy, record), .value = "FILE",
	  .help = "also record all requests into a .cft; while the program runs, the folder "
		  "FILE.parts holds one for each process" },
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct frag_launch_policy, no_gpu),
	  .help = "run on a pretended card (--gpu); see cufrag record" },
	{ FRAG_ARG_UINT, "gpus", FRAG_ARG_AT(struct frag_launch_policy, gpus), .value = "N",
	  .min = 1, .max = 16,
	  .help = "number of pretended cards (default: 1, or as many as a launcher starts "
		  "processes)" },
	{ 0 },
};

static int check_policy(const char *text, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	return frag_policy_spec_parse(text, &spec, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct frag_launch_policy *o = values;
	const struct frag_program program = frag_cli_program(cli, NULL);
	const struct frag_launch launch = frag_program_launch(&program);
	int status;

	FRAG_TRY(check_policy(o->policy, err));
	return frag_launch_with_policy(&launch, o, cli->program, &status, err) ?: status;
}

const struct frag_cmd frag_cmd_run = {
	.name = "run",
	.summary = "run a PyTorch program with a policy as its allocator",
	.group = FRAG_GROUP_USE,
	.program = "PROGRAM",
	.about = "Runs a program whose PyTorch (2.1 or newer) takes its memory from a policy of "
		 "cufrag, the same that compare and replay simulate: on the real card, or with "
		 "--no-gpu on a pretended one. The program is unchanged; processes that it starts, "
		 "as torchrun does, use the policy, too. --limit is the most that each process may "
		 "reserve on each card. Exits with the program's status.",
	.examples = "  cufrag run --policy vmm -- python train.py\n"
		    "  cufrag run --policy limit:bytes=20G/pytorch --record run.cft -- python "
		    "train.py\n"
		    "  cufrag run -- torchrun --nproc-per-node 4 train.py\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_COST,
	FRAG_CMD_OPTIONS(struct frag_launch_policy, options),
	.run = run,
};
