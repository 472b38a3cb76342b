/* SPDX-License-Identifier: Apache-2.0 */
/* --help of a command, from its tables: usage, what it does, options under headings, examples. */
#include "common.h"

#include "answer/textbuf.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_WIDTH 29 /* columns of "  -o, --output=FILE" before the text */
#define COLUMNS_MOST 100
#define ABOUT_SHORT 480 /* characters of what a command does in its short help */

/* Length of the first clause. Parentheses stay whole; "with --out: …" goes on after its colon. */
static size_t first_clause(const char *text)
{
	bool condition = !strncmp(text, "with ", 5);
	int depth = 0;

	for (size_t i = 0; text[i]; i++) {
		depth += (text[i] == '(') - (text[i] == ')');
		if (depth || !strchr(".;:", text[i]) || (text[i + 1] && text[i + 1] != ' '))
			continue;
		if (!condition || text[i] != ':')
			return i;
		condition = false;
	}
	return strlen(text);
}

static void print_row(FILE *to, const struct frag_arg *a, bool all, unsigned width)
{
	FRAG_AUTO(frag_text_release)
	struct frag_text out = { 0 }, names = { 0 }, blanks = { 0 }, text = { 0 };
	char value[120];
	size_t n;

	frag_text_addf(&names, a->letter ? "  -%c, --%s" : "  %c   --%s",
		       a->letter ? a->letter : ' ', a->name);
	if (frag_args_value_text(a, value, sizeof(value)))
		frag_text_addf(&names, a->bare ? "[=%s]" : "=%s", value);
	n = frag_text_width(frag_text_str(&names));
	frag_text_repeat(&blanks, " ", NAMES_WIDTH);
	if (n >= NAMES_WIDTH)
		fprintf(to, "%s\n", frag_text_str(&names));
	else
		frag_text_repeat(&names, " ", NAMES_WIDTH - n);
	frag_text_addf(&text, "%.*s", all ? 1000 : (int)first_clause(a->help), a->help);
	if (a->def)
		frag_text_addf(&text, " (default: %s)", a->def);
	frag_text_add_lines(&out, frag_text_str(n < NAMES_WIDTH ? &names : &blanks),
			    frag_text_str(&blanks), frag_text_str(&text), width);
	fputs(frag_text_str(&out), to);
}

/* $COLUMNS, else the terminal's, never very long. */
static unsigned width_of(FILE *to)
{
	const char *given = getenv("COLUMNS");
	unsigned long n = given ? strtoul(given, NULL, 10) : 0;

	if (n < 40 || n > 1000)
		n = frag_term_columns(to);
	return (unsigned)FRAG_MIN(n, (unsigned long)COLUMNS_MOST) - 1;
}

/* Under the headings of their tables, but those of every command. Returns how many are left out. */
static unsigned print_rows(FILE *to, const struct frag_arg_table *tables, bool all, unsigned width)
{
	const char *heading = "";
	unsigned left = 0;

	for (const struct frag_arg_table *t = tables; t->rows; t++) {
		for (const struct frag_arg *a = t->rows; a->type != FRAG_ARG_END; a++) {
			if (t->rows == frag_cli_every_args || a->silent)
				continue;
			if (a->rare && !all) {
				left++;
				continue;
			}
			if (all && strcmp(heading, t->heading) != 0)
				fprintf(to, "\n%s:\n", t->heading);
			heading = t->heading;
			print_row(to, a, all, width);
		}
	}
	return left;
}

void frag_cli_help_every(FILE *to)
{
	fputs(FRAG_CLI_EVERY ":\n", to);
	for (const struct frag_arg *a = frag_cli_every_args; a->type != FRAG_ARG_END; a++)
		print_row(to, a, true, width_of(to));
}

static void print_usage(const struct frag_cmd *cmd, FILE *to)
{
	fprintf(to, "Usage: cufrag %s [OPTION...]%s%s", cmd->name, cmd->operands ? " " : "",
		cmd->operands ? cmd->operands : "");
	if (cmd->program)
		fprintf(to, cmd->program[0] == '[' ? " [-- %.*s [ARG...]]" : " -- %.*s [ARG...]",
			(int)strcspn(cmd->program + (cmd->program[0] == '['), "]"),
			cmd->program + (cmd->program[0] == '['));
	fputs("\n\n", to);
}

/* The line that most people want comes first; of what it does, the first sentences. */
void frag_cli_help(const struct frag_cmd *cmd, bool all, FILE *to)
{
	FRAG_AUTO(frag_text_release) struct frag_text about = { 0 }, lines = { 0 };
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	const unsigned width = width_of(to);
	size_t first = strcspn(cmd->examples, "\n"), n = strlen(cmd->about);
	unsigned left;

	fprintf(to, "%.*s\n\n", (int)first, cmd->examples);
	print_usage(cmd, to);
	for (; !all && n > ABOUT_SHORT;)
		do
			n--;
		while (n && (cmd->about[n - 1] != '.' || cmd->about[n] != ' '));
	frag_text_addn(&about, cmd->about, n ? n : strcspn(cmd->about, "."));
	frag_text_add_lines(&lines, "", "", frag_text_str(&about), width);
	fputs(frag_text_str(&lines), to);
	frag_cli_tables(cmd, NULL, NULL, tables);
	if (!all)
		fputc('\n', to);
	left = print_rows(to, tables, all, width);
	if (!all)
		fprintf(to, "\nThe whole text%s: cufrag %s --help all. ",
			left ? ", and more options" : "", cmd->name);
	else if (cmd->examples[first] && cmd->examples[first + 1])
		fprintf(to, "\nMore examples:\n%s\n", cmd->examples + first + 1);
	fputs(all ? "Options of every command: cufrag help options\n"
		  : "Of every command: cufrag help options\n",
	      to);
}
