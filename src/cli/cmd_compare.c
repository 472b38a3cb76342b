/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag compare: traces through several policies; table, charts, report. */
#include "shared.h"

#define DEFAULTS \
	"recorded;pytorch;pytorch:expandable_segments:True;pytorch:max_split_size_mb:128;native;" \
	"buddy;vmm;planned"

static const char *const optimum_words[] = { [FRAG_OPTIMUM_AUTO] = "auto",
					     [FRAG_OPTIMUM_OFF] = "off",
					     [FRAG_OPTIMUM_BOUND] = "bound",
					     [FRAG_OPTIMUM_PLACE] = "place",
					     NULL };

static const struct frag_arg options[] = {
	FRAG_CLI_POLICIES("policies", struct frag_session, policies,
			  "policies, separated by ';' (default: recorded, pytorch, "
			  "pytorch:expandable_segments:True, pytorch:max_split_size_mb:128, "
			  "native, buddy, vmm, planned; for logs of another library its allocators "
			  "in place of pytorch); all = every one listed"),
	FRAG_CLI_POLICY(struct frag_session, policies),
	{ FRAG_ARG_WORD, "optimum", FRAG_ARG_AT(struct frag_session, optimum),
	  .words = optimum_words, .def = "auto",
	  .help = "how low memory could go: bound = a lower bound, place = also an offline "
		  "placement, off = leave it out; auto: place if that is quick, else bound" },
	{ FRAG_ARG_FLAG, "pdf", FRAG_ARG_AT(struct frag_session, pdf), .rare = true,
	  .help = "with --out: all charts in one file, charts.pdf" },
	{ FRAG_ARG_TEXT, "title", FRAG_ARG_AT(struct frag_session, title), .value = "TEXT",
	  .rare = true,
	  .help = "with --out: title of the report (default: the name of the trace)" },
	{ FRAG_ARG_TEXT, "author", FRAG_ARG_AT(struct frag_session, author), .value = "TEXT",
	  .rare = true, .help = "with --out: who made the report" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *session, struct frag_err *err)
{
	struct frag_session *s = session;
	uint32_t flags;

	FRAG_TRY(frag_cli_replays_begin(s, cli, err));
	FRAG_TRY(frag_policy_texts_check(&s->policies, &flags, err));
	s->planned_asked_for = (flags & FRAG_POLICY_PLANNED) && !s->policies.all;
	FRAG_TRY(frag_policy_texts_default(&s->policies, DEFAULTS, err));
	s->plan_ahead = true;
	s->place_too = s->optimum == FRAG_OPTIMUM_AUTO || s->optimum == FRAG_OPTIMUM_PLACE;
	FRAG_TRY(frag_cli_replays_run(s, cli, frag_report_compare, err));
	for (size_t i = 0; i < s->sections_count && !*cli->need_unknown; i++)
		if (s->sections[i].not_reproduced_bytes)
			return FRAG_EXIT_CONDITION;
	return FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_compare = {
	.name = "compare",
	.summary = "which policy needs the least memory? table, charts and report",
	.group = FRAG_GROUP_CHOOSE,
	.operands = "TRACE...",
	.about = "Replays traces through several allocation policies and says what each one "
		 "reserves, where the bytes are lost, what the driver calls cost, and which policy "
		 "needs least. Where a replay of the recorded settings does not reserve what was "
		 "recorded, no saving is told, and the status is 1, as in verify. With --out, "
		 "writes charts and a self-contained report.html, too.",
	.examples = "  cufrag compare traces/gnn.default.cft --out results/gnn\n"
		    "  cufrag compare rank*.pickle --out results/ranks --pdf\n"
		    "  cufrag compare run.pickle --gpu a100-40 --policies 'recorded; buddy; tlsf'\n"
		    "  cufrag compare run.pickle --policies buddy "
		    "--policies pytorch:max_split_size_mb:256\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_CARDS | FRAG_CLI_DEVICE |
		  FRAG_CLI_MANAGED | FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_report_shape,
	FRAG_CMD_OPTIONS(struct frag_session, options, frag_cli_replay_args),
	.init = frag_session_init,
	.run = run,
	.release = frag_session_release,
};
