/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag layout: how many cards, which layout, which card: the program recorded with each. */
#include "cli/common.h"
#include "plan/kvcache/kvcache.h"
#include "pretend/layout/layouts.h"
#include "pretend/start/held_runs.h"

struct options {
	struct frag_layouts all;
	bool no_gpu; /* implied */
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_catalog_release) struct frag_catalog catalog = { 0 };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	struct frag_layouts *x = &((struct options *)values)->all;
	uint64_t enough = 0;

	if (!x->jobs)
		x->jobs = FRAG_MIN(cli->threads, FRAG_LAYOUT_JOBS);
	x->asked.program = cli->program;
	x->asked.headroom = cli->headroom;
	x->seed = cli->target.seed;
	x->tell = frag_cli_note_text;
	x->ctx = cli;
	FRAG_TRY(frag_catalog_init(&catalog, cli->cards, cli->vendor, err));
	FRAG_TRY(frag_layouts_plan(x, &catalog, err));
	FRAG_TRY(frag_layouts_open(x, err));
	FRAG_TRY(frag_layouts_run(x, err));
	FRAG_TRY(frag_layouts_answer(x, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	if (x->interrupted) {
		frag_cli_note(cli, "interrupted; the same command goes on from the recordings that "
				   "are kept");
		return frag_code_exit(FRAG_EINTR);
	}
	FRAG_TRY(frag_layouts_store(x, &cli->target, err));
	for (size_t c = 0; c < x->cards_count; c++)
		enough |= frag_layout_fewest(x, c);
	return enough ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_FLAG, "no-gpu", AT(no_gpu), .silent = true, .help = "implied" },
	{ FRAG_ARG_TEXT, "gpu", AT(all.asked.gpus), .value = "LIST",
	  .help = "cards to plan for, separated by commas (default: h100,h200)" },
	{ FRAG_ARG_TEXT, "world", AT(all.asked.world), .value = "NUMBERS",
	  .help = "numbers of ranks, one on each card: 8, 1..8, 1..64*2 or a list; {world} in the "
		  "command. cufrag starts the ranks itself, in place of torchrun, accelerate "
		  "launch and deepspeed" },
	{ FRAG_ARG_OWN, "vary", AT(all), .set = frag_layout_vary, .value = "{NAME}=VALUES",
	  .help = "values in place of {NAME} in the command: a list, 1..8, or 1..64*2 (powers); "
		  "{{NAME}} in the command stands for {NAME} itself" },
	{ FRAG_ARG_OWN, "set", AT(all.settings), .set = frag_config_add, .value = "FILE:KEY=VALUE",
	  .rare = true,
	  .help = "a value in a file that the command names (.json, .yaml), as "
		  "ds.json:zero_optimization.stage={zero}; the program reads a copy; may be "
		  "repeated" },
	{ FRAG_ARG_OWN, "where", AT(all), .set = frag_layout_where, .value = "CONDITION",
	  .rare = true,
	  .help = "only layouts that meet it, as 'tp*pp <= world && ac != \"full\"': + - * / %, "
		  "comparisons, && || !; may be repeated" },
	{ FRAG_ARG_TEXT, "rising", AT(all.asked.rising), .value = "NAMES", .rare = true,
	  .help = "names whose values need more memory the later they are listed; found by "
		  "bisection (default: mb, mbs, bs, batch, micro_batch, seq, seq_len and the like, "
		  "where their values ascend)" },
	{ FRAG_ARG_TEXT, "falling", AT(all.asked.falling), .value = "NAMES", .rare = true,
	  .help = "names whose values need less memory the later they are listed (default: ac and "
		  "recompute, as none, selective, full)" },
	{ FRAG_ARG_TEXT, "preset", AT(all.asked.preset), .value = "LAUNCHER",
	  .help = "a launcher that names its options: --vary tp=1,2 sets them without braces; "
		  "known:"
#define FRAG_PRESET(name, ...) " " name
#define FRAG_NAME(...)
#define FRAG_RISES(...)
#include "pretend/layout/presets.def"
	},
	{ FRAG_ARG_TEXT, "ranks", AT(all.pretend.ranks), .value = "LIST", .def = "roles",
	  .help = "which ranks of a job run, as 0,7; roles: one of each group of identical ranks" },
	{ FRAG_ARG_TEXT, "price", AT(all.asked.price), .value = "LIST",
	  .help = "price of a card for an hour, as h100=2.5,h200=3.2 (also: price_per_hour of "
		  "--cards)" },
	FRAG_CLI_POLICIES("policies", struct options, all.policies,
			  "policies, separated by ';' (default: those of fit)"),
	{ FRAG_ARG_UINT, "jobs", AT(all.jobs), .value = "N", .min = 1, .max = FRAG_LAYOUT_JOBS,
	  .silent = true, .help = "the same as --threads" },
	{ FRAG_ARG_BYTES, "memory", AT(all.pretend.memory_bytes), .value = "SIZE", .min = FRAG_MIB,
	  .max = UINT64_MAX, .rare = true,
	  .help = "memory of the host for all ranks that run at a time: each job takes its share, "
		  "and its ranks take turns" },
	{ FRAG_ARG_UINT, "time-limit", AT(all.time_limit_s), .value = "SECONDS", .max = 1000000,
	  .def = "1800", .rare = true, .help = "end a layout after this time, 0 = never" },
	{ FRAG_ARG_UINT, "check", AT(all.checks), .value = "N", .max = 1000000, .def = "10",
	  .rare = true,
	  .help = "run at most N layouts with assumed answers as a check, one for every 20" },
	{ FRAG_ARG_FLAG, "serve", AT(all.asked.serve),
	  .help = "the command is a serving engine's, as 'vllm serve MODEL': without --vary on 1, "
		  "2, 4 and 8 cards (tensor parallelism), with its preset; it is "
		  "asked to end when it waits for requests" },
	{ FRAG_ARG_UINT, "requests", AT(all.requests), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX, .rare = true,
	  .help = "the program is a serving engine that prints the size of its cache (vLLM, "
		  "SGLang): a layout fits if the cache holds N requests of --tokens" },
	{ FRAG_ARG_UINT, "tokens", AT(all.request_tokens), .value = "N", .min = 1,
	  .max = FRAG_KVCACHE_TOKENS_MAX, .rare = true, .help = "of a request, prompt and output" },
	FRAG_HOLD_ROWS(struct options, all.pretend.hold, rare),
	{ FRAG_ARG_TEXT, "values", AT(all.pretend.values), .value = "FILE", .def = "rules",
	  .rare = true, .help = "the values that no kernel computes, as for record" },
	{ FRAG_ARG_TEXT, "keep", AT(all.keep), .value = "DIR", .rare = true,
	  .help = "keep the recordings there, for sweep and fleet" },
	{ FRAG_ARG_OWN, "shard", AT(all), .set = frag_layout_shard, .value = "I/N", .rare = true,
	  .help = "one of N array jobs, which share --keep; /N: I from SLURM_ARRAY_TASK_ID, "
		  "JOB_COMPLETION_INDEX or the rank of mpirun or srun. all: reuse what --keep has "
		  "of this command, from any machine" },
	{ FRAG_ARG_TEXT, "store", AT(all.store), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .rare = true,
	  .help = "for fleet: the results of all recordings of --keep, in a SQLite file like "
		  "sweep's" },
	{ FRAG_ARG_FLAG, "fresh", AT(all.fresh), .rare = true,
	  .help = "use nothing kept, and take no shortcut: record each layout on each card itself, "
		  "for programs that adapt to its memory, in a Python that is started for it" },
	{ 0 },
};

