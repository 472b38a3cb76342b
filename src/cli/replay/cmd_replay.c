/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag replay: one trace through one policy, with all there is to know about it. */
#include "cli/session/session.h"

static int option(void *ctx, int key, const char *arg, struct frag_err *err)
{
	struct frag_session *s = ctx;

	if (key == FRAG_KEY_POLICY && s->policies.count)
		return frag_fail(err, FRAG_EUSAGE,
				 "replay takes one policy; compare takes several");
	return frag_session_option(s, key, arg, err);
}

static const struct argp_option options[] = {
	{ "policy", FRAG_KEY_POLICY, "POLICY", 0,
	  "the policy, name or name:key=value,… (default: recorded, the settings of the recording)",
	  0 },
	FRAG_SESSION_OPTIONS,
	{ 0 },
};

extern const struct frag_cmd frag_cmd_replay;

static int replay(struct frag_session *s, struct frag_err *err)
{
	if (!s->policies.count)
		FRAG_TRY(frag_policy_texts_add(&s->policies, "recorded", err));
	FRAG_TRY(frag_session_run(s, err));
	return frag_session_print(s, true, err);
}

static int run(int argc, char **argv)
{
	struct frag_session s;
	struct frag_cli cli = { .cmd = &frag_cmd_replay };
	struct frag_err err;
	int status;

	if (frag_session_init(&s, argc, argv, &err))
		return frag_cli_fail(&cli, &err);
	if (frag_cli_parse(&cli, &frag_cmd_replay, &s, argc, argv)) {
		status = cli.exit_status;
	} else {
		s.cli = &cli;
		status = replay(&s, &err) ? frag_cli_fail(&cli, &err) : frag_session_status(&s);
	}
	frag_session_release(&s);
	return status;
}

const struct frag_cmd frag_cmd_replay = {
	.name = "replay",
	.summary = "one policy on one trace, in full detail",
	.group = FRAG_GROUP_SIM,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 10000,
	.about =
		"Replays a trace through one allocation policy and prints every metric, where the "
		"bytes are at the peak, latency by class, driver calls, the policy's own counters, "
		"and what memory looked like if it ran out. Several traces, as the ranks of a job "
		"write them, one after the other.",
	.examples =
		"  cufrag replay traces/gnn.default.cft --policy buddy\n"
		"  cufrag replay run.pickle --policy pytorch:expandable_segments:True --gpu l4\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_DEVICE | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_OUT |
		  FRAG_CLI_SEED | FRAG_CLI_THREADS,
	.options = options,
	.option = option,
	.run = run,
};
