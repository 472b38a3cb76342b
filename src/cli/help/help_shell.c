/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash, zsh and fish: their functions ask `cufrag help --format words` what may
 * stand at a place of the command line. What a value may be comes from its name in the tables.
 */
#include "cli/common.h"

#include <string.h>

#include <frag/device.h>
#include <frag/policy.h>

const char frag_help_bash[] =
	"# bash completion of cufrag, made by: cufrag help --format bash\n"
	"_cufrag()\n{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at=() words\n"
	"\tif [ \"$cur\" = = ]; then cur=''; fi\n"
	"\tif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	"\tif [ \"$COMP_CWORD\" -gt 1 ]; then at=(\"${COMP_WORDS[1]}\" \"$prev\" \"$cur\"); fi\n"
	"\twords=$(\"${COMP_WORDS[0]}\" help --format words -- \"${at[@]}\" 2> /dev/null | cut -f "
	"1)\n"
	"\tif [ -n \"$words\" ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	"\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n}\n"
	"complete -o filenames -F _cufrag cufrag\n";

const char frag_help_zsh[] =
	"#compdef cufrag\n# zsh completion of cufrag, made by: cufrag help --format zsh\n"
	"_cufrag() {\n"
	"\tlocal -a all at\n\tlocal prev=$words[CURRENT-1]\n"
	"\tif [[ $PREFIX = --*=* ]]; then prev=${PREFIX%%=*}; compset -P '*='; fi\n"
	"\tif (( CURRENT > 2 )); then at=(\"$words[2]\" \"$prev\" \"$PREFIX\"); fi\n"
	"\tall=(${${(f)\"$($words[1] help --format words -- \"$at[@]\" 2> "
	"/dev/null)\"}//$'\\t'/:})\n"
	"\tif (( $#all )); then _describe word all; else _files; fi\n}\n_cufrag \"$@\"\n";

const char frag_help_fish[] =
	"# fish completion of cufrag, made by: cufrag help --format fish\n"
	"function _cufrag\n"
	"\tset -l at (commandline -opc)\n"
	"\tif test (count $at) -gt 1\n\t\tset at $at[2] $at[-1] (commandline -ct)\n"
	"\telse\n\t\tset at\n\tend\n"
	"\tcufrag help --format words -- $at 2> /dev/null\nend\n"
	"complete -c cufrag -a '(_cufrag)'\n";

static void put_policies(FILE *to)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	fputs("recorded\n", to);
	for (size_t i = 0; i < n; i++)
		if (!(list[i]->flags & FRAG_POLICY_HIDDEN))
			fprintf(to, "%s\n", list[i]->name);
}

static void put_commands(FILE *to)
{
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++)
		fprintf(to, "%s\t%s\n", (*c)->name, (*c)->summary);
}

/* What may stand for a value: words that stand there themselves ("stop|skip"), what this build
 * knows by that name, or (nothing is written) a file. */
static void put_values(const char *value, FILE *to)
{
	const struct frag_gpu *gpus;
	size_t n;

	if (!strncmp(value, "POLIC", 5)) {
		put_policies(to);
	} else if (!strcmp(value, "GPU")) {
		gpus = frag_gpu_list(&n);
		for (size_t i = 0; i < n; i++)
			fprintf(to, "%s\t%s\n", gpus[i].name, gpus[i].label);
	} else if (!strcmp(value, "[COMMAND|options]")) {
		put_commands(to);
	} else if (*value >= 'a' && *value <= 'z' && memchr(value, '|', strcspn(value, " [="))) {
		for (size_t i = 0; i < strcspn(value, " [="); i++)
			fputc(value[i] == '|' ? '\n' : value[i], to);
		fputc('\n', to);
	}
}

static bool is_named(const struct frag_arg *a, const char *word)
{
	return !strncmp(word, "--", 2) ? !strcmp(word + 2, a->name)
				       : word[0] == '-' && a->letter && word[1] == a->letter;
}

void frag_help_words(const struct frag_cmd *cmd, const char *before, const char *typed, FILE *to)
{
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	char value[120];

	if (!cmd) {
		put_commands(to);
		fputs("--help\n--version\n", to);
		return;
	}
	frag_cli_tables(cmd, NULL, NULL, tables);
	for (unsigned options = 0; options < (*typed == '-' ? 2u : 1u); options++)
		for (const struct frag_arg_table *t = tables; t->rows; t++)
			for (const struct frag_arg *a = t->rows; a->type != FRAG_ARG_END; a++) {
				if (options && !a->silent)
					fprintf(to, "--%s\t%s\n", a->name, a->help);
				if (options || a->bare || !is_named(a, before) ||
				    !frag_args_value_text(a, value, sizeof(value)))
					continue;
				put_values(value, to);
				return;
			}
	if (*typed != '-' && cmd->operands)
		put_values(cmd->operands, to);
}
