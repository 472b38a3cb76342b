/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag help: the list of commands, or what --help of one of them says. */
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/common.h"

/* The next command of a group behind `last` (NULL: the first), by rank and name; NULL: no more. */
static const struct frag_cmd *next_of(unsigned group, const struct frag_cmd *last)
{
	const struct frag_cmd *next = NULL;

	/* the list is by name, so the first of a rank is the next by name */
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		bool behind = !last || (*c)->rank > last->rank ||
			      ((*c)->rank == last->rank && strcmp((*c)->name, last->name) > 0);

		if ((*c)->group == group && behind && (!next || (*c)->rank < next->rank))
			next = *c;
	}
	return next;
}

static void print_program(void)
{
	static const char *const heads[FRAG_GROUP_COUNT] = {
		[FRAG_GROUP_UNDERSTAND] = "Understand a run",
		[FRAG_GROUP_CHOOSE] = "Choose a card, a setting, an allocator",
		[FRAG_GROUP_RECORD] = "Record a program, convert recordings",
		[FRAG_GROUP_USE] = "Use a policy in your program",
		[FRAG_GROUP_MEASURE] = "Measure a card, see what this build knows",
	};

	puts("Usage:\n"
	     "  cufrag FILE                 what a recording shows\n"
	     "  cufrag SCRIPT.py [ARG...]   what a program needs, without a GPU\n"
	     "  cufrag COMMAND [OPTION...] [OPERAND...]\n\n"
	     "Replays the GPU memory history of a real job through any allocation policy and\n"
	     "says how much memory is reserved, how much of it is lost and to what.");
	for (unsigned g = 0; g < FRAG_GROUP_COUNT; g++) {
		printf("\n%s:\n", heads[g]);
		for (const struct frag_cmd *c = NULL; (c = next_of(g, c));)
			printf("  %-10s %s\n", c->name, c->summary);
	}
	puts("\n  -h, --help     print this help; cufrag COMMAND --help for one command\n"
	     "  -V, --version  print the version");
}

enum format { TEXT, MAN, NAMES, WORDS, BASH, ZSH, FISH, SCHEMA, FIELDS };

struct options {
	enum format format;
	bool all;
};

static const char *const formats[] = {
	[TEXT] = "text", [MAN] = "man",	  [NAMES] = "names",   [WORDS] = "words",   [BASH] = "bash",
	[ZSH] = "zsh",	 [FISH] = "fish", [SCHEMA] = "schema", [FIELDS] = "fields", NULL
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_WORD, "format", FRAG_ARG_AT(struct options, format), .words = formats,
	  .def = "text",
	  .help = "the help as text, as a manual page; the names of all commands; completion for "
		  "bash, zsh or fish, and the words that it asks for; what the JSON of a command "
		  "has: as JSON schema, or as tables of Markdown" },
	{ FRAG_ARG_FLAG, "all", FRAG_ARG_AT(struct options, all), .silent = true,
	  .help = "as --help all of a command" },
	{ 0 },
};

static void print_names(void)
{
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++)
		puts((*c)->name);
}

static int print_fields(const struct frag_cmd *cmd, enum format format, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	if (!cmd || !cmd->answer)
		return FRAG_USAGE(err, "--format %s needs a command that writes JSON",
				  formats[format]);
	if (format == SCHEMA)
		return frag_json_put(frag_shape_schema(cmd->answer), "-", err);
	frag_shape_markdown(cmd->answer, &out);
	return frag_text_show(&out, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	const struct options *o = values;
	const struct frag_cmd *cmd = NULL;
	const size_t n = cli->operands_count;

	if (n && !strcmp(cli->operands[0], "options")) {
		frag_cli_help_every(stdout);
		return 0;
	}
	if (n) {
		cmd = frag_commands_find(cli->operands[0]);
		if (!cmd)
			return frag_commands_fail_unknown(cli->operands[0], err);
		frag_cli_tables(cmd, NULL, NULL, tables);
		FRAG_TRY(frag_args_check(tables, err));
	}
	if (o->format >= SCHEMA)
		return print_fields(cmd, o->format, err);
	if (o->format == WORDS)
		frag_help_words(cmd, n > 1 ? cli->operands[1] : "", n > 2 ? cli->operands[2] : "",
				stdout);
	else if (n > 1)
		return FRAG_USAGE(err, "unexpected operand '%.60s'", cli->operands[1]);
	else if (o->format == MAN)
		frag_help_man(cmd, stdout);
	else if (o->format == NAMES)
		print_names();
	else if (o->format == BASH)
		fputs(frag_help_bash, stdout);
	else if (o->format == ZSH)
		fputs(frag_help_zsh, stdout);
	else if (o->format == FISH)
		fputs(frag_help_fish, stdout);
	else if (cmd)
		frag_cli_help(cmd, o->all, stdout);
	else
		print_program();
	return 0;
}

const struct frag_cmd frag_cmd_help = {
	.name = "help",
	.summary = "this list, or the help of one command",
	.group = FRAG_GROUP_MEASURE,
	.operands = "[COMMAND|options]",
	.operands_max = 3, /* those of --format words */
	.about = "Prints the list of commands, what a command does, or the options of every "
		 "command; also as "
		 "manual pages and as completion for shells, which make install puts in place.",
	.examples = "  cufrag help compare\n"
		    "  cufrag help verify --format man | man -l -\n",
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
