/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag advise: what to change in a program, with what each change saves. */

#include "pretend/advise/trial.h"
#include "cli/program.h"

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	const char *changes;
	unsigned seconds;
};

/* One line for each, with the best so far. */
static void tell(void *ctx, const struct frag_advising *a, const struct frag_advice *x)
{
	const struct frag_advice *best = NULL;
	uint64_t before = frag_advice_need(&a->first.peaks);
	size_t left = 0;

	for (const struct frag_advice *y = a->list; y < a->list + a->count; y++) {
		left += !y->tried && !*y->left_out;
		if (y->tried &&
		    (!best || frag_advice_need(&y->after) < frag_advice_need(&best->after)))
			best = y;
	}
	if (x->tried)
		frag_cli_note(ctx, "%s: %s in place of %s; best so far %s with %s, %zu to try",
			      x->change, FRAG_BYTES(frag_advice_need(&x->after)),
			      FRAG_BYTES(before), best->change,
			      FRAG_BYTES(frag_advice_need(&best->after)), left);
	else
		frag_cli_note(ctx, "%s: %s", x->change, x->left_out);
}

static int try_or_edit(struct frag_cli *cli, struct frag_advising *a, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };

	if (cli->program)
		return frag_advise_try(a, err);
	FRAG_TRY(frag_recording_open(&r, cli->operands[0], &cli->target, FRAG_OPEN_HISTORY, err));
	return frag_advise_recording(a, &r, err);
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "changes", FRAG_ARG_AT(struct options, changes), .value = "LIST",
	  .help = "try only these, as checkpoint,fused (default: all that apply)" },
	{ FRAG_ARG_UINT, "time", FRAG_ARG_AT(struct options, seconds), .value = "SECONDS", .min = 1,
	  .max = 86400,
	  .help = "end a run after this time (default: a minute and ten times what the unchanged "
		  "program takes)" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	size_t untried;
	const struct frag_gpu *gpu = frag_gpu_find(cli->gpu_ ? cli->gpu_ : "h200");
	FRAG_AUTO(frag_answer_release) struct frag_answer answer = { 0 };
	FRAG_AUTO(frag_advising_release)
	struct frag_advising a = { .program = frag_cli_program(cli, &o->pretend),
				   .pretend = &o->pretend,
				   .texts = &answer,
				   .headroom = cli->headroom,
				   .card = *gpu,
				   .named = cli->gpu_ || cli->capacity_bytes,
				   .only = o->changes,
				   .seconds = o->seconds,
				   .workers = FRAG_MAX(FRAG_MIN(cli->threads, 8u), 1u),
				   .progress = tell,
				   .ctx = cli };

	if (!cli->program == !cli->operands_count)
		return frag_fail(err, FRAG_EUSAGE, "give a program behind --, or one trace");
	if (cli->capacity_bytes)
		a.card.label = "a card of that size";
	a.card.total_bytes = cli->target.card.total_bytes;
	a.card.context_bytes = cli->target.card.context_bytes;
	FRAG_TRY(frag_catalog_init(&a.catalog, cli->cards, cli->vendor, err));
	frag_interrupt_catch();
	answer.estimated = cli->estimated;
	FRAG_TRY(try_or_edit(cli, &a, err));
	FRAG_TRY(frag_advise_answer(&a, &answer, err));
	FRAG_TRY(frag_cli_show_answer(cli, &answer, err));
	if (a.interrupted)
		frag_cli_note(cli, "interrupted: %zu of %zu changes were tried", a.tried, a.count);
	if (a.interrupted)
		return frag_code_exit(FRAG_EINTR);
	return cli->program && a.named && !a.fits    ? FRAG_EXIT_CONDITION
	       : frag_advising_unknown(&a, &untried) ? FRAG_EXIT_UNKNOWN
						     : FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_advise = {
	.name = "advise",
	.summary = "what to change in a program, with what each change saves",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 0,
	.operands = "TRACE",
	.program = "[PROGRAM]",
	.about = "Runs the unchanged program on a pretended card, then once with each change that "
		 "applies to it (checkpointing, another optimizer, half of the batch, …). It makes "
		 "changes in the program's process and edits no file. It lists what each change "
		 "saves, where it goes, and what it costs, the largest saving first. With --gpu, "
		 "it also finds changes with which the program fits that card, tried together. It "
		 "advises a change only if the program still makes as many steps and updates the "
		 "same weights. It marks changes that alter numerical results, and gives the "
		 "reason for those that could not be tried. Exits with 1 if no change makes the "
		 "program fit the card of --gpu or --capacity. For a trace alone, it estimates "
		 "savings: it edits the lifetimes of the blocks and replays them.",
	.examples = "  cufrag advise -- python train.py\n"
		    "  cufrag advise --gpu l4 -- python train.py --batch 16\n"
		    "  cufrag advise run.pickle\n"
		    "  cufrag advise --changes checkpoint,accumulate --json - -- python train.py\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_CARDS | FRAG_CLI_PAGE,
	.answer = &frag_advise_shape,
	FRAG_CMD_OPTIONS(struct options, options, frag_pretend_rows, frag_pretend_implied),
	.run = run,
};
