/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag run: a PyTorch program with a policy of this repository as its allocator. */

#include "cli/program.h"

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	struct frag_launch_policy launch;
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", 'p', FRAG_ARG_AT(struct options, launch.policy),
	  .value = "POLICY", .def = "vmm",
	  .help = "the policy to allocate with, as in the other commands" },
	{ FRAG_ARG_TEXT, "record", FRAG_ARG_AT(struct options, launch.record), .value = "FILE",
	  .help = "also record all requests into a .cft; while the program runs, the folder "
		  "FILE.parts holds one for each process" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	const struct frag_launch launch = frag_cli_launch(cli);
	int status;

	FRAG_TRY(frag_policy_spec_parse(o->launch.policy, &spec, err));
	o->pretend.hold.own = frag_policy_spec_file(spec);
	o->launch.cards = o->pretend.no_gpu ? &frag_pretend_cards : NULL;
	o->launch.options = &o->pretend;
	return frag_launch_with_policy(&launch, &o->launch, cli->program, &status, err) ?: status;
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
	.shared = FRAG_CLI_CARD,
	FRAG_CMD_OPTIONS(struct options, options, frag_pretend_run_rows),
	.run = run,
};
