/* SPDX-License-Identifier: Apache-2.0 */
/* record --no-gpu: PyTorch on a pretended card (src/pretend/card). */
#include "pretend/start/held_runs.h"
#include "start.h"
#include "inject/launch/way.h"

static const struct frag_arg asks[] = {
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct frag_pretend, no_gpu),
	  .help = "record on a pretended card (--gpu), without a real one" },
	{ 0 },
};

const struct frag_arg frag_pretend_implied[] = {
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct frag_pretend, no_gpu), .silent = true,
	  .help = "implied" },
	{ 0 },
};

const struct frag_arg frag_pretend_rows[] = {
	{ FRAG_ARG_UINT, "gpus", FRAG_ARG_AT(struct frag_pretend, gpus), .value = "N", .min = 1,
	  .max = 16, .rare = true,
	  .help = "number of pretended cards (default: 1, as many as a launcher starts processes, "
		  "or as --ranks needs, at most 8)" },
	{ FRAG_ARG_TEXT, "ranks", FRAG_ARG_AT(struct frag_pretend, ranks), .value = "LIST",
	  .rare = true,
	  .help = "run the program once for each of these ranks of a job, as 0,7 or 0-3. If all "
		  "are named, they run at the same time and communicate; else the missing ones are "
		  "pretended. roles: one rank of each kind runs, and its recording stands for all "
		  "that are identical" },
	{ FRAG_ARG_UINT, "world", FRAG_ARG_AT(struct frag_pretend, world), .value = "N", .min = 1,
	  .max = 1000000, .rare = true, .help = "ranks of the job (default: those of --ranks)" },
	{ FRAG_ARG_BYTES, "memory", FRAG_ARG_AT(struct frag_pretend, memory_bytes), .value = "SIZE",
	  .min = FRAG_MIB, .max = UINT64_MAX, .rare = true,
	  .help = "host memory for the ranks that run at the same time: ranks take turns, and an "
		  "identical rank stands in for each one that waits" },
	{ FRAG_ARG_TEXT, "values", FRAG_ARG_AT(struct frag_pretend, values), .value = "FILE",
	  .def = "rules", .rare = true,
	  .help = "values to invent where no kernel computes them: rules (finite numbers, balanced "
		  "routing), computed (the CPU computes everything, however large: slow), "
		  "skewed=F (one expert gets F times the mean), worst (all tokens to the same "
		  "experts), zeros, random (by --seed), none (not even small operators are "
		  "computed), or a file with lines as \"train.py:42 0.5\"" },
	FRAG_HOLD_ROWS(struct frag_pretend, hold, rare),
	{ FRAG_ARG_FLAG, "again", FRAG_ARG_AT(struct frag_pretend, again), .rare = true,
	  .help = "run the program a second time with random values and another seed, or the "
		  "worst routing: every command then reports what depends on invented values" },
	{ FRAG_ARG_FLAG, "warm-caches", FRAG_ARG_AT(struct frag_pretend, warm_caches), .rare = true,
	  .help = "torch.compile finds what earlier recordings with this option compiled and "
		  "measured, as on a card where the program ran before (default: a first run, "
		  "which measures its kernels)" },
	{ 0 },
};

const struct frag_arg frag_pretend_run_rows[] = {
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct frag_pretend, no_gpu),
	  .help = "run on a pretended card (--gpu); see cufrag record" },
	{ FRAG_ARG_UINT, "gpus", FRAG_ARG_AT(struct frag_pretend, gpus), .value = "N", .min = 1,
	  .max = 16,
	  .help = "number of pretended cards (default: 1, or as many as a launcher starts "
		  "processes)" },
	FRAG_HOLD_ROWS(struct frag_pretend, hold, silent),
	{ 0 },
};

const struct frag_arg frag_pretend_fit_rows[] = {
	{ FRAG_ARG_TEXT, "vary", FRAG_ARG_AT(struct frag_pretend, vary), .value = "{NAME}=A..B",
	  .help = "with a program: find the greatest number in place of {NAME} with which the "
		  "program completes on --gpu, by recording it several times" },
	{ FRAG_ARG_FLAG, "fresh", FRAG_ARG_AT(struct frag_pretend, fresh), .rare = true,
	  .help = "with a program: record again, even if an earlier call recorded the same "
		  "command with the same environment and files" },
	{ 0 },
};

const struct frag_arg frag_pretend_scale_rows[] = {
	{ FRAG_ARG_TEXT, "vary", FRAG_ARG_AT(struct frag_pretend, vary), .value = "{NAME}=N,N,…",
	  .help = "record the program with these numbers in place of {NAME}" },
	{ 0 },
};

static int run(const struct frag_launch *l, const void *options, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	return frag_pretend_record(l, options, program, out, status, err);
}

const struct frag_record_way frag_record_way_pretend = {
	.name = "--no-gpu",
	.heading = "Without a GPU: PyTorch on a pretended card",
	.asks = asks,
	.rows = frag_pretend_rows,
	.options_size = sizeof(struct frag_pretend),
	.run = run,
};
