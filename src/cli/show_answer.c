/* SPDX-License-Identifier: Apache-2.0 */
/* An answer where the command line wants it; see common.h. */
#include "common.h"

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

/* If a file cannot be written, the rest is given all the same; the first reason is the error. */
static bool can_go_on(int rc)
{
	return !rc || rc == FRAG_EOUTPUT;
}

int frag_cli_print_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	struct frag_err other;
	int rc = 0, later;

	a->command = cli->cmd->name;
	a->estimated |= cli->estimated;
	a->color = frag_term_color(cli->color, stdout);
	a->brief = cli->brief;
	*cli->need_unknown |= a->need_unknown;
	if (cli->json)
		rc = frag_answer_put_json(a, cli->json, err);
	if (cli->csv && can_go_on(rc)) {
		later = frag_answer_put_csv(a, cli->csv, rc ? &other : err);
		rc = rc ?: later;
	}
	if (a->quiet || to_stdout(cli->json) || to_stdout(cli->csv) || !can_go_on(rc))
		return rc;
	later = frag_answer_text(a, frag_term_room(stdout), &text, rc ? &other : err);
	later = later ?: frag_text_show(&text, rc ? &other : err);
	return rc ?: later;
}

int frag_cli_show_answer(const struct frag_cli *cli, struct frag_answer *a, struct frag_err *err)
{
	struct frag_err other;
	int rc = 0, later;

	a->command = cli->cmd->name;
	a->estimated |= cli->estimated;
	if (*cli->other_kernels)
		frag_answer_warn(a, "%s", cli->other_kernels);
	if (cli->out)
		rc = put_page(cli, a, err);
	if (!can_go_on(rc))
		return rc;
	later = frag_cli_print_answer(cli, a, rc ? &other : err);
	return rc ?: later;
}

int frag_cli_show_written(const struct frag_cli *cli, const struct frag_written *w,
			  struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	frag_written_answer(&a, w);
	a.quiet = !strcmp(w->file, "-");
	for (size_t i = 0; a.quiet && i < a.parts_count; i++)
		frag_cli_note(cli, "%s", a.parts[i].text);
	return frag_cli_show_answer(cli, &a, err);
}
