/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag diagnose: leak, fragmentation, spike, or nothing at all; and the lines. */
#include "shared.h"

#include <string.h>

#include "explain/diagnose/diagnose.h"
#include "trace/source.h"

static int check_recording(const struct frag_cli *cli, const char *policy, const char *path,
			   struct frag_findings *out, struct frag_err *err)
{
	struct frag_case in = { .recorded = frag_policy_is_recorded(policy),
				.target = cli->target };
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	FRAG_TRY(frag_recording_open(&r, path, &cli->target, 0, err));
	FRAG_TRY(frag_cli_spec(cli, &r, policy, &spec, err));
	in.spec = spec;
	out->texts->estimated |= r.trace->estimate != NULL;
	for (uint32_t d = 0; d < r.trace->devs_count; d++) {
		FRAG_AUTO(frag_progress_end) struct frag_progress progress;

		frag_cli_show(&progress, "diagnosing", r.units[d].label);
		in.events = r.units[d].events;
		if (!out->ended_out_of_memory)
			out->ended_out_of_memory = frag_ending_row(out->texts, r.units[d].label,
								   &r.units[d].dev->ending);
		FRAG_TRY(frag_diagnose(&in, r.units[d].label, out, err));
	}
	return 0;
}

int frag_cli_diagnose(const struct frag_cli *cli, const char *policy, struct frag_findings *out,
		      struct frag_err *err)
{
	for (size_t i = 0; i < cli->operands_count; i++) {
		const char *path = cli->operands[i];
		FRAG_AUTO(frag_memlog_release) struct frag_memlog log = { 0 };
		int rc, found = 0;

		FRAG_TRY(frag_cli_hold(&path, err));
		FRAG_TRY(FRAG_MIN(rc = frag_memlog_read(path, &log, err), 0));
		rc = rc ? frag_diagnose_log(&log, out, err)
			: check_recording(cli, policy, path, out, err);
		if (rc == FRAG_EFORMAT) {
			FRAG_TRY(FRAG_MIN(found = frag_diagnose_timeline(path, out, err), 0));
			if (!found)
				found = frag_diagnose_text(path, out, NULL);
			if (!found && frag_trace_is_text(err))
				frag_fail(err, rc, "'%.200s' has no error or log that is known",
					  path);
		}
		FRAG_TRY(found > 0 ? 0 : rc);
	}
	frag_find_imbalance(out->devices, out->devices_count, out);
	return frag_findings_answer(out, err);
}

/* ---- the command ----------------------------------------------------------------- */

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

static int status(const struct frag_findings *f, unsigned fail_on)
{
	for (size_t i = 0; i < f->count; i++)
		if (fail_on & 1u << f->list[i].kind)
			return FRAG_EXIT_CONDITION;
	return FRAG_EXIT_DONE;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "replay under this policy (default: recorded)" },
	{ FRAG_ARG_SET, "fail-on", FRAG_ARG_AT(struct options, fail_on), .words = fail_words,
	  .value = "KIND,...",
	  .help = "exit with 1 if one of these is found, for CI: oom-fragmentation, oom-needed, "
		  "oom-others, oom-unclear, leak, growth, spike, fragmentation, cache, released, "
		  "imbalance" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_findings_release) struct frag_findings f = { .texts = &a };

	FRAG_TRY(frag_cli_diagnose(cli, o->policy, &f, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return status(&f, o->fail_on);
}

const struct frag_cmd frag_cmd_diagnose = {
	.name = "diagnose",
	.summary = "is it a leak, fragmentation, a spike, or nothing at all; which lines",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 1,
	.operands = "TRACE|LOG...",
	.operands_max = 4096,
	.about = "Finds what is wrong with the memory of a program, with the numbers that support "
		 "it and the line of the program: out of memory (by fragmentation, or because the "
		 "program needs more), a leak (memory that outlives its step grows), a spike (one "
		 "step needs far more than all others), fragmentation (much more is reserved than "
		 "was ever live, and a setting helps), a cache that is released too eagerly or in "
		 "the middle, ranks out of balance, or nothing (steady). docs/understand.md states "
		 "the rules. It also reads logs of nvidia-smi (--query-gpu with --format=csv, "
		 "dmon) and CSV with a time column and a bytes column.",
	.examples = "  cufrag diagnose traces/leak.frames.cft\n"
		    "  cufrag diagnose rank*.pickle --fail-on leak,oom-needed --json found.json\n"
		    "  nvidia-smi dmon -s m > gpu.txt; cufrag diagnose gpu.txt\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_diagnosis_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
