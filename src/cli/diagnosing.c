/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings and logs diagnosed; see diagnosing.h. */
#include "diagnosing.h"

#include "cli/recordings.h"
#include "explain/diagnose/memlog.h"

static int check_recording(const struct frag_cli *cli, const char *policy, const char *path,
			   struct frag_findings *out, struct frag_err *err)
{
	struct frag_case in = { .recorded = frag_policy_is_recorded(policy),
				.target = cli->target };
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	FRAG_TRY(frag_recording_open(&r, path, &cli->target, FRAG_OPEN_LONG_HEAD, err));
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

static int check_log(const char *path, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(frag_memlog_release) struct frag_memlog log = { 0 };

	FRAG_TRY(frag_memlog_read(path, &log, err));
	return frag_diagnose_log(&log, out, err);
}

int frag_cli_diagnose(const struct frag_cli *cli, const char *policy, struct frag_findings *out,
		      struct frag_err *err)
{
	for (size_t i = 0; i < cli->operands_count; i++) {
		const char *path = cli->operands[i];
		int is_log = frag_memlog_probe(path, err);

		FRAG_TRY(FRAG_MIN(is_log, 0));
		FRAG_TRY(is_log ? check_log(path, out, err)
				: check_recording(cli, policy, path, out, err));
	}
	frag_find_imbalance(out->devices, out->devices_count, out);
	return frag_findings_answer(out, err);
}
