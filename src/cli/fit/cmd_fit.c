/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag fit: the smallest card for each policy, and which known cards do. With several
 * traces, ranks or devices the worst one decides.
 */
#include <string.h>

#include "fit_print.h"
#include "fit_vary.h"
#include "cli/recordings.h"
#include "cli/launching.h"
#include "cli/policy_texts.h"

static const char *const defaults[] = {
	"recorded",
	"pytorch",
	"pytorch:expandable_segments:True",
	"pytorch:max_split_size_mb:128",
	"pytorch:roundup_power2_divisions:8",
};

struct options {
	struct frag_pretend pretend; /* first: its rows count from here */
	struct frag_policy_texts policies;
	const char *vary;
};

/* ---- rows: one policy on all traces ---------------------------------------------- */

/* Does row b ask for the same replays as row a? */
static bool same_row(const struct frag_fit_row *a, const struct frag_fit_row *b, size_t units)
{
	for (size_t i = 0; i < units; i++)
		if (strcmp(frag_policy_spec_echo(a->specs[i]), frag_policy_spec_echo(b->specs[i])))
			return false;
	return true;
}

static void row_release(struct frag_fit_row *row, size_t units)
{
	for (size_t i = 0; row->specs && i < units; i++)
		frag_policy_spec_destroy(row->specs[i]);
	frag_host_free(row->specs);
	*row = (struct frag_fit_row){ 0 };
}

/* A row unless it repeats one, or a trace does not say what it was recorded with. */
static int add_row(struct frag_fit_page *p, const char *text, struct frag_err *err)
{
	struct frag_fit_row *row = &p->rows[p->rows_count];
	size_t units = p->units.units_count;
	bool known = true;
	int rc = 0;

	row->text = text;
	row->specs = frag_host_calloc(units, sizeof(struct frag_policy_spec *));
	FRAG_CHECK_ALLOC(row->specs, "policies", err);
	for (size_t i = 0; !rc && known && i < units; i++) {
		rc = frag_recording_spec(p->units.units[i].trace, text, &row->specs[i], err);
		known = row->specs[i] != NULL;
	}
	for (size_t i = 0; !rc && known && i < p->rows_count; i++)
		known = !same_row(&p->rows[i], row, units);
	if (rc || !known)
		row_release(row, units);
	else
		p->rows_count++;
	return rc;
}

static int make_rows(struct frag_fit_page *p, const struct options *o, struct frag_err *err)
{
	FRAG_TRY_CALLOC(p->rows, o->policies.count, "policies", err);
	for (size_t i = 0; i < o->policies.count; i++)
		FRAG_TRY(add_row(p, o->policies.text[i], err));
	if (!p->rows_count)
		return frag_fail(err, FRAG_EUSAGE,
				 "no policy to try: no trace says what it was "
				 "recorded with");
	return 0;
}

static void page_release(struct frag_fit_page *p)
{
	for (size_t i = 0; i < p->rows_count; i++)
		row_release(&p->rows[i], p->units.units_count);
	FRAG_FREE(p->rows, p->tasks);
	frag_recordings_release(&p->units);
	frag_catalog_release(&p->catalog);
}

/* ---- the search ------------------------------------------------------------------ */

/* The worst unit decides. */
static void sum_row(struct frag_fit_page *p, struct frag_fit_row *row)
{
	row->complete = row->possible = true;
	row->gpus = ~0ull;
	for (size_t i = 0; i < p->units.units_count; i++) {
		const struct frag_fit *f = &row->tasks[i].fit;
		bool possible = row->possible;

		row->complete &= f->complete;
		row->possible &= f->possible;
		row->gpus &= row->tasks[i].gpus;
		row->probes += f->probes_count;
		row->costly |= frag_fit_costly(&p->units.units[i], f);
		/* one that never completes is worse than any other */
		if (possible && (!f->possible || f->min_capacity_bytes > row->min_bytes)) {
			row->min_bytes = f->min_capacity_bytes;
			row->worst = i;
		}
		row->safe_bytes = FRAG_MAX(row->safe_bytes, f->safe_capacity_bytes);
		row->ample_bytes = FRAG_MAX(row->ample_bytes, f->ample_capacity_bytes);
	}
	if (!row->complete || !row->possible)
		row->gpus = 0;
}

/* The first error in the order of the tasks. */
static int first_error(const struct frag_fit_task *tasks, size_t count, struct frag_err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (tasks[i].rc) {
			*err = tasks[i].err;
			return frag_err_prefix(err, "policy '%s'",
					       frag_policy_spec_text(tasks[i].spec));
		}
	}
	return 0;
}

