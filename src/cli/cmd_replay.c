/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag replay: one trace through one policy, with all there is to know about it. */
#include "replays.h"

static int set_policy(void *texts, const char *text, struct frag_err *err)
{
	const struct frag_policy_texts *policies = texts;

	if (policies->count)
		return frag_fail(err, FRAG_EUSAGE,
				 "replay takes one policy; compare takes several");
	return frag_policy_texts_add(texts, text, err);
}

static const char *const pace_words[] = { "max", "recorded", NULL };

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "policy", FRAG_ARG_AT(struct frag_session, policies), .set = set_policy,
	  .value = "POLICY",
	  .help = "the policy, name or name:key=value,… (default: recorded, the settings of the "
		  "recording)" },
	{ FRAG_ARG_FLAG, "counters", FRAG_ARG_AT(struct frag_session, report.counters),
	  .rare = true,
	  .help = "print everything: latency by class, every driver call, the policy's own "
		  "statistics" },
	{ FRAG_ARG_WORD, "pace", FRAG_ARG_AT(struct frag_session, run.paced), .words = pace_words,
	  .def = "max", .rare = true,
	  .help = "as fast as possible, or every event at its recorded time" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *session, struct frag_err *err)
{
	struct frag_session *s = session;

	FRAG_TRY(frag_cli_replays_begin(s, cli, err));
	FRAG_TRY(frag_policy_texts_default(&s->policies, "recorded", err));
	return frag_cli_replays_run(s, cli, frag_report_replay, err);
}

const struct frag_cmd frag_cmd_replay = {
	.name = "replay",
	.summary = "one policy on one trace, in full detail",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 4,
	.operands = "TRACE...",
	.about = "Replays a trace through one allocation policy and prints the metrics, where the "
		 "bytes are at the peak, and what memory looked like if it ran out; with "
		 "--counters also latency by class, driver calls and the policy's own statistics. "
		 "Several traces, as the ranks of a job write them, one after the other.",
	.examples =
		"  cufrag replay traces/gnn.default.cft --policy buddy\n"
		"  cufrag replay run.pickle --policy pytorch:expandable_segments:True --gpu l4\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_DEVICE | FRAG_CLI_MANAGED |
		  FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_report_shape,
	FRAG_CMD_OPTIONS(struct frag_session, options, frag_cli_replay_args),
	.init = frag_cli_replays_init,
	.run = run,
	.release = frag_cli_replays_release,
};
