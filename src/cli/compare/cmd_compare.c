/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag compare: traces through several policies; table, charts, report. */
#include "cli/session/session_optimum.h"

#include <string.h>

static const char *const defaults[] = {
	"recorded",
	"pytorch",
	"pytorch:expandable_segments:True",
	"pytorch:max_split_size_mb:128",
	"native",
	"buddy",
	"planned",
};

enum { KEY_OPTIMUM = FRAG_KEY_POLICIES + 1, KEY_PDF };

static int option(void *ctx, int key, const char *arg, struct frag_err *err)
{
	struct frag_session *s = ctx;

	switch (key) {
	case KEY_OPTIMUM:
		return frag_session_optimum_option(s, arg, err);
	case KEY_PDF:
		s->formats |= FRAG_FORMAT_ONE_PDF;
		return 0;
	}
	return frag_session_option(s, key, arg, err);
}

static const struct argp_option options[] = {
	{ "policies", FRAG_KEY_POLICIES, "LIST", 0,
	  "policies, separated by ';' (default: recorded, pytorch, "
	  "pytorch:expandable_segments:True, "
	  "pytorch:max_split_size_mb:128, native, buddy, planned); all = every one listed",
	  0 },
	{ "policy", FRAG_KEY_POLICY, "POLICY", 0,
	  "one policy; may be repeated; recorded = the settings of the recording", 0 },
	FRAG_SESSION_OPTIONS,
	{ "optimum", KEY_OPTIMUM, "WHAT", 0,
	  "what to show of the best possible: off, the lower bound, or place = also an offline "
	  "placement (default: place where that is quick, else bound)",
	  0 },
	{ "pdf", KEY_PDF, NULL, 0, "with --out: all charts in one file, charts.pdf", 0 },
	{ 0 },
};

extern const struct frag_cmd frag_cmd_compare;

/* Was `planned` named, by itself or with options but no plan? */
static bool names_planned(const struct frag_policy_texts *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strncmp(p->text[i], "planned", strlen("planned")))
			return true;
	return false;
}

static int compare(struct frag_session *s, struct frag_err *err)
{
	bool none = !s->policies.count;

	s->planned_asked_for = names_planned(&s->policies) && !s->policies.all;
	for (size_t i = 0; none && i < FRAG_ARRAY_LEN(defaults); i++)
		FRAG_TRY(frag_policy_texts_add(&s->policies, defaults[i], err));
	s->plan_ahead = true;
	s->place_too = s->optimum == FRAG_OPTIMUM_AUTO || s->optimum == FRAG_OPTIMUM_PLACE;
	FRAG_TRY(frag_session_run(s, err));
	FRAG_TRY(frag_session_print(s, false, err));
	return frag_session_interrupted(s, err);
}

static int run(int argc, char **argv)
{
	struct frag_session s;
	struct frag_cli cli = { .cmd = &frag_cmd_compare };
	struct frag_err err;
	int status;

	if (frag_session_init(&s, argc, argv, &err))
		return frag_cli_fail(&cli, &err);
	if (frag_cli_parse(&cli, &frag_cmd_compare, &s, argc, argv)) {
		status = cli.exit_status;
	} else {
		s.cli = &cli;
		status = compare(&s, &err) ? frag_cli_fail(&cli, &err) : frag_session_status(&s);
	}
	frag_session_release(&s);
	return status;
}

const struct frag_cmd frag_cmd_compare = {
	.name = "compare",
	.summary = "which policy needs the least memory? table, charts and report",
	.group = FRAG_GROUP_SIM,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 10000,
	.about = "Replays traces through several allocation policies and says what each one "
		 "reserves, "
		 "where the bytes are lost, what the driver calls cost, and which policy needs "
		 "least. With --out, writes charts and a self-contained report.html, too.",
	.examples = "  cufrag compare traces/gnn.default.cft --out results/gnn\n"
		    "  cufrag compare rank*.pickle --out results/ranks --pdf\n"
		    "  cufrag compare run.pickle --gpu a100-40 --policies 'recorded; buddy; tlsf'\n"
		    "  cufrag compare run.pickle --policy pytorch --policy "
		    "pytorch:max_split_size_mb:256,expandable_segments:True\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_DEVICE | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_OUT |
		  FRAG_CLI_SEED | FRAG_CLI_THREADS,
	.options = options,
	.option = option,
	.run = run,
};
