/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag export: a recording, or what a policy would have done with it, for other tools. */
#include <limits.h>
#include <string.h>

#include "cli/common.h"
#include "trace/writers/export.h"

struct options {
	unsigned to; /* of frag_export_formats; UINT_MAX = not given */
	const char *policy, *output;
	uint64_t after;
};

static int write_to(const struct frag_cli *cli, const struct options *o, struct frag_recording *in,
		    const struct frag_policy_spec *spec, struct frag_err *err)
{
	struct frag_export_job job = { .trace = in->trace,
				       .path = in->source ? in->path : NULL,
				       .spec = spec,
				       .as_recorded = frag_policy_is_recorded(o->policy),
				       .target = cli->target,
				       .after = o->after,
				       .name = in->trace->name ? in->trace->name : "",
				       .policy = frag_policy_spec_text(spec) };
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { .on = false };
	FRAG_AUTO(frag_outfile_abort) struct frag_outfile out = { 0 };

	FRAG_TRY(frag_outfile_open(&out, o->output, err));
	job.to = out.to;
	if (strcmp(o->output, "-") != 0)
		frag_cli_show(&progress, "writing", o->output);
	FRAG_TRY(frag_export_formats[o->to]->write(&job, err));
	frag_progress_end(&progress);
	return frag_outfile_commit(&out, err);
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_WORD, "to", FRAG_ARG_AT(struct options, to), .words = frag_export_words,
	  .help = "the format" },
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_PICKLE, .def = "-", .help = "output file; - is standard output" },
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "what this policy would have done (default: recorded)" },
	{ FRAG_ARG_UINT, "after", FRAG_ARG_AT(struct options, after), .value = "EVENT",
	  .max = INT64_MAX,
	  .help = "npz: the segments and blocks after this event of each device, instead of the "
		  "events" },
	{ 0 },
};

static void init(void *values)
{
	((struct options *)values)->to = UINT_MAX;
	((struct options *)values)->after = UINT64_MAX;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };

	if (o->to == UINT_MAX)
		return FRAG_USAGE(err, "choose a format with --to");
	if (o->after != UINT64_MAX && !frag_export_formats[o->to]->takes_moment)
		return FRAG_USAGE(err, "--to %s has no moments for --after",
				  frag_export_words[o->to]);
	FRAG_TRY(
		frag_recording_open(&in, cli->operands[0], &cli->target, FRAG_OPEN_LONG_HEAD, err));
	FRAG_TRY(frag_cli_spec(cli, &in, o->policy, &spec, err));
	return write_to(cli, o, &in, spec, err);
}

const struct frag_cmd frag_cmd_export = {
	.name = "export",
	.summary = "a recording, or what a policy would have done, for other tools",
	.group = FRAG_GROUP_RECORD,
	.rank = 2,
	.operands = "TRACE",
	.about = "Writes a recording for other tools: a snapshot that PyTorch's viewer and cufrag "
		 "open (memory_viz), a Chrome trace for ui.perfetto.dev, rows for a spreadsheet, "
		 "time series for Prometheus, or arrays for NumPy. With --policy, it writes what "
		 "that policy would have done: its segments, addresses and refusals.",
	.examples = "  cufrag export run.cft --to memory_viz -o run.pickle\n"
		    "  cufrag export run.cft --to perfetto --policy tlsf -o tlsf.json\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH,
	FRAG_CMD_OPTIONS(struct options, options),
	.init = init,
	.run = run,
};
