/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: one file src/cli/<name>/cmd_<name>.c defines one constant
 *
 *	const struct frag_cmd frag_cmd_<name> = { … };
 *
 * and make finds it. Its run() begins with frag_cli_parse (common.h), which
 * serves --help and misuse from this table, and ends with an exit status.
 */
#ifndef FRAG_CLI_CMD_H
#define FRAG_CLI_CMD_H

#include <argp.h>
#include <stddef.h>

#include <frag/error.h>

/* exit status of the program; 2 to 5 are also those of frag_code_exit() */
enum frag_exit {
	FRAG_EXIT_DONE = 0,
	FRAG_EXIT_CONDITION = 1, /* done, but a demanded condition failed */
	FRAG_EXIT_USAGE = 2,
	FRAG_EXIT_INPUT = 3,
	FRAG_EXIT_DEVICE = 4,
	FRAG_EXIT_OUTPUT = 5,
};

/* headings of `cufrag --help`, in this order */
enum frag_cmd_group {
	FRAG_GROUP_TRACE, /* about traces */
	FRAG_GROUP_SIM,	  /* about policies on a trace */
	FRAG_GROUP_OTHER,
	FRAG_GROUP_COUNT
};

/* sets of shared options a command takes (struct frag_cli has their values) */
#define FRAG_CLI_CARD (1u << 0)	   /* --gpu --capacity --context --limit */
#define FRAG_CLI_DEVICE (1u << 1)  /* --device */
#define FRAG_CLI_JSON (1u << 2)	   /* --json */
#define FRAG_CLI_CSV (1u << 3)	   /* --csv */
#define FRAG_CLI_OUT (1u << 4)	   /* --out DIR */
#define FRAG_CLI_SEED (1u << 5)	   /* --seed */
#define FRAG_CLI_THREADS (1u << 6) /* --threads */
/* --color and --help are always there */

/* Keys of a command's own options: a letter (that is its short form), or one of these. */
#define FRAG_CLI_KEY 0x100
#define FRAG_CLI_KEY_LAST 0xfff

struct frag_cmd {
	const char *name;
	const char *summary; /* one line, lower case, for the list of commands */
	enum frag_cmd_group group;
	const char *operands; /* as in the usage line: "TRACE...", NULL = none */
	size_t operands_min, operands_max;
	const char *about;		   /* what it does, some sentences */
	const char *examples;		   /* two or more lines, each a command */
	unsigned shared;		   /* FRAG_CLI_… */
	const struct argp_option *options; /* own ones, NULL = none */
	/* Called for each own option in the order given; arg is NULL if it takes none. */
	int (*option)(void *ctx, int key, const char *arg, struct frag_err *err);
	/* argv[0] is the command's name. Returns an exit status. */
	int (*run)(int argc, char **argv);
};

#endif
