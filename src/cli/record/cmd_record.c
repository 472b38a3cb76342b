/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag record: runs a program and keeps the history of its GPU memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/outfile.h"
#include "record.h"

#define FRAG_ENTRY(name) extern const struct frag_record_way frag_record_way_##name;
#include "way_list.inc"
#undef FRAG_ENTRY

static const struct frag_record_way *const ways[] = {
#define FRAG_ENTRY(name) &frag_record_way_##name,
#include "way_list.inc"
#undef FRAG_ENTRY
	NULL
};

/* The way that the options ask for. Errors: FRAG_EUSAGE. */
static int find_way(const struct frag_record_options *o, const struct frag_record_way **out,
		    struct frag_err *err)
{
	*out = NULL;
	for (size_t i = 0; ways[i]; i++) {
		if (!ways[i]->asked(o))
			continue;
		if (*out)
			return frag_fail(err, FRAG_EUSAGE,
					 "two ways to record at once: %s and %s; choose one",
					 (*out)->name, ways[i]->name);
		*out = ways[i];
	}
	FRAG_ASSERT(*out); /* way_cuda.c takes what nobody else does */
	return 0;
}

const struct frag_arg frag_record_rows[] = {
	{ FRAG_ARG_FLAG, "frames", FRAG_ARG_AT(struct frag_record_options, frames),
	  .help = "also keep the stack of each allocation: larger and slower" },
	{ FRAG_ARG_UINT, "max-entries", FRAG_ARG_AT(struct frag_record_options, max_entries),
	  .value = "N", .min = 1, .max = 1000000000, .def = "10000000",
	  .help = "entries kept per device; the oldest are lost beyond" },
	{ 0 },
};

static const struct frag_arg output_rows[] = {
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct frag_record_options, output),
	  .value = "FILE", .def = "run.cft", .help = "the .cft to write" },
	{ 0 },
};

int frag_record_name(struct frag_trace *trace, const char *path, struct frag_err *err)
{
	const char *slash = strrchr(path, '/');
	char *name = frag_host_strdup(slash ? slash + 1 : path), *dot;

	FRAG_CHECK_ALLOC(name, "trace", err);
	dot = strrchr(name, '.');
	if (dot && dot != name)
		*dot = '\0';
	frag_host_free(trace->name);
	trace->name = name;
	return 0;
}

static void report(const char *path, const struct frag_trace *trace)
{
	uint64_t events = 0;

	for (uint32_t d = 0; d < trace->devs_count; d++)
		events += trace->devs[d].events_count;
	printf("%s: %u %s, %llu events%s\n", path, trace->devs_count,
	       trace->devs_count == 1 ? "device" : "devices", (unsigned long long)events,
	       trace->estimate ? ", estimated" : "");
}

/* A long run must not be lost because its file cannot be written: it goes elsewhere. */
static void rescue(struct frag_cli *cli, const struct frag_trace *trace)
{
	const char *dir = getenv("TMPDIR");
	struct frag_err other;
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/cufrag-XXXXXX.cft", dir && *dir ? dir : "/tmp");
	fd = mkstemps(path, 4);
	if (fd < 0)
		return;
	close(fd);
	if (frag_trace_write_cft(trace, path, &other))
		unlink(path);
	else
		frag_cli_note(cli, "the recording is in '%s' instead", path);
}

/* Before the program runs, perhaps for hours: can the file be written? */
static int probe_output(const char *path, struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	frag_outfile_abort(&out);
	return 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct frag_record_options *o = values;
	const struct frag_record_way *way;
	struct frag_trace *trace = NULL;
	int rc, status = 0;

	frag_record_outlive_readers();
	frag_interrupt_catch(); /* what was recorded is still written */
	FRAG_TRY(find_way(o, &way, err));
	FRAG_TRY(probe_output(o->output, err));
	FRAG_TRY(way->run(cli, o, cli->program, &trace, &status, err));
	rc = frag_record_name(trace, o->output, err) ?: frag_trace_write_cft(trace, o->output, err);
	if (rc == FRAG_EOUTPUT)
		rescue(cli, trace);
	if (!rc && strcmp(o->output, "-") != 0)
		report(o->output, trace);
	frag_trace_destroy(trace);
	if (!rc && status) {
		frag_cli_note(
			cli, "the program ended with status %d; what it did until then is recorded",
			status);
		return status;
	}
	return rc;
}

const struct frag_cmd frag_cmd_record = {
	.name = "record",
	.summary = "run a program and keep the history of its GPU memory; also without a GPU",
	.group = FRAG_GROUP_RECORD,
	.program = "PROGRAM",
	.about =
		"Runs any CUDA program, unchanged, and writes what it asked of the driver: a "
		"library is put into it and sees its calls through CUPTI, which comes with the "
		"CUDA "
		"toolkit or the wheel nvidia-cuda-cupti, or at the driver's entry points where "
		"CUPTI "
		"is missing or taken (--by). A framework with a pool of its own shows only its "
		"segments there: --no-pool makes PyTorch, JAX and TensorFlow ask the driver for "
		"every request, and --torch uses the recorder that PyTorch (2.1 or newer) has. "
		"With --no-gpu it runs on a machine without a GPU: the "
		"installed "
		"PyTorch "
		"and its own allocator meet a pretended card, whose kernels do nothing and whose "
		"memory is address space. Requests and frees are the program's own; values that no "
		"kernel computed are invented by stated rules, and the places where such a value "
		"reached the program are listed by cufrag info. Such a recording is marked as an "
		"estimate. The card is that of --gpu, with a memory limit by --limit. Exits as the "
		"program does.",
	.examples = "  cufrag record -o run.cft -- ./program 42\n"
		    "  cufrag record --torch -o run.cft -- python train.py\n"
		    "  cufrag record --no-pool -o run.cft -- python jax_train.py\n"
		    "  cufrag record --no-gpu --gpu h100 -o run.cft -- python train.py --batch 8\n"
		    "  cufrag record --no-gpu --ranks 0,7 --world 8 -- python train.py\n"
		    "  cufrag record --no-gpu --gpus 2 -- torchrun --nproc-per-node 2 train.py\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_SEED,
	.options = FRAG_CMD_OPTIONS(output_rows, frag_record_cuda_rows, frag_record_nogpu_rows,
				    frag_record_rows),
	.options_size = sizeof(struct frag_record_options),
	.run = run,
};
