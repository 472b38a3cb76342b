/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in roff: the help of a command, or of the program, as it is. */
#include "cli/common.h"

#include <stdlib.h>
#include <string.h>

/* Lines of text: nothing in them is a request or an escape. */
static void put(FILE *to, const char *text)
{
	for (const char *at = text; *at; at++) {
		if ((at == text || at[-1] == '\n') && (*at == '.' || *at == '\''))
			fputs("\\&", to);
		if (*at == '\\')
			fputs("\\e", to);
		else if (*at == '-')
			fputs("\\-", to);
		else
			fputc(*at, to);
	}
}

/* Of the program for cmd NULL. */
static void put_help(const struct frag_cmd *cmd, FILE *to)
{
	FRAG_AUTO_FREE char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return;
	if (cmd)
		frag_cli_help(cmd, true, memory);
	else
		frag_cli_help_every(memory);
	if (fclose(memory))
		return;
	fputs(".nf\n", to);
	put(to, text);
	fputs(".fi\n", to);
}

void frag_help_man(const struct frag_cmd *cmd, FILE *to)
{
	fprintf(to, ".TH CUFRAG%s%s 1 \"\" \"cufrag %s\" \"cufrag\"\n.SH NAME\ncufrag%s%s \\- ",
		cmd ? "\\-" : "", cmd ? cmd->name : "", FRAG_VERSION, cmd ? "\\-" : "",
		cmd ? cmd->name : "");
	put(to, cmd ? cmd->summary : "replay GPU memory histories through any allocation policy");
	fputs("\n.SH DESCRIPTION\n", to);
	if (!cmd)
		fputs("Replays the GPU memory history of a real job through any allocation policy, "
		      "on a simulated GPU or a real one, and says how much memory is reserved, how "
		      "much of it is lost and to what.\n.SH COMMANDS\n",
		      to);
	for (const struct frag_cmd *const *c = frag_commands(); !cmd && *c; c++) {
		fprintf(to, ".TP\n\\fBcufrag\\-%s\\fR(1)\n", (*c)->name);
		put(to, (*c)->summary);
		fputc('\n', to);
	}
	put_help(cmd, to);
	fputs(".SH EXIT STATUS\n"
	      "0 done; 1 done, but a demanded condition failed; 2 wrong usage; 3 bad input; 4 a "
	      "device, or an interruption; 5 output; 6 done, but a recording ended out of memory, "
	      "so that its need is unknown.\n"
	      ".SH SEE ALSO\n.BR cufrag (1)\n",
	      to);
}
