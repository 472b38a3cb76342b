/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag fit: the smallest card for each policy, and which known cards do. */
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>
#include <frag/replay.h>

#include "explain/diagnose/diagnose.h"
#include "cli/program.h"
#include "plan/fit/fit_cards.h"

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	struct frag_policy_texts policies;
};

static int fit(struct frag_cli *cli, struct options *o, struct frag_err *err)
{
	FRAG_AUTO(frag_fit_cards_release)
	struct frag_fit_cards f = { .target = &cli->target, .headroom = cli->headroom };
	FRAG_AUTO(frag_fit_classes_release)
	struct frag_fit_classes classes = { .program = frag_cli_program(cli, &o->pretend),
					    .policies = &o->policies,
					    .headroom = cli->headroom,
					    .threads = cli->threads,
					    .first = &f };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct frag_fit_cards *best = &f;

	FRAG_TRY(frag_fit_policies(&o->policies, err));
	FRAG_TRY(frag_catalog_init(&f.catalog, cli->cards, cli->vendor, err));
	FRAG_TRY(frag_recordings_open(&f.units, cli->operands, cli->operands_count, &cli->target,
				      FRAG_OPEN_HISTORY, err));
	FRAG_TRY(frag_fit_cards_search(&f, &o->policies, cli->threads, err));
	if (cli->program)
		FRAG_TRY(frag_fit_classes_record(&classes, &best, err));
	a.estimated = cli->estimated; /* its title says so */
	for (size_t i = 0; i < f.units.units_count && !a.caveat; i++)
		FRAG_TRY(frag_leak_caveat(&f.units.units[i].events, &a, err));
	FRAG_TRY(frag_fit_cards_answer(best, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	if (f.interrupted)
		frag_cli_note(cli, "interrupted: %zu of %zu policies are missing", f.interrupted,
			      f.rows_count);
	else if (best->partial)
		frag_cli_note(cli, "interrupted: not recorded for all cards");
	if (f.interrupted || best->partial)
		return frag_code_exit(FRAG_EINTR);
	return a.need_unknown || (frag_fit_card(best, SIZE_MAX, true) != SIZE_MAX &&
				  !frag_fit_unreproduced(best, &a))
		       ? FRAG_EXIT_DONE
		       : FRAG_EXIT_CONDITION;
}

/* ---- --vary ---------------------------------------------------------------------- */

/* Records the program with the number n: does it complete? */
static int record(const struct frag_cli *cli, const struct options *o, struct frag_vary *v,
		  uint64_t n, bool *completes, struct frag_err *err)
{
	const struct frag_program program = frag_cli_program(cli, &o->pretend);
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	struct frag_vary_probe *p = &v->probes[v->probes_count];
	uint64_t refused;
	int status;

	FRAG_ASSERT(v->probes_count < FRAG_VARY_PROBES);
	FRAG_TRY(frag_program_vary(&program, v->name, n, &trace, &status, &refused, err));
	v->probes_count++;
	*completes = !refused && !status;
	*p = (struct frag_vary_probe){ n, *completes, 0, status };
	for (uint32_t d = 0; d < trace->devs_count; d++)
		p->peak_reserved_bytes =
			FRAG_MAX(p->peak_reserved_bytes, frag_recorded_peak(&trace->devs[d]));
	frag_cli_note(cli, "%s = %llu %s, peak reserved %s", v->name, (unsigned long long)n,
		      *completes ? "completes" : "runs out of memory",
		      FRAG_BYTES(p->peak_reserved_bytes));
	return 0;
}

/* Bisection: what completes with a number is assumed to complete with every smaller one. */
static int search(const struct frag_cli *cli, const struct options *o, struct frag_vary *v,
		  struct frag_err *err)
{
	uint64_t high = v->last; /* above it nothing completes */

	v->best = v->first;
	FRAG_TRY(record(cli, o, v, v->best, &v->any, err));
	while (v->any && v->best < high) {
		/* the end first: often all of the range fits */
		uint64_t mid = high == v->last && v->best == v->first
				       ? high
				       : v->best + (high - v->best + 1) / 2;
		bool completes;

		FRAG_TRY(record(cli, o, v, mid, &completes, err));
		if (completes)
			v->best = mid;
		else
			high = mid - 1;
	}
	return 0;
}

/* "1..64" */
static bool parse_range(const char *text, struct frag_vary *v)
{
	char *end = NULL;

	v->first = strtoull(text, &end, 10);
	if (end == text || strncmp(end, "..", 2) != 0)
		return false;
	text = end + 2;
	v->last = strtoull(text, &end, 10);
	return end != text && !*end && v->first <= v->last && v->last < UINT32_MAX;
}

static int vary(const struct frag_cli *cli, const struct options *o, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	char name[FRAG_VARY_NAME], card[40];
	struct frag_vary v = { .name = name };
	const char *range = frag_vary_name(o->pretend.vary, name);

	if (!range || !parse_range(range, &v))
		return FRAG_USAGE(
			err, "invalid range '%.60s': expected {NAME}=FIRST..LAST, as {batch}=1..64",
			o->pretend.vary);
	if (!cli->program)
		return FRAG_USAGE(err, "--vary records a program: give it behind --");
	FRAG_TRY(search(cli, o, &v, err));
	FRAG_TRY(frag_vary_answer(&v, frag_cli_card(cli, card, sizeof(card)), &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return v.any ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

/* ---- the command ----------------------------------------------------------------- */

static const struct frag_arg options[] = {
	FRAG_CLI_POLICIES("policies", struct options, policies,
			  "policies, separated by ';' (default: recorded, pytorch, pytorch with "
			  "expandable_segments:True, max_split_size_mb:128, "
			  "roundup_power2_divisions:8)"),
	FRAG_CLI_POLICY(struct options, policies),
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_program_operand_release) struct frag_program_operand recorded = { 0 };

	o->pretend.reuse = !o->pretend.fresh;
	if (o->pretend.vary)
		return vary(cli, o, err);
	FRAG_TRY(frag_program_operand(cli, &o->pretend, &recorded, err));
	return fit(cli, o, err);
}

const struct frag_cmd frag_cmd_fit = {
	.name = "fit",
	.summary = "the smallest card for each policy, and which known cards do",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 1,
	.operands = "TRACE...",
	.operands_max = 4096,
	.program = "[PROGRAM]",
	.about = "For each policy, finds the smallest card on which the trace completes, to 2 MiB, "
		 "by replays on simulated cards. Sizes are total memory as the runtime reports it; "
		 "the CUDA context (--context, or that of --gpu) is part of it. A known card fits "
		 "if it has room for the peak, so that nothing is given back or retried for want "
		 "of memory, and still leaves --margin free; if the trace completes with less, the "
		 "card is tight. Recommends the setting that reserves least and spends under 1 % "
		 "of the recorded time in the driver. A caching policy may fail on a larger card "
		 "than one on which it completes; the output says where that happened. With "
		 "several traces, ranks or devices, the one that needs most decides. Exits with 1 "
		 "if no card fits, with 6 if that is unknown, because the recording ended out of "
		 "memory. On a card of another compute capability a program chooses other kernels, "
		 "which may need other memory: it is recorded for each capability "
		 "among the cards, and on the advised card.",
	.examples = "  cufrag fit run.pickle\n"
		    "  cufrag fit -- python train.py\n"
		    "  cufrag fit --gpu l40s --vary '{batch}=1..64' -- python train.py "
		    "--batch {batch}\n"
		    "  cufrag fit traces/gnn.default.cft --margin 1G\n"
		    "  cufrag fit run.pickle --cards ours.csv --out page\n"
		    "  cufrag fit rank*.pickle --policies 'recorded; tlsf' --json fit.json\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_CARDS | FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_fit_shape,
	FRAG_CMD_OPTIONS(struct options, options, frag_pretend_fit_rows, frag_pretend_rows,
			 frag_pretend_implied),
	.run = run,
};
