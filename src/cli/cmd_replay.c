/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag replay: one trace through one policy, with all there is to know about it. */
#include "shared.h"

#include <frag/base.h>

/* ---- what compare has, too ------------------------------------------------------- */

void frag_cli_host(const struct frag_cli *cli, struct frag_session_host *out)
{
	static const char *const names[] = { [FRAG_CLI_DEVICE_SIM] = "sim",
					     [FRAG_CLI_DEVICE_CUDA] = "cuda",
					     [FRAG_CLI_DEVICE_NULL] = "null" };

	*out = (struct frag_session_host){ .device = names[cli->device],
					   .simulated = cli->device == FRAG_CLI_DEVICE_SIM,
					   .real = cli->device == FRAG_CLI_DEVICE_CUDA,
					   .own_costs = cli->cost_ != NULL,
					   .threads = cli->threads,
					   .open = frag_cli_open_nth,
					   .note = frag_cli_note_text,
					   .ctx = cli };
}

int frag_cli_replays_begin(struct frag_session *s, const struct frag_cli *cli, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text line = { 0 };
	const char *conf = s->target.conf;

	s->command = cli->cmd->name;
	s->paths = cli->operands;
	s->paths_count = cli->operands_count;
	frag_cli_host(cli, &s->host);
	s->target = cli->target;
	s->target.conf = conf;
	s->out = cli->out;
	s->run.skip_oom = s->on_oom == FRAG_ON_OOM_SKIP;
	s->fail_on_oom |= s->on_oom == FRAG_ON_OOM_FAIL;
	s->cards = cli->cards;
	s->vendor = cli->vendor;
	s->headroom = cli->headroom;
	s->formats |= FRAG_FORMAT_SVG | (s->pdf ? FRAG_FORMAT_ONE_PDF : 0);
	/* --no-host leaves out what differs from run to run, so the clock is not asked */
	s->date_text = frag_cli_day(!s->omit_host);
	frag_cli_add_command_line(cli, &line);
	FRAG_TRY(frag_text_check(&line, err));
	s->command_line = frag_host_strdup(frag_text_str(&line));
	FRAG_CHECK_ALLOC(s->command_line, "command line", err);
	return 0;
}

int frag_cli_replays_run(struct frag_session *s, const struct frag_cli *cli,
			 void (*say)(const struct frag_report *r, struct frag_answer *a),
			 struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	FRAG_TRY(frag_session_run(s, err));
	if (*cli->other_kernels)
		frag_cli_note(cli, "%s", cli->other_kernels);
	say(&s->report, &a);
	FRAG_TRY(frag_cli_print_answer(cli, &a, err));
	FRAG_TRY(frag_session_interrupted(s, err));
	return s->fail_on_oom && frag_session_ran_out(s) ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

/* ---- the options --------------------------------------------------------------------- */

#define AT(field) FRAG_ARG_AT(struct frag_session, field)

static const char *const oom_words[] = { "stop", "skip", "fail", NULL }; /* FRAG_ON_OOM_… */
static const char *const stream_words[] = { [FRAG_STREAM_AUTO] = "auto",
					    [FRAG_STREAM_ALWAYS] = "always",
					    [FRAG_STREAM_NEVER] = "never",
					    NULL };
static const char *const format_words[] = { "svg", "png", "pdf", NULL }; /* FRAG_FORMAT_… */

const struct frag_arg frag_cli_replay_args[] = {
	{ FRAG_ARG_WORD, "on-oom", AT(on_oom), .words = oom_words, .def = "stop",
	  .help = "when a request cannot be served: stop the replay, skip the request, or stop "
		  "and exit with 1" },
	{ FRAG_ARG_FLAG, "fail-on-oom", AT(fail_on_oom), .silent = true,
	  .help = "with --on-oom=skip, too: exit with 1" },
	{ FRAG_ARG_FLAG, "free-at-request", AT(run.free_at_request), .rare = true,
	  .help = "let blocks be reused when they are freed, not when all streams are done" },
	{ FRAG_ARG_OWN, "conf", AT(target.conf), .set = frag_cli_set_conf, .value = "SETTINGS",
	  .rare = true,
	  .help = "settings as in PYTORCH_CUDA_ALLOC_CONF that the recordings were made with, "
		  "where they do not hold them (PyTorch 2.1 and 2.2)" },
	{ FRAG_ARG_WORD, "stream", AT(stream), .words = stream_words, .bare = "always",
	  .rare = true,
	  .help = "replay a .cft while it is read; memory use does not depend on its length "
		  "(default: auto, from 8 M events on)" },
	{ FRAG_ARG_SET, "formats", AT(formats), .words = format_words, .value = "LIST",
	  .def = "svg,png", .rare = true,
	  .help = "pictures of --out: svg, png, pdf; svg is always made" },
	{ FRAG_ARG_FLAG, "no-host", AT(omit_host), .rare = true,
	  .help = "leave measured host times out: same input, same bytes" },
	{ 0 },
};

/* ---- the command ----------------------------------------------------------------- */

static int set_policy(void *texts, const char *text, struct frag_err *err)
{
	const struct frag_policy_texts *policies = texts;

	if (policies->count)
		return FRAG_USAGE(err, "replay takes one policy; compare takes several");
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
	.init = frag_session_init,
	.run = run,
	.release = frag_session_release,
};
