/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag sweep: many traces under many policies, on every core, rank or node there is. */
#include <stdio.h>
#include <string.h>

#include "cli/common.h"
#include "lib/grow.h"
#include "fleet/sweep.h"

/* ---- values of options ----------------------------------------------------------- */

/* Calls add(field, entry) for each entry of a list. */
static int each(void *field, const char *text,
		int (*add)(void *field, const char *entry, struct frag_err *err),
		struct frag_err *err)
{
	FRAG_AUTO_FREE char *list = frag_host_strdup(text);
	char *rest = list;

	FRAG_CHECK_ALLOC(list, "list", err);
	while (rest && *rest) {
		const char *entry = strsep(&rest, ",");

		if (!*entry)
			return FRAG_USAGE(err, "empty entry in the list '%.100s'", text);
		FRAG_TRY(add(field, entry, err));
	}
	return 0;
}

static int add_limit(void *sweep, const char *entry, struct frag_err *err)
{
	struct frag_sweep *s = sweep;
	struct frag_limit limit = { 0 };

	FRAG_TRY(FRAG_GROW(s->limits, s->limits_count, s->limits_cap, "limits", err));
	if (strcmp(entry, "none") != 0)
		FRAG_TRY(frag_limit_parse(entry, &limit, err));
	limit.text = frag_host_strdup(entry);
	FRAG_CHECK_ALLOC(limit.text, "limits", err);
	s->limits[s->limits_count++] = limit;
	return 0;
}

static int set_limits(void *sweep, const char *text, struct frag_err *err)
{
	return each(sweep, text, add_limit, err);
}

static int add_card(void *sweep, const char *entry, struct frag_err *err)
{
	struct frag_sweep *s = sweep;
	const struct frag_gpu *card;

	FRAG_TRY(frag_gpu_named(entry, &card, err));
	FRAG_TRY(FRAG_GROW(s->cards, s->cards_count, s->cards_cap, "cards", err));
	s->cards[s->cards_count++] = card;
	return 0;
}

static int set_cards(void *sweep, const char *text, struct frag_err *err)
{
	return each(sweep, text, add_card, err);
}

/* ---- the command ----------------------------------------------------------------- */

#define AT(field) FRAG_ARG_AT(struct frag_sweep, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', AT(output), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "the results, SQLite (needed; a shard puts its number into the names of its "
		  "files)" },
	{ FRAG_ARG_TEXT, "list", AT(list), .value = "FILE", .rare = true,
	  .help = "a file with a trace, folder or pattern in each line; - = standard input" },
	FRAG_CLI_POLICIES("policies", struct frag_sweep, policies,
			  "policies separated by ';', as 'pytorch:max_split_size_mb:128; vmm' "
			  "(default: recorded;caching;expandable;vmm)"),
	{ FRAG_ARG_OWN, "limit", .set = set_limits, .value = "LIST", .rare = true,
	  .help = "each under these limits: sizes, fractions of the card, none" },
	{ FRAG_ARG_OWN, "gpu", .set = set_cards, .value = "LIST",
	  .help = "each on these cards (default: h200; cufrag list gpus)" },
	{ FRAG_ARG_FLAG, "fit", AT(fit),
	  .help = "also the smallest card of each result, by bisection (about 60 times the work)" },
	{ FRAG_ARG_FLAG, "fresh", AT(fresh), .rare = true,
	  .help = "begin anew, whatever an interrupted sweep into this file has done" },
	{ FRAG_ARG_FLAG, "merge", AT(merge), .rare = true,
	  .help = "the operands are results of shards: make one file of them" },
	{ FRAG_ARG_OWN, "shard", AT(shard), .set = frag_sweep_set_shard, .value = "I/N",
	  .rare = true,
	  .help = "only every N-th trace, from the I-th on; /N: I from SLURM_ARRAY_TASK_ID or "
		  "JOB_COMPLETION_INDEX; an array job of Slurm is recognised by itself" },
	{ FRAG_ARG_BYTES, "memory", AT(memory_bytes), .value = "SIZE", .min = 64ull << 20,
	  .max = 1ull << 50, .rare = true,
	  .help = "host memory of each worker (default: its share of the machine)" },
	{ 0 },
};

