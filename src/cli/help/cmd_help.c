/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag help: the list of commands, or what --help of one of them says. */
#include <stdio.h>

#include "cli/common.h"

static void print_program(void)
{
	static const char *const heads[FRAG_GROUP_COUNT] = {
		[FRAG_GROUP_TRACE] = "Traces",
		[FRAG_GROUP_SIM] = "Policies on a trace",
		[FRAG_GROUP_OTHER] = "Other",
	};
	const struct frag_cmd *const *list = frag_commands();

	puts("Usage: cufrag COMMAND [OPTION...] [OPERAND...]\n\n"
	     "Replays the GPU memory history of a real job through any allocation policy and\n"
	     "says how much memory is reserved, how much of it is lost and to what.");
	for (unsigned g = 0; g < FRAG_GROUP_COUNT; g++) {
		printf("\n%s:\n", heads[g]);
		for (size_t i = 0; list[i]; i++)
			if (list[i]->group == g)
				printf("  %-10s %s\n", list[i]->name, list[i]->summary);
	}
	puts("\n  -h, --help     print this help; cufrag COMMAND --help for one command\n"
	     "  -V, --version  print the version\n\n"
	     "Examples:\n"
	     "  cufrag compare traces/varlen.default.cft --out results/varlen\n"
	     "  cufrag verify traces/gnn.default.cft");
}

static int run(struct frag_cli *cli, void *options, struct frag_err *err)
{
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	const struct frag_cmd *cmd;

	(void)options;
	if (!cli->operands_count) {
		print_program();
		return 0;
	}
	cmd = frag_commands_find(cli->operands[0]);
	if (!cmd)
		return frag_commands_fail_unknown(cli->operands[0], err);
	frag_cli_tables(cmd, NULL, NULL, tables);
	FRAG_TRY(frag_args_check(tables, err));
	frag_cli_help(cmd, stdout);
	return 0;
}

const struct frag_cmd frag_cmd_help = {
	.name = "help",
	.summary = "this list, or the help of one command",
	.group = FRAG_GROUP_OTHER,
	.operands = "[COMMAND]",
	.operands_max = 1,
	.about = "Prints the list of commands, or what a command does with all its options.",
	.examples = "  cufrag help compare\n"
		    "  cufrag help verify\n",
	.run = run,
};