static int search(struct frag_fit_page *p, const struct frag_cli *cli, struct frag_err *err)
{
	size_t units = p->units.units_count, count = p->rows_count * units;
	struct frag_plan_env env;
	struct frag_progress progress;
	char label[128];
	int rc;

	FRAG_TRY_CALLOC(p->tasks, count, "fit", err);
	for (size_t r = 0; r < p->rows_count; r++) {
		p->rows[r].tasks = &p->tasks[r * units];
		for (size_t i = 0; i < units; i++)
			p->rows[r].tasks[i] =
				(struct frag_fit_task){ .spec = p->rows[r].specs[i],
							.dev = p->units.units[i].dev };
	}
	frag_plan_env_init(&env, &cli->target, cli->threads);
	snprintf(label, sizeof(label), "fitting %.80s", p->units.units[0].label);
	frag_progress_begin(&progress, label);
	env.watch = progress.watch;
	rc = frag_fit_run(&env, 0, p->catalog.cards, p->catalog.count, p->tasks, count, err);
	frag_progress_end(&progress);
	if (!rc)
		rc = first_error(p->tasks, count, err);
	for (size_t r = 0; !rc && r < p->rows_count; r++)
		sum_row(p, &p->rows[r]);
	return rc;
}

static int fit(struct frag_fit_page *p, struct options *o, struct frag_cli *cli,
	       struct frag_err *err)
{
	bool none = !o->policies.count;
	uint32_t flags;

	for (size_t i = 0; none && i < FRAG_ARRAY_LEN(defaults); i++)
		FRAG_TRY(frag_policy_texts_add(&o->policies, defaults[i], err));
	FRAG_TRY(frag_policy_texts_check(&o->policies, &flags, err));
	p->cli = cli;
	FRAG_TRY(frag_catalog_init(&p->catalog, cli->cards, cli->vendor, err));
	FRAG_TRY(frag_recordings_open(&p->units, cli->operands, cli->operands_count, &cli->target,
				      0, err));
	for (size_t i = 0; i < p->units.units_count; i++)
		cli->headroom.outside_bytes =
			FRAG_MAX(cli->headroom.outside_bytes,
				 frag_recorded_outside_bytes(p->units.units[i].dev));
	FRAG_TRY(make_rows(p, o, err));
	FRAG_TRY(search(p, cli, err));
	return frag_fit_print(p, err);
}

/* ---- the command ----------------------------------------------------------------- */

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "policies", FRAG_ARG_AT(struct options, policies),
	  .set = frag_policy_texts_set_list, .value = "POLICIES",
	  .help = "policies, separated by ';' (default: recorded, pytorch, pytorch with "
		  "expandable_segments:True, max_split_size_mb:128, roundup_power2_divisions:8)" },
	{ FRAG_ARG_OWN, "policy", FRAG_ARG_AT(struct options, policies),
	  .set = frag_policy_texts_set_one, .value = "POLICY",
	  .help = "one policy; may be repeated; recorded = the settings of the recording" },
	{ FRAG_ARG_TEXT, "vary", FRAG_ARG_AT(struct options, vary), .value = "{NAME}=A..B",
	  .help = "with --no-gpu: the greatest whole number in place of {NAME} with which the "
		  "program "
		  "completes on --gpu, found by recording it" },
	{ 0 },
};

static void release(void *values)
{
	frag_policy_texts_release(&((struct options *)values)->policies);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_program_operand_release) struct frag_program_operand recorded = { 0 };
	FRAG_AUTO(page_release) struct frag_fit_page page = { 0 };

	if (o->vary)
		return frag_fit_vary(cli, &o->pretend, o->vary, err);
	FRAG_TRY(frag_program_operand(cli, &o->pretend, &recorded, err));
	FRAG_TRY(fit(&page, o, cli, err));
	return frag_fit_status(&page);
}

const struct frag_cmd frag_cmd_fit = {
	.name = "fit",
	.summary = "the smallest card for each policy, and which known cards do",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 1,
	.operands = "TRACE...",
	.operands_min = 0,
	.operands_max = 4096,
	.program = "[PROGRAM]",
	.about =
		"Finds for each policy the smallest capacity of a card on which the trace "
		"completes, to 2 MiB, by replays on simulated cards. The capacity is the total "
		"that the runtime reports: the CUDA context (--context, or that of --gpu) is in "
		"it. A card fits if it has room for the peak, so that nothing is given back or "
		"retried for want of memory, and leaves the --margin free; one that completes with "
		"less is tight. Of the settings that fit and spend less than 1 % of the recorded "
		"time in the driver the one that "
		"reserves least is named. Caching policies may fail above a capacity at which "
		"they complete; where that was seen, it is said. Several traces, ranks or "
		"devices: the worst decides. Exits with 1 if no card fits. With --no-gpu a program "
		"is recorded first (cufrag record).",
	.examples = "  cufrag fit --no-gpu -- python train.py\n"
		    "  cufrag fit --no-gpu --gpu l40s --vary '{batch}=1..64' -- python train.py "
		    "--batch {batch}\n"
		    "  cufrag fit traces/gnn.default.cft --margin 1G\n"
		    "  cufrag fit run.pickle --cards ours.csv\n"
		    "  cufrag fit rank*.pickle --policies 'recorded; tlsf' --json fit.json\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_CARDS | FRAG_CLI_JSON | FRAG_CLI_CSV |
		  FRAG_CLI_SEED | FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options, frag_pretend_rows),
	.options_size = sizeof(struct options),
	.run = run,
	.release = release,
};
