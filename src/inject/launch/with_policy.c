/* SPDX-License-Identifier: Apache-2.0 */
/* A PyTorch program with a policy as its allocator (src/inject/live), recorded or not. */
#include "launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch.h"
#include "inject/launch/inject_files.h"

struct job {
	const struct frag_launch *l;
	const struct frag_launch_policy *o;
	const struct frag_inject_files *files;
	char folder[4096]; /* "" = nothing is recorded */
};

/* In the program's process, or in ours before it becomes the program. */
static void prepare(const void *ctx)
{
	const struct job *j = ctx;

	frag_launch_python(j->files);
	if (j->o->cards)
		j->o->cards(j->l, j->files, j->o->gpus);
	unsetenv("CUFRAG_RECORD"); /* of a record around us: the library records */
	setenv("CUFRAG_RUN", j->o->policy, 1);
	frag_launch_put_number("CUFRAG_RUN_SEED", j->l->target.seed);
	if (frag_target_limit(&j->l->target) != UINT64_MAX)
		frag_launch_put_number("CUFRAG_RUN_LIMIT", frag_target_limit(&j->l->target));
	if (*j->folder)
		setenv("CUFRAG_RUN_FOLDER", j->folder, 1);
}

static int become(const struct job *j, char **program, struct frag_err *err)
{
	prepare(j);
	fflush(NULL);
	frag_launch_become(program);
	return frag_fail(err, FRAG_EUSAGE, "cannot run '%.200s': %s", program[0], strerror(errno));
}

/*
 * Beside the file that is to come, where one finds it: what each process records can be read while
 * it runs, and is there should this process be killed.
 */
static int make_folder(struct job *j, struct frag_err *err)
{
	int n = snprintf(j->folder, sizeof(j->folder), "%s.parts", j->o->record);
	const char *why = n < (int)sizeof(j->folder) ? NULL : "its name is too long";
	char *full;

	if (!why && !mkdir(j->folder, 0777)) {
		/* the program may change its folder */
		full = realpath(j->folder, NULL);
		snprintf(j->folder, sizeof(j->folder), "%s", full ? full : "");
		free(full);
		return *j->folder ? 0 : frag_fail_nomem(err, "path");
	}
	if (!why && errno == EEXIST)
		why = "it exists: another run is recording, or one was killed; the .cft files in "
		      "it can be read";
	frag_fail(err, FRAG_EOUTPUT, "cannot create the folder '%.300s': %s", j->folder,
		  why ? why : strerror(errno));
	j->folder[0] = '\0';
	return FRAG_EOUTPUT;
}

static int record(struct job *j, char **program, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	int rc = make_folder(j, err);

	frag_launch_outlive_readers();
	if (!rc)
		rc = frag_launch_run(program, prepare, j, status, err)
			     ?: frag_launch_gather(j->folder, &trace, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	if (!rc)
		rc = frag_launch_name_as_file(trace, j->o->record, err)
			     ?: frag_trace_write_cft(trace, j->o->record, err);
	if (frag_launch_forget_pages(j->folder) && rc)
		frag_launch_note(j->l, "the recordings of the processes are left in '%s'",
				 j->folder);
	else if (*j->folder)
		frag_scratch_remove_folder(j->folder);
	return rc;
}

int frag_launch_with_policy(const struct frag_launch *l, const struct frag_launch_policy *o,
			    char **program, int *status, struct frag_err *err)
{
	FRAG_AUTO(frag_inject_files_release) struct frag_inject_files files = { 0 };
	struct job j = { .l = l, .o = o, .files = &files };

	*status = 0;
	FRAG_TRY(frag_inject_files_open(&files, err));
	return o->record ? record(&j, program, status, err) : become(&j, program, err);
}
