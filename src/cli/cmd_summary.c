/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag summary, which is also cufrag FILE: three sentences about a recording. */
#include "cli/shared.h"
#include "explain/summary.h"

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 }, a = { 0 };
	FRAG_AUTO(frag_findings_release) struct frag_findings f = { .texts = &texts };
	FRAG_AUTO(frag_text_release) struct frag_text files = { 0 };

	(void)values;
	FRAG_TRY(frag_cli_diagnose(cli, NULL, &f, err));
	for (size_t i = 0; i < cli->operands_count; i++) {
		frag_text_add(&files, i ? " " : "");
		frag_text_add_shell(&files, cli->operands[i]);
	}
	FRAG_TRY(frag_text_check(&files, err));
	FRAG_TRY(frag_summary_answer(&f, frag_text_str(&files), &a, err));
	return frag_cli_show_answer(cli, &a, err);
}

const struct frag_cmd frag_cmd_summary = {
	.name = "summary",
	.summary = "three sentences: how much it took, what is wrong, what to type next",
	.group = FRAG_GROUP_UNDERSTAND,
	.operands = "TRACE|LOG...",
	.operands_max = 4096,
	.about = "Tells in three sentences how much memory a recording took, what is wrong "
		 "and at which line, and which command shows more. 'cufrag FILE' is short for "
		 "it.",
	.examples = "  cufrag summary traces/leak.frames.cft\n"
		    "  cufrag summary rank*.pickle --json -\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_summary_shape,
	.run = run,
};
