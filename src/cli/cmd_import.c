/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag import: traces of any known format, one or the ranks of a job, into
 * one .cft. What a recording leaves open is settled by simulating it before
 * it is written, so that whoever reads the result need not do it again.
 */
#include <stdlib.h>
#include <string.h>

#include <frag/trace.h>

#include "recording/anonymise.h"
#include "trace/whole.h"
#include "cli/common.h"

struct options {
	const char *output, *device, *conf;
	bool no_evidence, anonymise;
};

static int read_part(const struct options *o, const char *path, struct frag_trace **out,
		     struct frag_err *err)
{
	FRAG_AUTO_FREE char *option = NULL;

	if (asprintf(&option, "%s%.20s%s%s%s", o->device ? "device=" : "",
		     o->device ? o->device : "", o->device && o->conf ? ";" : "",
		     o->conf ? "conf=" : "", o->conf ? o->conf : "") < 0)
		return frag_fail_nomem(err, "options");
	return frag_cli_read(path, option, out, err);
}

/* All operands as one trace. */
static int read_parts(const struct frag_cli *cli, const struct options *o, struct frag_trace **out,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_trace_parts_release) struct frag_trace_parts parts = { 0 };

	parts.count = cli->operands_count;
	FRAG_TRY_CALLOC(parts.list, parts.count, "traces", err);
	for (size_t i = 0; i < parts.count; i++)
		FRAG_TRY(read_part(o, cli->operands[i], &parts.list[i], err));
	return frag_trace_parts_join(&parts, out, err);
}

/* A limit is in few recordings: what is given here goes into the trace. */
static int settle(const struct frag_cli *cli, struct frag_trace *trace, struct frag_err *err)
{
	uint64_t limit = frag_target_limit(&cli->target);

	if (limit != UINT64_MAX) {
		trace->settings.limit_bytes = limit;
		trace->settings.limit_known = true;
	}
	return frag_trace_settle(trace, &cli->target, FRAG_OPEN_AS_RECORDED, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { 0 };

	if (!o->output)
		return FRAG_USAGE(err, "no output file; name it with -o");
	FRAG_TRY(read_parts(cli, o, &trace, err));
	FRAG_TRY(settle(cli, trace, err));
	if (o->no_evidence)
		frag_trace_drop_evidence(trace);
	if (o->anonymise)
		FRAG_TRY(frag_trace_anonymise(trace, err));
	frag_cli_show(&progress, "writing", o->output);
	FRAG_TRY(frag_trace_write(trace, o->output, err));
	frag_progress_end(&progress);
	return frag_cli_show_written(
		cli,
		&(struct frag_written){ .file = o->output,
					.trace = trace,
					.events_count = frag_trace_events_count(trace) },
		err);
}

static int set_device(void *field, const char *arg, struct frag_err *err)
{
	if (!*arg || strlen(arg) > 9 || strspn(arg, "0123456789") != strlen(arg))
		return FRAG_USAGE(err, "'%.40s' is not a device number; write it as 0 or 1", arg);
	*(const char **)field = arg;
	return 0;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_TRACE,
	  .help = "the .cft to write; - is standard output; .csv writes the buffers for "
		  "MiniMalloc" },
	{ FRAG_ARG_OWN, "device", FRAG_ARG_AT(struct options, device), .set = set_device,
	  .value = "N", .help = "only the device of this number (default: all)" },
	{ FRAG_ARG_OWN, "conf", FRAG_ARG_AT(struct options, conf), .set = frag_cli_set_conf,
	  .value = "SETTINGS",
	  .help = "settings as in PYTORCH_CUDA_ALLOC_CONF, for recordings that do not hold them "
		  "(PyTorch 2.1 and 2.2)" },
	{ FRAG_ARG_FLAG, "anonymise", FRAG_ARG_AT(struct options, anonymise),
	  .help = "for others: without stacks, names, paths, date and handles; every text that is "
		  "written is checked" },
	{ FRAG_ARG_FLAG, "no-evidence", FRAG_ARG_AT(struct options, no_evidence), .rare = true,
	  .help = "leave out what the recorder saw of its own allocator; verify then has nothing "
		  "to compare with" },
	{ 0 },
};

const struct frag_cmd frag_cmd_import = {
	.name = "import",
	.summary = "traces of any known format into one .cft",
	.group = FRAG_GROUP_RECORD,
	.rank = 1,
	.operands = "FILE...",
	.operands_max = 4096,
	.about = "Reads recordings (cufrag list formats; compressed ones too) and writes cufrag's "
		 "own format: about one byte per event, checksummed, read at tens of millions of "
		 "events per second. Several files, such as those of a job's ranks, become the "
		 "devices of one trace. A recording may leave open whether a release was an "
		 "empty_cache or the retry of an allocation; import settles this by simulation. "
		 "Name the card with --gpu and the limit with --limit unless it was an H200 "
		 "without a limit.",
	.examples = "  cufrag import snapshot.pickle -o run.cft\n"
		    "  cufrag import rank0.pickle rank1.pickle -o job.cft --gpu a100-80\n"
		    "  cufrag import oomcap.pickle.xz -o oomcap.cft --limit 7.5G\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH,
	.answer = &frag_written_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
