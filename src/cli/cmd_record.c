/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag record: runs a program and keeps the history of its GPU memory. */
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/scratch.h"
#include "cli/common.h"
#include "inject/launch/way.h"

#define WAYS_MAX 12u

/* ---- for every command that starts a program ------------------------------------------ */

struct frag_program frag_cli_program(const struct frag_cli *cli, const struct frag_pretend *pretend)
{
	return (struct frag_program){ .words = cli->program,
				      .pretend = pretend,
				      .target = cli->target,
				      .gpu = cli->gpu_,
				      .note = frag_cli_note_text,
				      .ctx = (void *)(uintptr_t)cli };
}

struct frag_launch frag_cli_launch(const struct frag_cli *cli)
{
	return (struct frag_launch){ .target = cli->target,
				     .gpu = cli->gpu_,
				     .collect = frag_pretend_collect,
				     .note = frag_cli_note_text,
				     .ctx = (void *)(uintptr_t)cli };
}

const char *frag_cli_card(const struct frag_cli *cli, char *buf, size_t cap)
{
	const struct frag_sim_config *card = &cli->target.card;

	if (!card->name)
		return "h200";
	if (strcmp(card->name, "sim") != 0)
		return card->name;
	snprintf(buf, cap, "a card of %s", FRAG_BYTES(card->total_bytes));
	return buf;
}

static int make_file(struct frag_program_operand *out, struct frag_err *err)
{
	int reason = frag_scratch_folder(NULL, &out->folder);

	if (reason)
		return FRAG_OUTPUT(err, "cannot create a temporary folder: %s", strerror(reason));
	snprintf(out->path, sizeof(out->path), "%s/trace.cft", out->folder);
	return 0;
}

int frag_program_operand(struct frag_cli *cli, const struct frag_pretend *o,
			 struct frag_program_operand *out, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	const struct frag_program program = frag_cli_program(cli, o);
	int status;

	if (cli->program && cli->operands_count)
		return FRAG_USAGE(err, "a trace and a program: give one of them");
	if (!cli->program && !cli->operands_count)
		return FRAG_USAGE(err, "no trace and no program to record");
	if (!cli->program)
		return 0;
	FRAG_TRY(frag_program_record(&program, &trace, &status, err));
	if (status)
		frag_cli_note(cli,
			      "the program ended with status %d; what it did until then counts",
			      status);
	FRAG_TRY(make_file(out, err));
	FRAG_TRY(frag_trace_write_cft(trace, out->path, err));
	cli->operands[cli->operands_count++] = out->path;
	return 0;
}

void frag_program_operand_release(struct frag_program_operand *o)
{
	frag_scratch_remove(o->folder);
	o->folder = NULL;
}

/* ---- record ------------------------------------------------------------------------- */

struct options {
	const char *output;
	bool frames;
	unsigned max_entries;
	union { /* of each way, in the order of the list */
		unsigned char bytes[FRAG_WAY_OPTIONS_BYTES];
		max_align_t align;
	} ways[WAYS_MAX];
};

static const struct frag_arg rows[] = {
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output), .value = "FILE",
	  .def = "run.cft", .help = "the .cft to write" },
	{ FRAG_ARG_FLAG, "frames", FRAG_ARG_AT(struct options, frames),
	  .help = "also keep the stack of each allocation, with lines of Python: larger and "
		  "slower" },
	{ FRAG_ARG_UINT, "max-entries", FRAG_ARG_AT(struct options, max_entries), .value = "N",
	  .min = 1, .max = 1000000000, .def = "10000000", .rare = true,
	  .help = "entries kept per device; beyond that the oldest are dropped" },
	{ 0 },
};

static size_t way_options(void *options, struct frag_arg_table *tables)
{
	const struct frag_record_way *const *ways = frag_record_ways();
	struct options *o = options;
	size_t n = 0;

	for (size_t i = 0; ways[i]; i++) {
		void *values = o ? &o->ways[i] : NULL;

		FRAG_ASSERT(i < WAYS_MAX && ways[i]->options_size <= FRAG_WAY_OPTIONS_BYTES);
		if (ways[i]->asks)
			tables[n++] =
				(struct frag_arg_table){ ways[i]->asks, values, ways[i]->heading };
		tables[n++] = (struct frag_arg_table){ ways[i]->rows, values, ways[i]->heading };
	}
	return n;
}