static void release(void *values)
{
	frag_sweep_release(values);
}

/* Workers show no progress. */
static void tell(void *cli, enum frag_recording_stage stage, const char *path,
		 const struct frag_trace *trace)
{
	(void)path;
	if (stage == FRAG_RECORDING_SETTLED)
		frag_cli_settle_tell(cli, trace);
}

/* One card or limit is that of the command line: recordings are opened with it. */
static int take_one(struct frag_sweep *s, struct frag_cli *cli, struct frag_err *err)
{
	if (s->limits_count == 1)
		cli->target.limit = s->limits[0];
	if (s->cards_count != 1)
		return 0;
	cli->gpu_ = s->cards[0]->name;
	s->cards_count = 0;
	return frag_cli_describe_card(cli, err);
}

static int prepare(struct frag_sweep *s, struct frag_cli *cli, struct frag_err *err)
{
	FRAG_TRY(take_one(s, cli, err));
	s->target = cli->target;
	s->target.tell = tell;
	s->target.tell_ctx = cli;
	s->threads = cli->threads;
	s->operands = cli->operands;
	s->operands_count = cli->operands_count;
	s->csv = cli->csv;
	if (!s->output || !strcmp(s->output, "-"))
		return FRAG_USAGE(err, "no results file given: -o FILE");
	FRAG_TRY(frag_policy_texts_default(&s->policies, FRAG_SWEEP_POLICIES, err));
	FRAG_TRY(frag_policy_texts_check(&s->policies, NULL, err));
	return s->merge ? 0 : frag_sweep_find_shard(s, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct frag_sweep *s = values;
	const struct frag_sweep_failure *failed;
	struct frag_rows failures = { 0 };

	FRAG_TRY(prepare(s, cli, err));
	FRAG_TRY(frag_sweep_run(s, &a, &failures, err));
	if (s->is_served)
		return FRAG_EXIT_DONE;
	failed = failures.rows;
	for (size_t i = 0; i < failures.count; i++)
		frag_cli_note(cli, "'%.300s' failed: %s", failed[i].path, failed[i].error);
	a.quiet = s->csv && !strcmp(s->csv, "-");
	cli->csv = NULL; /* is written: the results, not the answer */
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return failures.count || *s->missing ? FRAG_EXIT_INPUT : FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_sweep = {
	.name = "sweep",
	.summary = "many traces under many policies into one file of results",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 6,
	.operands = "[TRACE...]",
	.operands_max = 1u << 20,
	.about = "Replays traces (files, folders without results of sweeps, patterns) under "
		 "policies, limits and cards, and writes all results into one SQLite "
		 "file, whose tables docs/fleet.md describes; `cufrag list metrics` names the "
		 "columns. Each trace runs in its own process; a broken one does not stop the "
		 "sweep. It runs on all cores; under mpirun on all ranks; in array jobs (Slurm, "
		 "Kubernetes) as shards, which --merge joins. The same command goes on with an "
		 "interrupted sweep. The same traces give the same bytes on any number of workers.",
	.examples = "  cufrag sweep recordings/ -o results.sqlite --csv results.csv\n"
		    "  mpirun -n 64 cufrag sweep --list traces.txt -o results.sqlite\n"
		    "  cufrag sweep recordings/ --shard 3/16 -o results.sqlite\n"
		    "  cufrag sweep --merge results.*-of-16.sqlite -o results.sqlite\n",
	.shared = FRAG_CLI_MEMORY | FRAG_CLI_TORCH | FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_sweep_shape,
	FRAG_CMD_OPTIONS(struct frag_sweep, options),
	.run = run,
	.release = release,
};
