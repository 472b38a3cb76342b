/* SPDX-License-Identifier: Apache-2.0 */
/* record --no-gpu: PyTorch on a pretended card (src/inside/nogpu). */
#include "record.h"

const struct frag_arg frag_record_nogpu_rows[] = {
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct frag_record_options, no_gpu),
	  .help = "record on a pretended card (--gpu), without a real one" },
	{ FRAG_ARG_UINT, "gpus", FRAG_ARG_AT(struct frag_record_options, gpus), .value = "N",
	  .min = 1, .max = 16,
	  .help = "pretended cards in the machine (default: 1, or as many as the ranks need, at "
		  "most 8)" },
	{ FRAG_ARG_TEXT, "ranks", FRAG_ARG_AT(struct frag_record_options, ranks), .value = "LIST",
	  .help = "run the program once for each of these ranks of a job, as 0,7 or 0-3; the other "
		  "ranks are pretended" },
	{ FRAG_ARG_UINT, "world", FRAG_ARG_AT(struct frag_record_options, world), .value = "N",
	  .min = 1, .max = 1000000, .help = "ranks of the job (default: those of --ranks)" },
	{ FRAG_ARG_TEXT, "values", FRAG_ARG_AT(struct frag_record_options, values), .value = "FILE",
	  .def = "rules",
	  .help = "what values are that no kernel computed: rules (finite numbers, uniform "
		  "routing), zeros, random (by --seed), none (not even small operators are "
		  "computed), or a file of lines \"train.py:42 0.5\"" },
	{ FRAG_ARG_FLAG, "again", FRAG_ARG_AT(struct frag_record_options, again),
	  .help = "run the program a second time with random values and another seed: what hangs "
		  "on values is said by every command" },
	{ 0 },
};

static bool asked(const struct frag_record_options *o)
{
	return o->no_gpu;
}

static int run(const struct frag_cli *cli, const struct frag_record_options *o, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	return frag_nogpu_record(cli, o, program, false, out, status, err);
}

const struct frag_record_way frag_record_way_nogpu = {
	.name = "--no-gpu",
	.summary = "PyTorch on a pretended card",
	.asked = asked,
	.run = run,
};
