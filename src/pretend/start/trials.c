/* SPDX-License-Identifier: Apache-2.0 */
/* A program run several times, with changes in it; see trials.h. */
#include "trials.h"

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

void frag_trials_path(const struct frag_trials *t, unsigned n, const char *name, char *path,
		      size_t room)
{
	snprintf(path, room, "%s/%u%s%s", t->folder, n, *name ? "/" : "", name);
}

static int make_folder(const struct frag_trials *t, unsigned n, struct frag_err *err)
{
	char path[4096];

	frag_trials_path(t, n, "", path, sizeof(path));
	return mkdir(path, 0700) && errno != EEXIST
		       ? frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				   strerror(errno))
		       : 0;
}

/* ---- with changes ------------------------------------------------------------------------- */

/* Runs the program, in a process of its own, which ends with its status. */
static void __attribute__((noreturn))
work(const struct frag_trials *t, unsigned n, const char *changes)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log, status;
	struct frag_launch launch = t->launch;
	char path[4096];
	struct frag_err err;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	frag_progress_silence();
	setpgid(0, 0);
	frag_trials_path(t, n, "log", path, sizeof(path));
	log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	launch.stdout_to_stderr = false;
	setenv(CUFRAG_CHANGES, changes, 1);
	frag_launch_put_path(CUFRAG_NOGPU_FORKS, t->folder, "ask");
	frag_trials_path(t, n, "", path, sizeof(path));
	if (!frag_pretend_run_into(&launch, t->pretend, t->program, path, &status, &err))
		_exit(status);
	fprintf(stderr, "%s\n", err.msg);
	_exit(NO_STATUS);
}

int frag_trials_start(struct frag_trials *t, const char *changes, unsigned seconds, unsigned *n,
		      struct frag_err *err)
{
	if (t->count == FRAG_TRIALS_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u runs", FRAG_TRIALS_MAX);
	*n = t->count++;
	t->until_ns[*n] = frag_clock_ns() + seconds * 1000000000ull;
	FRAG_TRY(make_folder(t, *n, err));
	fflush(NULL);
	t->pids[*n] = fork();
	if (!t->pids[*n])
		work(t, *n, changes);
	if (t->pids[*n] > 0)
		setpgid(t->pids[*n], t->pids[*n]);
	return t->pids[*n] > 0 ? 0
			       : frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
					   strerror(errno));
}

bool frag_trials_ended(struct frag_trials *t, unsigned n, int *status, bool *late)
{
	const pid_t pid = t->pids[n];
	int state;

	*late = frag_clock_ns() > t->until_ns[n];
	if (*late)
		kill(-pid, SIGKILL);
	if (waitpid(pid, &state, *late ? 0 : WNOHANG) != pid)
		return false;
	kill(-pid, SIGKILL); /* what it started and left */
	t->pids[n] = 0;
	*status = WIFEXITED(state) ? WEXITSTATUS(state) : NO_STATUS;
	return true;
}

/* ---- as it is, and the whole ---------------------------------------------------------------- */

static bool is_late(void *until_ns)
{
	return frag_clock_ns() > *(uint64_t *)until_ns;
}

int frag_trials_begin(struct frag_trials *t, struct frag_err *err)
{
	const uint64_t begun = frag_clock_ns();
	uint64_t until = begun + (t->seconds ? t->seconds : DAY) * 1000000000ull;
	char path[4096];
	int rc;

	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	FRAG_TRY(make_folder(t, t->count, err));
	frag_trials_path(t, t->count++, "", path, sizeof(path));
	setenv(CUFRAG_TRIALS, "1", 1);
	frag_launch_put_path(CUFRAG_NOGPU_MODULES, t->folder, "modules");
	frag_launch_end_when(is_late, &until);
	rc = frag_pretend_run_into(&t->launch, t->pretend, t->program, path, &t->status, err);
	frag_launch_end_when(NULL, NULL);
	unsetenv(CUFRAG_TRIALS);
	unsetenv(CUFRAG_NOGPU_MODULES);
	t->took_ns = frag_clock_ns() - begun;
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	FRAG_TRY(rc);
	if (frag_launch_was_done())
		return frag_fail(err, FRAG_EINPUT, "the program ran longer than %u s (--time)",
				 t->seconds);
	t->server = frag_forks_begin(t->folder);
	return 0;
}

void frag_trials_end(struct frag_trials *t)
{
	if (!*t->folder)
		return;
	for (unsigned n = 0; n < t->count; n++) {
		if (t->pids[n] <= 0)
			continue;
		kill(-t->pids[n], SIGTERM);
		waitpid(t->pids[n], NULL, 0);
	}
	frag_forks_end(t->server);
	frag_launch_folder_remove(t->folder);
	t->folder[0] = '\0';
}
