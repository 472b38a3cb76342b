/* SPDX-License-Identifier: Apache-2.0 */
/* An answer where the command line wants it; see show_answer.h. */
#include "show_answer.h"

#include <string.h>

#include "answer/draw/plot.h"

static bool to_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

void frag_cli_add_command_line(const struct frag_cli *cli, struct frag_text *out)
{
	frag_text_add(out, "cufrag");
	for (int i = 0; i < cli->argc; i++) {
		frag_text_add(out, " ");
		frag_text_add_shell(out, cli->argv[i]);
	}
}

static int put_page(const struct frag_cli *cli, const struct frag_answer *a, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text command = { 0 }, file = { 0 };

	frag_cli_add_command_line(cli, &command);
	frag_text_addf(&file, "%s.html", cli->cmd->name);
	FRAG_TRY(frag_text_check(&command, err) ?: frag_text_check(&file, err));
	return frag_answer_put_page(
		a,
		&(struct frag_answer_page){ .dir = cli->out,
					    .file = frag_text_str(&file),
					    .command_line = frag_text_str(&command),
					    .formats = FRAG_FORMAT_PNG,
					    .threads = cli->threads },
		err);
}

int frag_cli_print_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };

	a->command = cli->cmd->name;
	a->color = frag_term_color(cli->color, stdout);
	a->brief = cli->brief;
	*cli->need_unknown |= a->need_unknown;
	if (cli->json)
		FRAG_TRY(frag_answer_put_json(a, cli->json, err));
	if (cli->csv)
		FRAG_TRY(frag_answer_put_csv(a, cli->csv, err));
	if (a->quiet || to_stdout(cli->json) || to_stdout(cli->csv))
		return 0;
	FRAG_TRY(frag_answer_text(a, frag_term_room(stdout), &text, err));
	return frag_text_show(&text, err);
}

int frag_cli_show_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err)
{
	a->command = cli->cmd->name;
	if (*cli->other_kernels)
		frag_answer_warn(a, "%s", cli->other_kernels);
	if (cli->out)
		FRAG_TRY(put_page(cli, a, err));
	return frag_cli_print_answer(cli, a, err);
}
