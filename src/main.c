/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag: the table of commands and dispatch. make writes gen/cmd_list.inc
 * from src/cli/cmd_<name>.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>
#include <frag/opt.h>

#include "cli/cmd.h"
#include "cli/common.h"

#define FRAG_ENTRY(name) extern const struct frag_cmd frag_cmd_##name;
#include "cmd_list.inc"
#undef FRAG_ENTRY

static const struct frag_cmd *const commands[] = {
#define FRAG_ENTRY(name) &frag_cmd_##name,
#include "cmd_list.inc"
#undef FRAG_ENTRY
	NULL
};

static const struct frag_cmd *find_command(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int fail_unknown(const char *name)
{
	const char *names[FRAG_ARRAY_LEN(commands)];
	const char *near;
	size_t n = 0;

	for (; commands[n]; n++)
		names[n] = commands[n]->name;
	names[n] = NULL;
	near = frag_nearest(name, names);
	if (near)
		fprintf(stderr,
			"cufrag: unknown command '%.60s'; did you mean '%s'? (cufrag --help)\n",
			name, near);
	else
		fprintf(stderr, "cufrag: unknown command '%.60s' (cufrag --help)\n", name);
	return FRAG_EXIT_USAGE;
}

static void print_help(void)
{
	static const char *const heads[FRAG_GROUP_COUNT] = {
		[FRAG_GROUP_TRACE] = "Traces",
		[FRAG_GROUP_SIM] = "Policies on a trace",
		[FRAG_GROUP_OTHER] = "Other",
	};

	puts("Usage: cufrag COMMAND [OPTION...] [OPERAND...]\n\n"
	     "Replays the GPU memory history of a real job through any allocation policy and\n"
	     "says how much memory is reserved, how much of it is lost and to what.");
	for (unsigned g = 0; g < FRAG_GROUP_COUNT; g++) {
		printf("\n%s:\n", heads[g]);
		for (size_t i = 0; commands[i]; i++)
			if (commands[i]->group == g)
				printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	}
	puts("\n  -h, --help     print this help; cufrag COMMAND --help for one command\n"
	     "  -V, --version  print the version\n\n"
	     "Examples:\n"
	     "  cufrag compare traces/varlen.default.cft --out results/varlen\n"
	     "  cufrag verify traces/gnn.default.cft");
}

/* `help` and the options that stand before a command. NULL: not one of them. */
static int run_builtin(int argc, char **argv)
{
	const char *word = argv[1];

	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("cufrag %s\n", FRAG_VERSION);
	} else if (!strcmp(word, "help") && argc > 2) {
		const struct frag_cmd *cmd = find_command(argv[2]);

		if (!cmd)
			return fail_unknown(argv[2]);
		frag_cli_help(cmd, stdout);
	} else if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		print_help();
	} else if (word[0] == '-') {
		fprintf(stderr,
			"cufrag: unknown option '%.60s' before the command (cufrag --help)\n",
			word);
		return FRAG_EXIT_USAGE;
	} else {
		return fail_unknown(word);
	}
	return FRAG_EXIT_DONE;
}

int main(int argc, char **argv)
{
	const struct frag_cmd *cmd;
	int status;

	if (argc < 2) {
		fputs("cufrag: no command given (cufrag --help)\n", stderr);
		return FRAG_EXIT_USAGE;
	}
	cmd = find_command(argv[1]);
	status = cmd ? cmd->run(argc - 1, argv + 1) : run_builtin(argc, argv);
	/* what is still buffered may meet a full disk */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "cufrag: cannot write standard output: %s\n", strerror(errno));
		return FRAG_EXIT_OUTPUT;
	}
	return status;
}
