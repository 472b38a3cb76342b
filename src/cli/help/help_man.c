/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in roff, from the tables of the commands. */
#include "cli/common.h"

#include <string.h>

/* A line of text: nothing in it is a request or an escape. */
static void put(FILE *to, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", to);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
	}
}

static void put_upper(FILE *to, const char *text)
{
	for (; *text; text++)
		fputc(*text >= 'a' && *text <= 'z' ? *text - 32 : *text, to);
}

static void put_row(FILE *to, const struct frag_arg *a)
{
	char value[120];

	fputs(".TP\n", to);
	if (a->letter)
		fprintf(to, "\\fB\\-%c\\fR, ", a->letter);
	fputs("\\fB\\-\\-", to);
	put(to, a->name);
	fputs("\\fR", to);
	if (frag_args_value_text(a, value, sizeof(value))) {
		fputs(a->bare ? "[=\\fI" : "=\\fI", to);
		put(to, value);
		fputs(a->bare ? "\\fR]" : "\\fR", to);
	}
	fputc('\n', to);
	put(to, a->help);
	if (a->def) {
		fputs(" (default: ", to);
		put(to, a->def);
		fputc(')', to);
	}
	fputc('\n', to);
}

static void put_examples(FILE *to, const char *text)
{
	fputs(".SH EXAMPLES\n.nf\n", to);
	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[400];

		snprintf(line, sizeof(line), "%.*s", (int)n, text + strspn(text, " "));
		line[strcspn(line, "\n")] = '\0';
		put(to, line);
		fputc('\n', to);
		text += n + (text[n] == '\n');
	}
	fputs(".fi\n", to);
}

static void put_end(FILE *to)
{
	fputs(".SH EXIT STATUS\n"
	      "0 done; 1 done, but a demanded condition failed; 2 wrong usage; 3 bad input; 4 a "
	      "device, or an interruption; 5 output; 6 done, but a recording ended out of memory, "
	      "so that its need is unknown.\n"
	      ".SH SEE ALSO\n.BR cufrag (1)\n",
	      to);
}

static void man_of_command(const struct frag_cmd *cmd, FILE *to)
{
	struct frag_arg_table tables[FRAG_ARG_TABLES_MAX];
	const char *heading = "";

	fputs(".TH CUFRAG\\-", to);
	put_upper(to, cmd->name);
	fprintf(to, " 1 \"\" \"cufrag %s\" \"cufrag\"\n.SH NAME\ncufrag\\-%s \\- ", FRAG_VERSION,
		cmd->name);
	put(to, cmd->summary);
	fprintf(to, "\n.SH SYNOPSIS\n.B cufrag %s\n[\\fIOPTION\\fR...] ", cmd->name);
	put(to, cmd->operands ? cmd->operands : "");
	if (cmd->program)
		fprintf(to, " \\-\\- \\fI%s\\fR [\\fIARG\\fR...]", cmd->program);
	fputs("\n.SH DESCRIPTION\n", to);
	put(to, cmd->about);
	fputc('\n', to);
	frag_cli_tables(cmd, NULL, NULL, tables);
	for (const struct frag_arg_table *t = tables; t->rows; t++) {
		if (t->rows == frag_cli_every_args)
			continue;
		if (strcmp(heading, t->heading) != 0) {
			fputs(".SH ", to);
			put_upper(to, t->heading);
			fputc('\n', to);
		}
		heading = t->heading;
		for (const struct frag_arg *a = t->rows; a->type != FRAG_ARG_END; a++)
			if (!a->silent)
				put_row(to, a);
	}
	put_examples(to, cmd->examples);
	fputs(".PP\nThe options of every command are in\n.BR cufrag (1).\n", to);
	put_end(to);
}

void frag_help_man(const struct frag_cmd *cmd, FILE *to)
{
	if (cmd) {
		man_of_command(cmd, to);
		return;
	}
	fprintf(to,
		".TH CUFRAG 1 \"\" \"cufrag %s\" \"cufrag\"\n.SH NAME\ncufrag \\- replay GPU "
		"memory histories through any allocation policy\n.SH SYNOPSIS\n.B "
		"cufrag\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n.SH "
		"DESCRIPTION\nReplays the GPU memory history of a real job through any allocation "
		"policy, on a simulated GPU or a real one, and says how much memory is reserved, "
		"how much of it is lost and to what.\n"
		".SH COMMANDS\n",
		FRAG_VERSION);
	for (const struct frag_cmd *const *c = frag_commands(); *c; c++) {
		fprintf(to, ".TP\n\\fBcufrag\\-%s\\fR(1)\n", (*c)->name);
		put(to, (*c)->summary);
		fputc('\n', to);
	}
	fputs(".SH OPTIONS OF EVERY COMMAND\n", to);
	for (const struct frag_arg *a = frag_cli_every_args; a->type != FRAG_ARG_END; a++)
		put_row(to, a);
	put_end(to);
}
