/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag diagnose: leak, fragmentation, spike, or nothing at all; and the lines. */
#include "cli/common.h"
#include "cli/recordings.h"
#include "cli/show_answer.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/memlog.h"

struct options {
	const char *policy;
	unsigned fail_on; /* 1 << enum frag_finding_kind */
};

static const char *const fail_words[] = {
#define FRAG_X_(name, text, word) word,
	FRAG_FINDING_LIST(FRAG_X_)
#undef FRAG_X_
		NULL
};

struct job {
	const struct frag_cli *cli;
	const struct options *opt;
	struct frag_findings findings;
};

static int check_recording(struct job *j, const char *path, struct frag_err *err)
{
	struct frag_case in = { .recorded = frag_policy_is_recorded(j->opt->policy),
				.target = j->cli->target };
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	FRAG_TRY(frag_recording_open(&r, path, &j->cli->target, FRAG_OPEN_LONG_HEAD, err));
	FRAG_TRY(frag_cli_spec(j->cli, &r, j->opt->policy, &spec, err));
	in.spec = spec;
	j->findings.texts->estimated |= r.trace->estimate != NULL;
	for (uint32_t d = 0; d < r.trace->devs_count; d++) {
		FRAG_AUTO(frag_progress_end) struct frag_progress progress;

		frag_cli_show(&progress, "diagnosing", r.units[d].label);
		in.events = r.units[d].events;
		FRAG_TRY(frag_diagnose(&in, r.units[d].label, &j->findings, err));
	}
	return 0;
}

static int check_log(struct job *j, const char *path, struct frag_err *err)
{
	struct frag_memlog log;
	int rc;

	FRAG_TRY(frag_memlog_read(path, &log, err));
	rc = frag_diagnose_log(&log, &j->findings, err);
	frag_memlog_release(&log);
	return rc;
}

static int status(const struct job *j)
{
	for (size_t i = 0; i < j->findings.count; i++)
		if (j->opt->fail_on & 1u << j->findings.list[i].kind)
			return FRAG_EXIT_CONDITION;
	return FRAG_EXIT_DONE;
}

static int diagnose(struct job *j, struct frag_err *err)
{
	for (size_t i = 0; i < j->cli->operands_count; i++) {
		const char *path = j->cli->operands[i];
		int is_log = frag_memlog_probe(path, err);

		FRAG_TRY(FRAG_MIN(is_log, 0));
		FRAG_TRY(is_log ? check_log(j, path, err) : check_recording(j, path, err));
	}
	FRAG_TRY(frag_findings_answer(&j->findings, err));
	FRAG_TRY(frag_cli_show_answer(j->cli, j->findings.texts, err));
	return status(j);
}

/* ---- the command ----------------------------------------------------------------- */

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "as it would be under this policy (default: recorded, the settings of the "
		  "recording)" },
	{ FRAG_ARG_SET, "fail-on", FRAG_ARG_AT(struct options, fail_on), .words = fail_words,
	  .value = "KIND,...",
	  .help = "exit with 1 if one of these is found, for use in CI: oom-fragmentation, "
		  "oom-needed, leak, spike, fragmentation, cache, released, imbalance" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct job j = { .cli = cli, .opt = values, .findings.texts = &a };
	int rc = diagnose(&j, err);

	frag_findings_release(&j.findings);
	return rc;
}

const struct frag_cmd frag_cmd_diagnose = {
	.name = "diagnose",
	.summary = "is it a leak, fragmentation, a spike, or nothing at all; which lines",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 1,
	.operands = "TRACE|LOG...",
	.operands_min = 1,
	.operands_max = 4096,
	.about =
		"Looks for what is wrong with the memory of a program and says it with the numbers "
		"that it rests on and the lines of the program: out of memory (by fragmentation, "
		"or "
		"because the program needs it), a leak (memory that outlives its step grows), a "
		"spike (one step needs far more than all others), fragmentation (much more is "
		"reserved than was ever live, and a setting helps), a cache that is given back too "
		"eagerly, or was released in the middle, ranks out of balance, or steady. The "
		"rules "
		"are in docs/explain.md. Besides recordings it reads logs of nvidia-smi "
		"(--query-gpu with --format=csv, dmon) and CSV with a time and a bytes column.",
	.examples = "  cufrag diagnose traces/leak.frames.cft\n"
		    "  cufrag diagnose rank*.pickle --fail-on leak,oom-needed --json found.json\n"
		    "  nvidia-smi dmon -s m > gpu.txt; cufrag diagnose gpu.txt\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_SEED,
	.answer = &frag_diagnosis_shape,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
};
