/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record --torch: PyTorch's own recorder, switched on in each Python process of the program that
 * loads torch, by the same files that record on a pretended card. So it does not matter who starts
 * the processes: torchrun, accelerate, a script.
 */
#include "inject/launch/inject_files.h"
#include "inject/launch/python_parts.h"
#include "way.h"

#include <stdlib.h>
#include <string.h>

struct options {
	bool torch;
};

static const struct frag_arg asks[] = {
	{ FRAG_ARG_FLAG, "torch", FRAG_ARG_AT(struct options, torch),
	  .help = "use PyTorch's own recorder, which sees requests, not segments; PROGRAM is "
		  "Python, or starts it, as torchrun does: each process goes into the recording" },
	{ 0 },
};

static const struct frag_arg none[] = { { 0 } };

struct job {
	const struct frag_launch *l;
	const struct frag_inject_files *files;
	char folder[4096];
};

static void prepare(const void *ctx)
{
	const struct job *j = ctx;

	frag_launch_python(j->files);
	setenv(CUFRAG_RECORD, j->folder, 1);
	frag_launch_put_number(CUFRAG_RECORD_ENTRIES, j->l->max_entries);
	if (j->l->frames)
		setenv(CUFRAG_RECORD_FRAMES, "1", 1);
}

/* A real card, unless a record --no-gpu is around us. */
static int collect(const struct frag_launch *l, const char *folder, int status,
		   struct frag_trace **out, struct frag_err *err)
{
	FRAG_AUTO(frag_torch_parts_release) struct frag_torch_parts p = { 0 };

	if (l->collect && getenv(CUFRAG_PRETEND))
		return l->collect(l, folder, status, out, err);
	FRAG_TRY(frag_torch_parts_read(l, folder, &p, err));
	return frag_torch_parts_join(&p, out, err);
}

static int run(const struct frag_launch *l, const void *options, char **program,
	       struct frag_trace **out, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_inject_files_release) struct frag_inject_files files = { 0 };
	struct job j = { .l = l, .files = &files };
	int rc;

	(void)options;
	*status = 0;
	FRAG_TRY(frag_inject_files_open(&files, err));
	FRAG_TRY(frag_launch_folder(j.folder, sizeof(j.folder), err));
	rc = frag_launch_run(program, prepare, &j, status, err)
		     ?: collect(l, j.folder, *status, out, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	if (rc == FRAG_EINPUT && err) {
		size_t n = strlen(err->msg);

		snprintf(err->msg + n, sizeof(err->msg) - n, "; without a GPU, use --no-gpu");
	}
	frag_launch_folder_remove(j.folder);
	return rc;
}

const struct frag_record_way frag_record_way_torch = {
	.name = "--torch",
	.heading = "By PyTorch's own recorder",
	.asks = asks,
	.rows = none,
	.options_size = sizeof(struct options),
	.run = run,
};
