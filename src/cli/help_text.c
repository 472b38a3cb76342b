/* SPDX-License-Identifier: Apache-2.0 */
/* --help of a command, from its tables: usage, what it does, options under headings, examples. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_WIDTH 29 /* columns of "  -o, --output=FILE" before the text */
#define COLUMNS_MOST 100

/* Writes `text` in lines of `width`, each behind `indent` blanks; `column`: where the pen is. */
static void wrap(FILE *to, const char *text, unsigned indent, unsigned width, unsigned column)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > indent && column + 1 + n > width) {
			fputc('\n', to);
			column = 0;
		}
		if (column < indent) {
			fprintf(to, "%*s", (int)(indent - column), "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', to);
			column++;
		}
		fwrite(text, 1, n, to);
		column += (unsigned)n;
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', to);
}

static void print_row(FILE *to, const struct frag_arg *a, unsigned width)
{
	char value[120], text[1200];
	int n;

	frag_args_value_text(a, value, sizeof(value));
	if (a->letter)
		n = fprintf(to, "  -%c, --%s", a->letter, a->name);
	else
		n = fprintf(to, "      --%s", a->name);
	if (*value)
		n += fprintf(to, a->bare ? "[=%s]" : "=%s", value);
	if (n >= NAMES_WIDTH) {
		fputc('\n', to);
		n = 0;
	}
	if (a->def)
		snprintf(text, sizeof(text), "%s (default: %s)", a->help, a->def);
	else
		snprintf(text, sizeof(text), "%s", a->help);
	wrap(to, text, NAMES_WIDTH, width, (unsigned)n);
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

/* Under the headings of their tables, or all under one. */
static void print_rows(FILE *to, const struct frag_arg_table *tables, bool laboratory,
		       unsigned width)
{
	const char *heading = "";

	for (const struct frag_arg_table *t = tables; t->rows; t++) {
		const char *mine = laboratory ? "Laboratory (docs/measuring.md)" : t->heading;

		for (const struct frag_arg *a = t->rows; a->type != FRAG_ARG_END; a++) {
			if (a->laboratory != laboratory)
				continue;
			if (strcmp(heading, mine) != 0)
				fprintf(to, "\n%s:\n", mine);
			heading = mine;
			print_row(to, a, width);
		}
	}
}

void frag_cli_help(const struct frag_cmd *cmd, bool all, FILE *to)
{
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	unsigned width = width_of(to);
	size_t first = strcspn(cmd->examples, "\n");

	/* the line that most people want comes first */
	fprintf(to, "%.*s\n\n", (int)first, cmd->examples);
	fprintf(to, "Usage: cufrag %s [OPTION...]%s%s", cmd->name, cmd->operands ? " " : "",
		cmd->operands ? cmd->operands : "");
	if (cmd->program)
		fprintf(to, cmd->program[0] == '[' ? " [-- %.*s [ARG...]]" : " -- %.*s [ARG...]",
			(int)strcspn(cmd->program + (cmd->program[0] == '['), "]"),
			cmd->program + (cmd->program[0] == '['));
	fputs("\n\n", to);
	wrap(to, cmd->about, 0, width, 0);
	frag_cli_tables(cmd, NULL, NULL, tables);
	print_rows(to, tables, false, width);
	if (all)
		print_rows(to, tables, true, width);
	if (cmd->examples[first] && cmd->examples[first + 1])
		fprintf(to, "\nMore examples:\n%s", cmd->examples + first + 1);
}
