/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes of a sweep. A trace that crashes its reader, or wants all memory, takes its
 * worker with it and nothing else.
 *
 * Its answer comes over a pipe, until its end.
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/term.h"
#include "lib/grow.h"

/* ---- inside of the worker ----------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDED false /* the sanitizer's own tables are terabytes of addresses */
#else
#define BOUNDED true
#endif

/* Its share of the machine's memory, so that the system never has to choose whom to kill. */
static void bound_memory(const struct frag_sweep *s)
{
	uint64_t bytes = s->memory_bytes;
	struct rlimit r;

	if (!BOUNDED)
		return;
	if (!bytes) {
		long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

		if (pages <= 0 || size <= 0)
			return;
		bytes = (uint64_t)pages * (uint64_t)size / 10 * 9 / FRAG_MAX(s->threads, 1u);
	}
	r.rlim_cur = r.rlim_max = (rlim_t)bytes;
	setrlimit(RLIMIT_AS, &r);
}

static void __attribute__((noreturn)) work(const struct frag_sweep *s, const char *path, int to)
{
	json_t *answer;
	char *text;

	/* what the terminal sends is for the process that hands out; this one ends with it */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	frag_progress_silence(); /* the line is the parent's */
	bound_memory(s);
	answer = frag_sweep_item_run(s, path);
	text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	for (size_t at = 0, len = text ? strlen(text) : 0; at < len;) {
		ssize_t n = write(to, text + at, len - at);

		if (n < 0 && errno != EINTR)
			_exit(1);
		at += (size_t)FRAG_MAX(n, 0);
	}
	_exit(0);
}

/* ---- outside of it ------------------------------------------------------------------ */

int frag_sweep_worker_start(struct frag_sweep_worker *w, const struct frag_sweep *s, size_t task,
			    const char *path, struct frag_err *err)
{
	int pipes[2];

	w->task = task;
	w->len = 0;
	if (pipe2(pipes, O_CLOEXEC))
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	w->pid = fork();
	if (!w->pid)
		work(s, path, pipes[1]);
	close(pipes[1]);
	w->from = pipes[0];
	if (w->pid < 0) {
		close(w->from);
		w->pid = 0;
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	}
	fcntl(w->from, F_SETFL, O_NONBLOCK);
	return 0;
}

/* Its status, once it has ended. */
static int reap(struct frag_sweep_worker *w)
{
	int status = 0;

	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	return status;
}

int frag_sweep_worker_take(struct frag_sweep_worker *w, char *why)
{
	ssize_t n = 1;
	int status;

	while (n > 0 && !frag_grow_to(&w->answer, w->len + (1 << 16), &w->cap, 1, "answer", NULL)) {
		n = read(w->from, w->answer + w->len, w->cap - w->len - 1);
		w->len += (size_t)FRAG_MAX(n, 0);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n)
		kill(w->pid, SIGKILL);
	status = reap(w);
	if (!n && !status && w->len) {
		w->answer[w->len] = '\0';
		return 1;
	}
	if (WIFSIGNALED(status))
		snprintf(why, 120, "its worker was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (status)
		snprintf(why, 120, "its worker ended with status %d", WEXITSTATUS(status));
	else
		snprintf(why, 120, "host memory exhausted");
	return -1;
}

void frag_sweep_worker_end(struct frag_sweep_worker *w)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		reap(w);
	}
	frag_host_free(w->answer);
	*w = (struct frag_sweep_worker){ 0 };
}
