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

#define DAY 86400u

void frag_trials_path(const struct frag_trials *t, unsigned n, const char *name, char *path,
		      size_t room)
{
	snprintf(path, room, "%s/%u%s%s", t->folder, n, *name ? "/" : "", name);
}

static bool exists(const struct frag_trials *t, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", t->folder, name);
	return !access(path, F_OK);
}

/* ---- a process for each start ---------------------------------------------------------- */

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
	snprintf(text, sizeof(text), "%d 0\n", status);
	(void)frag_outfile_put(path, text, strlen(text), &err);
}

/* In a process of its own: starts the program as run n. Its errors go to the terminal or to the log. */
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
		setenv("CUFRAG_CHANGES", changes, 1);
	} else {
		setenv("CUFRAG_TRIALS", t->folder, 1);
		if (!t->pretend->ranks && !t->pretend->world)
			frag_launch_put_number("CUFRAG_TRIALS_PARENT", (unsigned)getpid());
	}
	frag_trials_path(t, n, "", path, sizeof(path));
	if (frag_pretend_run_into(&launch, t->pretend, t->program, path, &status, &err)) {
		if (err.code == FRAG_EUSAGE)
			_exit(127); /* the parent reports it */
		fprintf(stderr, "%s\n", err.msg);
		_exit(126);
	}
	put_status(t, n, status);
	_exit(0);
}

static int begin_process(struct frag_trials *t, unsigned n, const char *changes,
			 struct frag_err *err)
{
	char path[4096];

	frag_trials_path(t, n, "", path, sizeof(path));
	if (mkdir(path, 0700) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				 strerror(errno));
	fflush(NULL);
	t->pids[n] = fork();
	if (!t->pids[n])
		work(t, n, changes);
	return t->pids[n] > 0 ? 0
			      : frag_fail(err, FRAG_EDEVICE, "cannot start the program: %s",
					  strerror(errno));
}

/* ---- one after the other ------------------------------------------------------------------ */

int frag_trials_start(struct frag_trials *t, const char *changes, unsigned seconds, unsigned *n,
		      struct frag_err *err)
{
	char line[1000];
	int len;

	if (t->count == FRAG_TRIALS_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u runs", FRAG_TRIALS_MAX);
	*n = t->count++;
	seconds = seconds ? seconds : DAY;
	t->until_ns[*n] = frag_clock_ns() + seconds * 1000000000ull;
	if (t->ask < 0)
		return begin_process(t, *n, changes, err);
	len = snprintf(line, sizeof(line), "%u %u %s\n", *n, seconds, changes);
	if (len < 0 || (size_t)len >= sizeof(line) || write(t->ask, line, (size_t)len) != len)
		return frag_fail(err, FRAG_EDEVICE,
				 "the process that starts the runs has ended: %s", strerror(errno));
	return 0;
}

static bool read_status(const struct frag_trials *t, unsigned n, int *status, bool *late)
{
	char path[4096], text[32] = "", *end;
	FRAG_AUTO_FILE FILE *f = NULL;

	frag_trials_path(t, n, "status", path, sizeof(path));
	f = fopen(path, "r");
	if (!f)
		return false;
	*status = fgets(text, sizeof(text), f) ? (int)strtol(text, &end, 10) : 126;
	*late = *text && strtol(end, NULL, 10);
	return true;
}

bool frag_trials_ended(struct frag_trials *t, unsigned n, int *status, bool *late)
{
	bool over = frag_clock_ns() > t->until_ns[n];
	int state;

	*late = false;
	if (t->pids[n] <= 0) /* the server measures the time; it may be gone */
		return read_status(t, n, status, late) ||
		       (t->pids[0] > 0 && waitpid(t->pids[0], &state, WNOHANG) == t->pids[0] &&
			(t->pids[0] = -1, *status = 126, true)) ||
		       (t->pids[0] == -1 && (*status = 126, true));
	if (over)
		kill(-t->pids[n], SIGKILL);
	if (waitpid(t->pids[n], &state, over ? 0 : WNOHANG) != t->pids[n])
		return false;
	if (n)
		kill(-t->pids[n], SIGKILL); /* its orphans */
	t->pids[n] = -1;
	if (!read_status(t, n, status, late))
		*status = WIFEXITED(state) && WEXITSTATUS(state) ? WEXITSTATUS(state) : 126;
	*late = over;
	return true;
}

/* Waits until the server is ready, or the program has ended without one. */
static int await_server(struct frag_trials *t, struct frag_err *err)
{
	char path[4096];
	int state;

	snprintf(path, sizeof(path), "%s/ask", t->folder);
	while (!exists(t, "ready")) {
		if (waitpid(t->pids[0], &state, WNOHANG) == t->pids[0]) {
			t->pids[0] = -1;
			if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
				return frag_fail(err, FRAG_EUSAGE, "cannot run '%.200s'",
						 t->program[0]);
			return 0;
		}
		if (frag_launch_interrupted() || frag_clock_ns() > t->until_ns[0])
			return frag_launch_interrupted()
				       ? frag_fail(err, FRAG_EINTR, "interrupted")
				       : frag_fail(err, FRAG_EINPUT,
						   "the program ran longer than %u s (--time)",
						   t->seconds);
		usleep(10000);
	}
	while ((t->ask = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
	       !frag_launch_interrupted())
		usleep(1000);
	return 0;
}

int frag_trials_begin(struct frag_trials *t, struct frag_err *err)
{
	char path[4096];
	unsigned n;
	bool late = false;

	t->ask = -1;
	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	snprintf(path, sizeof(path), "%s/ask", t->folder);
	if (mkfifo(path, 0600))
		return frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				 strerror(errno));
	t->took_ns = frag_clock_ns();
	FRAG_TRY(frag_trials_start(t, "", t->seconds, &n, err));
	FRAG_TRY(await_server(t, err));
	if (t->ask >= 0) {
		t->count = 0;
		t->took_ns = frag_clock_ns();
		FRAG_TRY(frag_trials_start(t, "", t->seconds, &n, err));
		while (!read_status(t, n, &t->status, &late) && !frag_launch_interrupted() &&
		       waitpid(t->pids[0], &t->status, WNOHANG) != t->pids[0])
			usleep(10000);
	} else if (!read_status(t, n, &t->status, &late)) {
		t->status = 126;
	}
	t->took_ns = frag_clock_ns() - t->took_ns;
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	return late ? frag_fail(err, FRAG_EINPUT, "the program ran longer than %u s (--time)",
				t->seconds)
		    : 0;
}

void frag_trials_end(struct frag_trials *t)
{
	int state;

	if (!*t->folder)
		return;
	if (t->ask >= 0)
		close(t->ask);
	for (unsigned n = 0; n < t->count || !n; n++) {
		if (t->pids[n] <= 0)
			continue;
		/* the server ends when its client is gone, unless a run is still active */
		kill(n ? -t->pids[n] : t->pids[n], SIGTERM);
		waitpid(t->pids[n], &state, 0);
	}
	frag_launch_folder_remove(t->folder);
	t->folder[0] = '\0';
}
