/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: one file src/cli/cmd_<name>.c defines one constant
 *
 *	const struct frag_cmd frag_cmd_<name> = { … };
 *
 * and make finds it. By then the command line has been read by its tables (args.h): run() finds
 * the values in its own struct, what all commands share in struct frag_cli (common.h).
 */
#ifndef FRAG_CLI_CMD_H
#define FRAG_CLI_CMD_H

#include <stddef.h>

#include <frag/error.h>

#include "base/args.h"

/* exit status of the program; 2 to 5 are also those of frag_code_exit() */
enum frag_exit {
	FRAG_EXIT_DONE = 0,
	FRAG_EXIT_CONDITION = 1, /* done, but a demanded condition failed */
	FRAG_EXIT_USAGE = 2,
	FRAG_EXIT_INPUT = 3,
	FRAG_EXIT_DEVICE = 4,
	FRAG_EXIT_OUTPUT = 5,
	FRAG_EXIT_UNKNOWN = 6, /* done, but a recording ended out of memory: the need is unknown */
};

/* headings of `cufrag --help`, in the order of what people need first */
enum frag_cmd_group {
	FRAG_GROUP_UNDERSTAND, /* what happened in a run */
	FRAG_GROUP_CHOOSE,     /* card, setting, policy */
	FRAG_GROUP_RECORD,     /* and files of recordings */
	FRAG_GROUP_USE,	       /* policies in a running program */
	FRAG_GROUP_MEASURE,    /* cards, and what this build knows */
	FRAG_GROUP_COUNT
};

/* sets of shared options a command takes (struct frag_cli has their values) */
#define FRAG_CLI_CARD (1u << 0)	   /* --gpu --capacity --context --limit */
#define FRAG_CLI_COST (1u << 1)	   /* --cost --work: how that card behaves */
#define FRAG_CLI_DEVICE (1u << 2)  /* --device */
#define FRAG_CLI_ANSWER (1u << 3)  /* --json --csv, with .answer */
#define FRAG_CLI_PAGE (1u << 4)	   /* --out --brief */
#define FRAG_CLI_CARDS (1u << 5)   /* --cards --margin: what advice may name */
#define FRAG_CLI_TORCH (1u << 6)   /* --torch: whose rules hold */
#define FRAG_CLI_MEMORY (1u << 7)  /* of FRAG_CLI_CARD only --capacity --context */
#define FRAG_CLI_MANAGED (1u << 8) /* --managed-max of a device */
/* every command takes those of `cufrag help options`: --seed, --threads, --quiet and the like */

struct frag_cli;
struct frag_shape;

struct frag_cmd {
	const char *name;
	const char *summary; /* one line, lower case, for the list of commands */
	enum frag_cmd_group group;
	unsigned rank;	      /* place in its group: 0 first, those alike by name */
	const char *operands; /* as in the usage line: "TRACE...", NULL = none */
	/* other than the words of `operands`: "TRACE" is one, in brackets or beside a program it
	 * may be left out, "TRACE..." are up to 10000 */
	size_t operands_min, operands_max;
	const char *program;  /* the command takes "-- PROGRAM [ARG...]": "PROGRAM", or "[PROGRAM]"
			       * where it may be left out; NULL: words behind "--" are operands */
	const char *about;    /* what it does, some sentences */
	const char *examples; /* two or more lines, each a command */
	unsigned shared;      /* FRAG_CLI_… */
	bool texts; /* the text of an error, a log: summary answers, whichever was typed */
	/* what --json writes; a command with an answer has --json and --csv (common.h) */
	const struct frag_shape *answer;
	const struct frag_arg *const
		*options; /* tables of its own: FRAG_CMD_OPTIONS; NULL = none */
	/* More tables, of files that bring options of their own: writes them and says how many.
	 * options NULL: only to look at. NULL = none. */
	size_t (*more_options)(void *options, struct frag_arg_table *tables);
	size_t options_size; /* of the struct that they fill: zeroed, then init, then the defaults */
	void (*init)(void *options);
	/* 0, an exit status, or an error, which is then printed. */
	int (*run)(struct frag_cli *cli, void *options, struct frag_err *err);
	void (*release)(void *options); /* also after a parse that failed */
};

/* The struct that they fill, then the tables. */
#define FRAG_CMD_OPTIONS(values, ...) \
	.options = (const struct frag_arg *const[]){ __VA_ARGS__, NULL }, \
	.options_size = sizeof(values)

/* Every command, NULL-terminated, by name. */
const struct frag_cmd *const *frag_commands(void);
const struct frag_cmd *frag_commands_find(const char *name);
/* Names the nearest command. */
int frag_commands_fail_unknown(const char *name, struct frag_err *err);
/* The whole program. Returns its exit status. */
int frag_cli_main(int argc, char **argv);

#endif
