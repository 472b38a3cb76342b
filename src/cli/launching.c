/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that start a program; see launching.h. */
#include "launching.h"

#include <string.h>

#include "base/scratch.h"

static void note(void *ctx, const char *text)
{
	frag_cli_note(ctx, "%s", text);
}

struct frag_program frag_cli_program(const struct frag_cli *cli, const struct frag_pretend *pretend)
{
	return (struct frag_program){ .words = cli->program,
				      .pretend = pretend,
				      .target = cli->target,
				      .gpu = cli->gpu_,
				      .note = note,
				      .ctx = (void *)(uintptr_t)cli };
}

struct frag_launch frag_cli_launch(const struct frag_cli *cli)
{
	return (struct frag_launch){ .target = cli->target,
				     .gpu = cli->gpu_,
				     .collect = frag_pretend_collect,
				     .note = note,
				     .ctx = (void *)(uintptr_t)cli };
}

const char *frag_cli_card(const struct frag_cli *cli, char *buf, size_t cap)
{
	const struct frag_sim_config *card = &cli->target.card;

	if (!card->name)
		return "h200";
	if (strcmp(card->name, "sim") != 0)
		return card->name;
	snprintf(buf, cap, "a card of %s", FRAG_BYTES(card->total_bytes));
	return buf;
}

static int make_file(struct frag_program_operand *out, struct frag_err *err)
{
	int reason = frag_scratch_folder(NULL, &out->folder);

	if (reason)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a temporary folder: %s",
				 strerror(reason));
	snprintf(out->path, sizeof(out->path), "%s/trace.cft", out->folder);
	return 0;
}

int frag_program_operand(struct frag_cli *cli, const struct frag_pretend *o,
			 struct frag_program_operand *out, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	const struct frag_program program = frag_cli_program(cli, o);
	int status;

	if (cli->program && cli->operands_count)
		return frag_fail(err, FRAG_EUSAGE, "a trace and a program: give one of them");
	if (!cli->program && !cli->operands_count)
		return frag_fail(err, FRAG_EUSAGE, "no trace and no program to record");
	if (!cli->program)
		return 0;
	FRAG_TRY(frag_program_record(&program, &trace, &status, err));
	if (status)
		frag_cli_note(cli,
			      "the program ended with status %d; what it did until then counts",
			      status);
	FRAG_TRY(make_file(out, err));
	FRAG_TRY(frag_trace_write_cft(trace, out->path, err));
	out->list[0] = out->path;
	out->cli = cli;
	out->before = cli->operands;
	cli->operands = out->list;
	cli->operands_count = 1;
	return 0;
}

void frag_program_operand_release(struct frag_program_operand *o)
{
	frag_scratch_remove(o->folder);
	o->folder = NULL;
	if (o->cli) { /* they belong to who parsed them */
		o->cli->operands = o->before;
		o->cli->operands_count = 0;
	}
	o->cli = NULL;
}