/* The way that the options ask for. Errors: FRAG_EUSAGE if they ask for two. */
static int find_way(const struct options *o, const struct frag_record_way **out,
		    const void **way_values, struct frag_err *err)
{
	const struct frag_record_way *const *ways = frag_record_ways(), *found = NULL;

	for (size_t i = 0; ways[i]; i++) {
		bool asked = ways[i]->asks && *(const bool *)&o->ways[i];

		if (asked && found && found->asks)
			return FRAG_USAGE(err, "%s and %s are two ways to record; choose one",
					  found->name, ways[i]->name);
		if (asked || (!ways[i]->asks && !found)) {
			found = ways[i];
			*way_values = &o->ways[i];
		}
	}
	FRAG_ASSERT(found);
	*out = found;
	return 0;
}

/* An option of another way would do nothing: it is refused. Errors: FRAG_EUSAGE. */
static int check_others(const struct options *o, const struct frag_record_way *way,
			struct frag_err *err)
{
	const struct frag_record_way *const *ways = frag_record_ways();
	struct options none = { 0 };
	struct frag_arg_table tables[2 * WAYS_MAX + 1] = { 0 };

	way_options(&none, tables);
	FRAG_TRY(frag_args_defaults(tables, err));
	for (size_t i = 0; ways[i]; i++)
		for (const struct frag_arg *row = ways[i]->rows; ways[i] != way && row->name; row++)
			if (memcmp(o->ways[i].bytes + row->offset, none.ways[i].bytes + row->offset,
				   row->size) != 0)
				return FRAG_USAGE(err, "--%s has no effect on a recording %s%s%s",
						  row->name, way->asks ? "with " : "", way->name,
						  strcmp(row->name, "stacks")
							  ? ""
							  : "; --frames keeps its stacks");
	return 0;
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
	FRAG_AUTO(frag_outfile_abort) struct frag_outfile out = { 0 };

	return frag_outfile_open(&out, path, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	struct frag_launch launch = frag_cli_launch(cli);
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	const struct frag_record_way *way = NULL;
	const void *way_values = NULL;
	int rc, status = 0;

	launch.frames = o->frames;
	launch.max_entries = o->max_entries;
	frag_launch_outlive_readers();
	frag_interrupt_catch(); /* what was recorded is still written */
	FRAG_TRY(find_way(o, &way, &way_values, err));
	FRAG_TRY(check_others(o, way, err));
	FRAG_TRY(probe_output(o->output, err));
	FRAG_TRY(way->run(&launch, way_values, cli->program, &trace, &status, err));
	FRAG_TRY(frag_launch_name_as_file(trace, o->output, err));
	rc = frag_trace_write_cft(trace, o->output, err);
	if (rc == FRAG_EOUTPUT)
		rescue(cli, trace);
	FRAG_TRY(rc);
	FRAG_TRY(frag_cli_show_written(
		cli,
		&(struct frag_written){ .file = o->output,
					.trace = trace,
					.events_count = frag_trace_events_count(trace),
					.brief = true },
		err));
	if (status)
		frag_cli_note(
			cli, "the program ended with status %d; what it did until then is recorded",
			status);
	return status;
}

const struct frag_cmd frag_cmd_record = {
	.name = "record",
	.summary = "run a program and keep the history of its GPU memory; also without a GPU",
	.group = FRAG_GROUP_RECORD,
	.program = "PROGRAM",
	.about = "Runs any CUDA program, unchanged, and records what it asks of the driver. A "
		 "library inside the program sees the calls through CUPTI (part of the CUDA "
		 "toolkit and of the wheel nvidia-cuda-cupti), or at the driver's entry points "
		 "where CUPTI is missing or in use (--by). For a framework with a memory pool, "
		 "this shows only the segments: --no-pool makes PyTorch, JAX and TensorFlow ask "
		 "the driver for every request, and --torch uses the recorder of PyTorch 2.1 and "
		 "newer. With --no-gpu no GPU is needed: the installed PyTorch and its own "
		 "allocator run on a pretended card, whose kernels do nothing and whose memory is "
		 "address space. Requests and frees are the program's own; values that no kernel "
		 "computed are invented by stated rules, and cufrag info lists where such a value "
		 "reached the program. Such a recording is marked as an estimate. --gpu chooses "
		 "the card, --limit its memory limit. Exits with the program's status.",
	.examples = "  cufrag record -o run.cft -- ./program 42\n"
		    "  cufrag record --torch -o run.cft -- python train.py\n"
		    "  cufrag record --no-pool -o run.cft -- python jax_train.py\n"
		    "  cufrag record --no-gpu --gpu h100 -o run.cft -- python train.py --batch 8\n"
		    "  cufrag record --no-gpu --ranks 0,7 --world 8 -- python train.py\n"
		    "  cufrag record --no-gpu -- torchrun --nproc-per-node 2 train.py\n",
	.shared = FRAG_CLI_CARD,
	.answer = &frag_written_shape,
	FRAG_CMD_OPTIONS(struct options, rows),
	.more_options = way_options,
	.run = run,
};
