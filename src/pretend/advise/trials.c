/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of runs; see trial_internal.h. */
#include "trial_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/term.h"
#include "pretend/start/fork_server.h"

#define DAY 86400u
#define NO_STATUS 126 /* of a run that was not one */

void frag_trials_path(const struct frag_advising *a, unsigned n, const char *name, char *path,
		      size_t room)
{
	snprintf(path, room, "%s/%u%s%s", a->trials.folder, n, *name ? "/" : "", name);
}

/* path[4096]: of a new run's folder. */
static int make_folder(struct frag_advising *a, unsigned *n, char *path, struct frag_err *err)
{
	*n = a->trials.count++;
	frag_trials_path(a, *n, "", path, 4096);
	return mkdir(path, 0700) && errno != EEXIST
		       ? frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				   strerror(errno))
		       : 0;
}

/* ---- with changes ------------------------------------------------------------------------- */

/* Runs the program, in a process of its own, which ends with its status. */
static void __attribute__((noreturn))
work(const struct frag_advising *a, unsigned n, const char *folder, const char *changes)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log, status;
	struct frag_launch launch = a->trials.launch;
	char path[4096];
	struct frag_err err;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	frag_progress_silence();
	setpgid(0, 0);
	frag_trials_path(a, n, "log", path, sizeof(path));
	log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	launch.stdout_to_stderr = false;
	setenv(CUFRAG_CHANGES, changes, 1);
	frag_launch_put_path(CUFRAG_NOGPU_FORKS, a->trials.folder, "ask");
	if (!frag_pretend_run_into(&launch, a->pretend, a->program.words, folder, &status, &err))
		_exit(status);
	fprintf(stderr, "%s\n", err.msg);
	_exit(NO_STATUS);
}

int frag_trials_start(struct frag_advising *a, const char *changes, struct frag_trial_run *r,
		      struct frag_err *err)
{
	char folder[4096];

	r->until_ns = frag_clock_ns() + a->seconds * 1000000000ull;
	FRAG_TRY(make_folder(a, &r->n, folder, err));
	fflush(NULL);
	r->pid = fork();
	if (!r->pid)
		work(a, r->n, folder, changes);
	if (r->pid < 0)
		return frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
				 strerror(errno));
	setpgid(r->pid, r->pid);
	return 0;
}

bool frag_trials_ended(const struct frag_trial_run *r, int *status, bool *late)
{
	int state;

	*late = frag_clock_ns() > r->until_ns;
	if (*late)
		kill(-r->pid, SIGKILL);
	if (waitpid(r->pid, &state, *late ? 0 : WNOHANG) != r->pid)
		return false;
	kill(-r->pid, SIGKILL); /* what it started and left */
	*status = WIFEXITED(state) ? WEXITSTATUS(state) : NO_STATUS;
	return true;
}

void frag_trials_stop(const struct frag_trial_run *r)
{
	kill(-r->pid, SIGTERM);
	waitpid(r->pid, NULL, 0);
}

/* ---- as it is, and the whole ---------------------------------------------------------------- */

static bool is_late(void *until_ns)
{
	return frag_clock_ns() > *(uint64_t *)until_ns;
}

int frag_trials_begin(struct frag_advising *a, struct frag_err *err)
{
	struct frag_trials *t = &a->trials;
	const uint64_t begun = frag_clock_ns();
	uint64_t until = begun + (a->seconds ? a->seconds : DAY) * 1000000000ull;
	char folder[4096];
	unsigned n;
	int rc;

	*t = (struct frag_trials){ .launch = frag_program_launch(&a->program) };
	t->launch.stdout_to_stderr = true;
	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	FRAG_TRY(make_folder(a, &n, folder, err));
	setenv(CUFRAG_TRIALS, "1", 1);
	frag_launch_put_path(CUFRAG_NOGPU_MODULES, t->folder, "modules");
	frag_launch_end_when(is_late, &until);
	rc = frag_pretend_run_into(&t->launch, a->pretend, a->program.words, folder, &t->status,
				   err);
	frag_launch_end_when(NULL, NULL);
	unsetenv(CUFRAG_TRIALS);
	unsetenv(CUFRAG_NOGPU_MODULES);
	t->took_ns = frag_clock_ns() - begun;
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	FRAG_TRY(rc);
	if (frag_launch_was_done())
		return frag_fail(err, FRAG_EINPUT, "the program ran longer than %u s (--time)",
				 a->seconds);
	t->server = frag_forks_begin(t->folder);
	return 0;
}

void frag_trials_end(struct frag_advising *a)
{
	if (!*a->trials.folder)
		return;
	frag_forks_end(a->trials.server);
	frag_launch_folder_remove(a->trials.folder);
	a->trials.folder[0] = '\0';
}
