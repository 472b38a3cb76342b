/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash, zsh and fish, from the tables of the commands. What a value may be comes
 * from its name in the tables; everything that is not a list of words is completed as a file.
 */
#include "cli/common.h"

#include <string.h>

#include <frag/device.h>
#include <frag/policy.h>

static void put_policies(FILE *to)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	fputs("recorded", to);
	for (size_t i = 0; i < n; i++)
		if (!(list[i]->flags & FRAG_POLICY_HIDDEN))
			fprintf(to, " %s", list[i]->name);
}

static void put_gpus(FILE *to)
{
	size_t n;
	const struct frag_gpu *list = frag_gpu_list(&n);

	for (size_t i = 0; i < n; i++)
		fprintf(to, "%s%s", i ? " " : "", list[i].name);
}

static void put_commands(FILE *to)
{
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++)
		fprintf(to, "%s%s", c == frag_commands() ? "" : " ", (*c)->name);
}

/* What may stand for a value: words that stand there themselves ("stop|skip"), what this build
 * knows by that name, or anything, as a file. */
static bool has_words(const char *value)
{
	return !strcmp(value, "POLICY") || !strcmp(value, "POLICIES") || !strcmp(value, "GPU") ||
	       !strcmp(value, "[COMMAND|options]") ||
	       (memchr(value, '|', strcspn(value, " [=")) && value[0] >= 'a' && value[0] <= 'z');
}

/* Separated by blanks; nothing where there are none. */
static void put_words(const char *value, FILE *to)
{
	if (!has_words(value))
		return;
	if (!strncmp(value, "POLIC", 5))
		put_policies(to);
	else if (!strcmp(value, "GPU"))
		put_gpus(to);
	else if (!strcmp(value, "[COMMAND|options]"))
		put_commands(to);
	else
		for (size_t i = 0; i < strcspn(value, " [="); i++)
			fputc(value[i] == '|' ? ' ' : value[i], to);
}

/* The options of a command that completion offers, one after the other. */
struct rows {
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX], *table;
	const struct frag_arg *next;
};

static void begin(struct rows *r, const struct frag_cmd *cmd)
{
	frag_cli_tables(cmd, NULL, NULL, r->tables);
	r->table = r->tables;
	r->next = r->table->rows;
}

/* NULL: no more. */
static const struct frag_arg *next_row(struct rows *r)
{
	while (r->table->rows) {
		const struct frag_arg *a = r->next++;

		if (a->type == FRAG_ARG_END)
			r->next = (++r->table)->rows;
		else if (!a->silent)
			return a;
	}
	return NULL;
}

/* Inside of single quotes of a shell: no quotes, brackets or colons. */
static void put_plain(FILE *to, const char *text)
{
	for (; *text; text++)
		if (!strchr("'[]:\\$`\"", *text))
			fputc(*text, to);
}

/* ---- bash -------------------------------------------------------------------------- */

static void bash_values(FILE *to, const struct frag_cmd *cmd)
{
	const struct frag_arg *a;
	char value[120];
	struct rows r;

	for (begin(&r, cmd); (a = next_row(&r));) {
		if (!frag_args_value_text(a, value, sizeof(value)))
			continue;
		fprintf(to, "\t%s:--%s) words='", cmd->name, a->name);
		put_words(value, to);
		fputs("' ;;\n", to);
	}
}

void frag_help_bash(FILE *to)
{
	const struct frag_arg *a;
	struct rows r;

	fputs("# bash completion of cufrag, made by: cufrag help --format bash\n"
	      "_cufrag()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\tlocal cmd=${COMP_WORDS[1]} words=''\n"
	      "\tif [ \"$cur\" = = ]; then cur=''; fi\n"
	      "\tif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '",
	      to);
	put_commands(to);
	fputs(" --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $cmd:$prev in\n", to);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++)
		bash_values(to, *c);
	fputs("\t*) case $cmd in\n", to);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		fprintf(to, "\t\t%s) words='", (*c)->name);
		put_words((*c)->operands ? (*c)->operands : "", to);
		fputs("'\n\t\t\tcase $cur in -*) words='", to);
		for (begin(&r, *c); (a = next_row(&r));)
			fprintf(to, " --%s", a->name);
		fputs("' ;; esac ;;\n", to);
	}
	fputs("\t\tesac ;;\n\tesac\n"
	      "\tif [ -n \"$words\" ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n}\n"
	      "complete -o filenames -F _cufrag cufrag\n",
	      to);
}

/* ---- zsh --------------------------------------------------------------------------- */

static void zsh_row(FILE *to, const struct frag_arg *a)
{
	char value[120];

	fprintf(to, "\t\t\t'*--%s%s[", a->name,
		a->type == FRAG_ARG_FLAG ? ""
		: a->bare		 ? "=-"
					 : "=");
	put_plain(to, a->help);
	fputs("]", to);
	if (frag_args_value_text(a, value, sizeof(value))) {
		fputs(a->bare ? "::value:" : ":value:", to);
		fputs(has_words(value) ? "(" : "_files", to);
		put_words(value, to);
		fputs(has_words(value) ? ")" : "", to);
	}
	fputs("' \\\n", to);
}

void frag_help_zsh(FILE *to)
{
	const struct frag_arg *a;
	struct rows r;

	fputs("#compdef cufrag\n# zsh completion of cufrag, made by: cufrag help --format zsh\n"
	      "_cufrag() {\n\tlocal -a commands=(\n",
	      to);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		fprintf(to, "\t\t'%s:", (*c)->name);
		put_plain(to, (*c)->summary);
		fputs("'\n", to);
	}
	fputs("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command "
	      "commands\n\t\treturn\n\tfi\n"
	      "\tlocal cmd=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $cmd in\n",
	      to);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		fprintf(to, "\t%s)\n\t\t_arguments \\\n", (*c)->name);
		for (begin(&r, *c); (a = next_row(&r));)
			zsh_row(to, a);
		fputs("\t\t\t'*:operand:_files'\n\t\t;;\n", to);
	}
	fputs("\tesac\n}\n_cufrag \"$@\"\n", to);
}

/* ---- fish -------------------------------------------------------------------------- */

static void fish_row(FILE *to, const struct frag_cmd *cmd, const struct frag_arg *a)
{
	char value[120];

	fprintf(to, "complete -c cufrag -n '__fish_seen_subcommand_from %s' -l %s", cmd->name,
		a->name);
	if (a->letter)
		fprintf(to, " -s %c", a->letter);
	if (frag_args_value_text(a, value, sizeof(value))) {
		fputs(a->bare ? " -a '" : " -r -a '", to);
		put_words(value, to);
		fputs("'", to);
	}
	fputs(" -d '", to);
	put_plain(to, a->help);
	fputs("'\n", to);
}

void frag_help_fish(FILE *to)
{
	const struct frag_arg *a;
	struct rows r;

	fputs("# fish completion of cufrag, made by: cufrag help --format fish\n", to);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		fprintf(to, "complete -c cufrag -n __fish_use_subcommand -f -a %s -d '",
			(*c)->name);
		put_plain(to, (*c)->summary);
		fputs("'\n", to);
		for (begin(&r, *c); (a = next_row(&r));)
			fish_row(to, *c, a);
	}
}
