/* SPDX-License-Identifier: Apache-2.0 */
/* record: any CUDA program, with the library of src/inject/record in it; the default way. */
#include "way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/outfile.h"
#include "base/scratch.h"
#include "inject/launch/inject_files.h"

struct options {
	bool no_pool, stacks;
	enum { BY_AUTO, BY_CUPTI, BY_PRELOAD } by;
};

static const char *const by_words[] = { "auto", "cupti", "preload", NULL };

static const struct frag_arg rows[] = {
	{ FRAG_ARG_WORD, "by", FRAG_ARG_AT(struct options, by), .words = by_words, .value = "WAY",
	  .def = "auto",
	  .help = "how to see the driver's calls: cupti, preload (its entry points are "
		  "interposed), or auto: cupti, or preload where CUPTI is missing or in use" },
	{ FRAG_ARG_FLAG, "stacks", FRAG_ARG_AT(struct options, stacks), .silent = true,
	  .help = "the same as --frames" },
	{ FRAG_ARG_FLAG, "no-pool", FRAG_ARG_AT(struct options, no_pool), .rare = true,
	  .help = "make PyTorch, JAX and TensorFlow ask the driver for every request (slower); "
		  "what cuBLAS and similar libraries take for themselves is left out" },
	{ 0 },
};

struct job {
	const struct options *o;
	bool stacks;
	char folder[4096], stem[4112];
	const char *library;
};

static void prepare(const void *ctx)
{
	const struct job *j = ctx;

	setenv(CUFRAG_RECORD_CUDA, j->stem, 1);
	setenv(CUFRAG_RECORD_BY, by_words[j->o->by], 1);
	if (j->o->by != BY_PRELOAD)
		setenv("CUDA_INJECTION64_PATH", j->library, 1);
	if (j->o->by != BY_CUPTI)
		frag_launch_preload(j->library);
	if (j->stacks)
		setenv(CUFRAG_RECORD_STACKS, "1", 1);
	if (!j->o->no_pool)
		return;
	setenv(CUFRAG_RECORD_APART, "1", 1);
	setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
	/* not platform: it asks for whole units of 2 MiB */
	setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async", 1);
	setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false", 1);
	setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async", 1);
}

static int run_in_folder(const struct frag_launch *l, struct job *j, char **program,
			 struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;

	if (j->o->by == BY_PRELOAD && !frag_launch_can_preload(j->library))
		return frag_fail(err, FRAG_EUSAGE,
				 "cannot preload '%.200s': its path has a space or a colon; set "
				 "FRAG_SHARE to a copy of share/cufrag in another folder",
				 j->library);
	snprintf(j->stem, sizeof(j->stem), "%s/cuda", j->folder);
	FRAG_TRY(frag_launch_run(program, prepare, j, status, err));
	FRAG_TRY(frag_launch_gather(j->folder, &trace, err));
	if (j->o->no_pool) {
		char *lacks = strstr(trace->format ?: "", " without");

		/* the requests are a framework's: its allocator is not the driver's */
		if (lacks && lacks > trace->format + 3) {
			memmove(trace->format + 3, lacks, strlen(lacks) + 1);
			memcpy(trace->format, "csv", 3);
		}
		frag_launch_note_left_out(l, j->folder);
	}
	if (j->stacks)
		FRAG_TRY(frag_launch_source_lines(trace, err));
	*out = FRAG_GIVE(trace);
	return 0;
}

static int run(const struct frag_launch *l, const void *options, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_inject_files_release) struct frag_inject_files files = { 0 };
	FRAG_AUTO_FREE char *library = NULL;
	struct job j = { .o = options };
	int rc;

	j.stacks = j.o->stacks || l->frames;
	*status = 0;
	FRAG_TRY(frag_inject_files_open(&files, err));
	j.library = library = frag_path_join(files.folder, "libcufrag_record.so");
	FRAG_CHECK_ALLOC(library, "path", err);
	FRAG_TRY(frag_launch_folder(j.folder, sizeof(j.folder), err));
	rc = run_in_folder(l, &j, program, out, status, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	if (frag_launch_forget_pages(j.folder) && rc) { /* do not repeat hours of work */
		frag_launch_note(l, "the recordings of the processes are left in '%s'", j.folder);
		frag_scratch_done(j.folder);
	} else {
		frag_launch_folder_remove(j.folder);
	}
	return rc;
}

const struct frag_record_way frag_record_way_cuda = {
	.name = "by the driver",
	.heading = "On a card: what any CUDA program asks of the driver",
	.rows = rows,
	.options_size = sizeof(struct options),
	.run = run,
};
