/* SPDX-License-Identifier: Apache-2.0 */
/* record: any CUDA program, by the library src/inside/record put into it. The way of those that name none. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scratch.h"

static const char *const by_words[] = { "auto", "cupti", "preload", NULL };

const struct frag_arg frag_record_cuda_rows[] = {
	{ FRAG_ARG_WORD, "by", FRAG_ARG_AT(struct frag_record_options, by), .words = by_words,
	  .value = "WAY", .def = "auto",
	  .help = "how calls of the driver are seen: cupti, preload (its entry points, "
		  "interposed), "
		  "or auto: cupti, and preload where that is missing or taken" },
	{ FRAG_ARG_FLAG, "stacks", FRAG_ARG_AT(struct frag_record_options, stacks),
	  .help = "also keep the host stack of each allocation, lines of Python included: larger "
		  "and slower" },
	{ FRAG_ARG_FLAG, "torch", FRAG_ARG_AT(struct frag_record_options, torch),
	  .help = "use PyTorch's own recorder: requests, not segments; PROGRAM is python or a "
		  ".py" },
	{ FRAG_ARG_FLAG, "no-pool", FRAG_ARG_AT(struct frag_record_options, no_pool),
	  .help = "make PyTorch, JAX and TensorFlow ask the driver for every request (slower); "
		  "what cuBLAS and its like take for themselves is left out" },
	{ 0 },
};

struct job {
	const struct frag_record_options *o;
	char folder[4096], stem[4112];
	char *library;
};

static bool asked(const struct frag_record_options *o)
{
	return !o->no_gpu && !o->torch;
}

static void prepare(const void *ctx)
{
	const struct job *j = ctx;

	setenv("CUFRAG_RECORD_CUDA", j->stem, 1);
	setenv("CUFRAG_RECORD_BY", by_words[j->o->by], 1);
	if (j->o->by != FRAG_RECORD_PRELOAD)
		setenv("CUDA_INJECTION64_PATH", j->library, 1);
	if (j->o->by != FRAG_RECORD_CUPTI)
		frag_record_preload(j->library);
	if (j->o->stacks)
		setenv("CUFRAG_RECORD_STACKS", "1", 1);
	if (!j->o->no_pool)
		return;
	setenv("CUFRAG_RECORD_APART", "1", 1);
	setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
	/* not platform: it asks for whole units of 2 MiB */
	setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async", 1);
	setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false", 1);
	setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async", 1);
}

static int run(const struct frag_cli *cli, const struct frag_record_options *o, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	struct job j = { .o = o };
	struct frag_nogpu_home home;
	int rc = 0;

	if (o->frames)
		return frag_fail(err, FRAG_EUSAGE,
				 "--frames needs --torch or --no-gpu; --stacks keeps host stacks");
	FRAG_TRY(frag_nogpu_home_open(&home, err));
	*status = 0;
	j.library = frag_path_join(home.home, "libcufrag_record.so");
	if (!j.library)
		rc = frag_fail_nomem(err, "path");
	if (!rc)
		rc = frag_record_folder(j.folder, sizeof(j.folder), err);
	if (!rc && o->by == FRAG_RECORD_PRELOAD && !frag_record_can_preload(j.library))
		rc = frag_fail(err, FRAG_EUSAGE,
			       "'%.200s' cannot be preloaded, because of a blank or colon in its "
			       "path; "
			       "set XDG_CACHE_HOME to another folder",
			       j.library);
	if (!rc) {
		snprintf(j.stem, sizeof(j.stem), "%s/cuda", j.folder);
		rc = frag_record_launch(program, prepare, &j, status, err);
	}
	if (!rc)
		rc = frag_record_gather(cli, j.folder, false, out, err);
	if (!rc && o->no_pool)
		frag_record_note_apart(cli, j.folder);
	if (!rc && o->stacks) {
		rc = frag_record_symbols(*out, err);
		if (rc)
			frag_trace_destroy(*out);
	}
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	if (frag_record_forget(j.folder) && rc) { /* nobody asks for hours of work again */
		frag_cli_note(cli, "what was recorded is left in '%s'", j.folder);
		frag_scratch_done(j.folder);
	} else {
		frag_record_folder_remove(j.folder);
	}
	frag_host_free(j.library);
	frag_nogpu_home_release(&home);
	return rc;
}

const struct frag_record_way frag_record_way_cuda = {
	.name = "by the driver",
	.summary = "any CUDA program, what it asks of the driver",
	.asked = asked,
	.run = run,
};