static void release(void *values)
{
	frag_layouts_release(&((struct options *)values)->all);
}

const struct frag_cmd frag_cmd_layout = {
	.name = "layout",
	.summary = "how many cards a job needs, and which layout on them",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 2,
	.program = "PROGRAM",
	.about = "Runs the job's own command without a GPU, with values in place of names in "
		 "braces, and finds the fewest cards on which it completes. For each card and "
		 "number of ranks it names the layouts that fit, the rank that needs most, the "
		 "kinds of its memory, and the line to paste. It records each layout once for each "
		 "compute capability, with enough memory, and judges it as fit does; it also "
		 "records the advised layout on the card itself. Of identical ranks only one runs. "
		 "Along names whose values need more and more memory (--rising), it finds by "
		 "bisection how far layouts fit; it names the layouts that it assumed to fit or "
		 "not, and runs some of them as a check. It keeps recordings: the same command, or "
		 "one with more values, reuses them. It marks layouts that fail for another reason "
		 "than memory, or do not end. Exits with 1 if no layout fits any card.",
	.examples = "  cufrag layout --vary '{mb}=1..64' -- python train.py --batch {mb}\n"
		    "  cufrag layout --gpu h100,b200 --world 1..8*2 -- torchrun train.py\n"
		    "  cufrag layout --world 8 --vary '{tp}=1,2' -- torchrun x.py --tp {tp}\n"
		    "  cufrag layout --preset megatron --world 8 --vary tp=1,2 -- torchrun x.py\n",
	.shared = FRAG_CLI_CARDS | FRAG_CLI_PAGE,
	.answer = &frag_layouts_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
	.release = release,
};
