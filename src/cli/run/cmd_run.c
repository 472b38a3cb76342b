/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag run: a PyTorch program with a policy of this repository as its allocator. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record/record.h"

struct options {
	const char *policy, *record;
	bool no_gpu;
	unsigned gpus;
};

struct job {
	const struct frag_cli *cli;
	const struct options *o;
	struct frag_nogpu_home home;
	char folder[4096]; /* "" = nothing is recorded */
};

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", 'p', FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .def = "vmm",
	  .help = "the policy that serves the program, as any command takes it (default: vmm)" },
	{ FRAG_ARG_TEXT, "record", FRAG_ARG_AT(struct options, record), .value = "FILE",
	  .help = "also record all requests, as a .cft; while the program runs, FILE.parts holds "
		  "one of each process" },
	{ FRAG_ARG_FLAG, "no-gpu", FRAG_ARG_AT(struct options, no_gpu),
	  .help = "on a pretended card (--gpu), without a real one; see cufrag record" },
	{ FRAG_ARG_UINT, "gpus", FRAG_ARG_AT(struct options, gpus), .value = "N", .min = 1,
	  .max = 16, .help = "pretended cards in the machine (default: 1)" },
	{ 0 },
};

/* In the program's process, or in ours before it becomes the program. */
static void prepare(const void *ctx)
{
	const struct job *j = ctx;
	uint64_t limit = frag_target_limit(&j->cli->target);
	char text[32];

	frag_nogpu_python(&j->home);
	if (j->o->no_gpu)
		frag_nogpu_environment(j->cli, &j->home, j->o->gpus, 1, "rules");
	unsetenv("CUFRAG_RECORD"); /* of a record around us: the library records */
	setenv("CUFRAG_RUN", j->o->policy, 1);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)j->cli->target.seed);
	setenv("CUFRAG_RUN_SEED", text, 1);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)limit);
	if (limit != UINT64_MAX)
		setenv("CUFRAG_RUN_LIMIT", text, 1);
	if (*j->folder)
		setenv("CUFRAG_RUN_FOLDER", j->folder, 1);
}

static int become(const struct job *j, char **program, struct frag_err *err)
{
	prepare(j);
	fflush(NULL);
	execvp(program[0], program);
	return frag_fail(err, FRAG_EUSAGE, "cannot run '%.200s': %s", program[0], strerror(errno));
}

/*
 * Beside the file that is to come, where one finds it: what each process records can be read while it
 * runs, and is there should this process be killed.
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
		why = "it is there already: another run records, or one was killed; its .cft files "
		      "can be read";
	frag_fail(err, FRAG_EOUTPUT, "cannot create the folder '%.300s': %s", j->folder,
		  why ? why : strerror(errno));
	j->folder[0] = '\0';
	return FRAG_EOUTPUT;
}

static int record(struct job *j, char **program, int *status, struct frag_err *err)
{
	struct frag_trace *trace = NULL;
	int rc = make_folder(j, err);

	frag_record_outlive_readers();
	if (!rc)
		rc = frag_record_launch(program, prepare, j, status, err)
			     ?: frag_record_gather(j->cli, j->folder, false, &trace, err);
	if (rc == FRAG_EINPUT && *status)
		frag_err_prefix(err, "the program ended with status %d", *status);
	if (!rc)
		rc = frag_record_name(trace, j->o->record, err)
			     ?: frag_trace_write_cft(trace, j->o->record, err);
	frag_trace_destroy(trace);
	if (frag_record_forget(j->folder) && rc)
		frag_cli_note(j->cli, "what was recorded is left in '%s'", j->folder);
	else
		frag_record_folder_remove(j->folder);
	return rc;
}

static int check_policy(const char *text, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	return frag_policy_spec_parse(text, &spec, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct job j = { .cli = cli, .o = values };
	int rc, status = 0;

	FRAG_TRY(check_policy(j.o->policy, err));
	FRAG_TRY(frag_nogpu_home_open(&j.home, err));
	rc = j.o->record ? record(&j, cli->program, &status, err) : become(&j, cli->program, err);
	frag_nogpu_home_release(&j.home);
	return rc ? rc : status;
}

const struct frag_cmd frag_cmd_run = {
	.name = "run",
	.summary = "run a PyTorch program with a policy as its allocator",
	.group = FRAG_GROUP_USE,
	.program = "PROGRAM",
	.about = "Runs a program whose PyTorch (2.1 or newer) takes its memory from a policy of "
		 "cufrag: the same policy that compare and replay simulate, on the real card, with "
		 "--no-gpu on a pretended one. The program is unchanged; its processes, as those "
		 "of torchrun, do the same. --limit is what each process may reserve on each card. "
		 "Exits as the program does.",
	.examples = "  cufrag run --policy vmm -- python train.py\n"
		    "  cufrag run --policy limit:bytes=20G/pytorch --record run.cft -- python "
		    "train.py\n"
		    "  cufrag run -- torchrun --nproc-per-node 4 train.py\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_SEED,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
};
