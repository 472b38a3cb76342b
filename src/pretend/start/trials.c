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

#include "base/outfile.h"
#include "base/term.h"
#include "pretend/start/fork_server.h"

#define DAY 86400u
#define CANNOT_START 127 /* of a run that leaves no status */

void frag_trials_path(const struct frag_trials *t, unsigned n, const char *name, char *path,
		      size_t room)
{
	snprintf(path, room, "%s/%u%s%s", t->folder, n, *name ? "/" : "", name);
}

/* ---- in the process of a run ------------------------------------------------------------ */

static void send_to_files(const struct frag_trials *t, unsigned n)
{
	char path[4096];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log;

	frag_trials_path(t, n, "log", path, sizeof(path));
	log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
}

static void put_status(const struct frag_trials *t, unsigned n, int status)
{
	char path[4096], text[16];
	struct frag_err err;

	frag_trials_path(t, n, "status", path, sizeof(path));
	snprintf(text, sizeof(text), "%d\n", status);
	(void)frag_outfile_put(path, text, strlen(text), &err);
}

/* Starts the program as run n. Errors of the run as it is go to the terminal, those of others to their log. */
static void __attribute__((noreturn))
work(const struct frag_trials *t, unsigned n, const char *changes)
{
	struct frag_launch launch = t->launch;
	char path[4096];
	struct frag_err err;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	frag_progress_silence();
	if (*changes) {
		setpgid(0, 0);
		send_to_files(t, n);
		launch.stdout_to_stderr = false;
		setenv(CUFRAG_CHANGES, changes, 1);
		frag_launch_put_path(CUFRAG_NOGPU_FORKS, t->folder, "ask");
	} else {
		setenv(CUFRAG_TRIALS, "1", 1);
		frag_launch_put_path(CUFRAG_NOGPU_MODULES, t->folder, "modules");
	}
	frag_trials_path(t, n, "", path, sizeof(path));
	if (frag_pretend_run_into(&launch, t->pretend, t->program, path, &status, &err)) {
		if (err.code == FRAG_EUSAGE)
			_exit(CANNOT_START); /* frag_trials_begin says it */
		fprintf(stderr, "%s\n", err.msg);
		_exit(126);
	}
	put_status(t, n, status);
	_exit(0);
}

/* ---- all runs ----------------------------------------------------------------------------- */

int frag_trials_start(struct frag_trials *t, const char *changes, unsigned seconds, unsigned *n,
		      struct frag_err *err)
{
	char path[4096];

	if (t->count == FRAG_TRIALS_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u runs", FRAG_TRIALS_MAX);
	*n = t->count++;
	t->until_ns[*n] = frag_clock_ns() + (seconds ? seconds : DAY) * 1000000000ull;
	frag_trials_path(t, *n, "", path, sizeof(path));
	if (mkdir(path, 0700) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				 strerror(errno));
	fflush(NULL);
	t->pids[*n] = fork();
	if (!t->pids[*n])
		work(t, *n, changes);
	if (*changes && t->pids[*n] > 0)
		setpgid(t->pids[*n], t->pids[*n]);
	return t->pids[*n] > 0 ? 0
			       : frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
					   strerror(errno));
}

/* What the run left, else how its process ended. */
static int status_of(const struct frag_trials *t, unsigned n, int state)
{
	char path[4096], text[32] = "";
	FRAG_AUTO_FILE FILE *f = NULL;

	frag_trials_path(t, n, "status", path, sizeof(path));
	f = fopen(path, "r");
	if (f && fgets(text, sizeof(text), f))
		return (int)strtol(text, NULL, 10);
	return WIFEXITED(state) && WEXITSTATUS(state) ? WEXITSTATUS(state) : 126;
}

bool frag_trials_ended(struct frag_trials *t, unsigned n, int *status, bool *late)
{
	const pid_t pid = t->pids[n];
	int state;

	*late = frag_clock_ns() > t->until_ns[n];
	if (*late)
		kill(n ? -pid : pid, SIGKILL);
	if (waitpid(pid, &state, *late ? 0 : WNOHANG) != pid)
		return false;
	if (n)
		kill(-pid, SIGKILL); /* what it started and left */
	t->pids[n] = 0;
	*status = status_of(t, n, state);
	return true;
}

int frag_trials_begin(struct frag_trials *t, struct frag_err *err)
{
	char path[4096];
	unsigned n;
	bool late;

	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	t->took_ns = frag_clock_ns();
	FRAG_TRY(frag_trials_start(t, "", t->seconds, &n, err));
	while (!frag_trials_ended(t, n, &t->status, &late)) {
		if (frag_launch_interrupted())
			break;
		usleep(10000);
	}
	t->took_ns = frag_clock_ns() - t->took_ns;
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	if (late)
		return frag_fail(err, FRAG_EINPUT, "the program ran longer than %u s (--time)",
				 t->seconds);
	frag_trials_path(t, n, "status", path, sizeof(path));
	if (t->status == CANNOT_START && access(path, F_OK))
		return frag_fail(err, FRAG_EUSAGE, "cannot run '%.200s'", t->program[0]);
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
		kill(n ? -t->pids[n] : t->pids[n], SIGTERM);
		waitpid(t->pids[n], NULL, 0);
	}
	frag_forks_end(t->server);
	frag_launch_folder_remove(t->folder);
	t->folder[0] = '\0';
}
