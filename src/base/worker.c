/* SPDX-License-Identifier: Apache-2.0 */
/* See worker.h. */
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/interrupt.h"
#include "base/term.h"

#define CHUNK ((size_t)1 << 16)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDED false /* the sanitizer's own tables are terabytes of addresses */
#else
#define BOUNDED true
#endif

/* ---- inside of the worker ----------------------------------------------------------- */

void frag_worker_bound(uint64_t bytes, unsigned share)
{
	struct rlimit r;

	if (!BOUNDED)
		return;
	if (!bytes) {
		long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

		if (pages <= 0 || size <= 0)
			return;
		bytes = (uint64_t)pages * (uint64_t)size / 10 * 9 / FRAG_MAX(share, 1u);
	}
	r.rlim_cur = r.rlim_max = (rlim_t)bytes;
	setrlimit(RLIMIT_AS, &r);
}

void frag_worker_tell(int to, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(to, text + at, len - at);

		if (n < 0 && errno != EINTR)
			_exit(1);
		at += (size_t)FRAG_MAX(n, 0);
	}
}

/* ---- outside of it ------------------------------------------------------------------ */

int frag_worker_start(struct frag_worker *w, size_t task,
		      void (*work)(const void *ctx, size_t task, int to), const void *ctx,
		      struct frag_err *err)
{
	int pipes[2];

	w->task = task;
	w->len = 0;
	if (pipe2(pipes, O_CLOEXEC))
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	w->pid = fork();
	if (!w->pid) {
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		frag_progress_silence(); /* the line is the parent's */
		work(ctx, task, pipes[1]);
		_exit(0);
	}
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

/* Until one of them has something to say, at most `ms`. false: all are idle. */
static bool wait_for(const struct frag_worker *list, size_t count, int ms)
{
	struct pollfd fds[256];
	nfds_t n = 0;

	for (size_t i = 0; i < count && n < FRAG_ARRAY_LEN(fds); i++)
		if (list[i].pid)
			fds[n++] = (struct pollfd){ .fd = list[i].from, .events = POLLIN };
	if (n && poll(fds, n, ms) < 0) /* not to spin where it cannot wait */
		usleep((useconds_t)ms * 1000);
	return n > 0;
}

int frag_workers_run(struct frag_worker *list, size_t count,
		     int (*look)(void *ctx, struct frag_worker *w, struct frag_err *err), void *ctx,
		     struct frag_err *err)
{
	do {
		for (size_t i = 0; i < count; i++)
			FRAG_TRY(look(ctx, &list[i], err));
	} while (!frag_interrupted() && wait_for(list, count, 200));
	return 0;
}

/* Its status, once it has ended. */
static int reap(struct frag_worker *w)
{
	int status = 0;

	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	return status;
}

static bool grow(struct frag_worker *w)
{
	char *more;

	if (w->cap - w->len > CHUNK)
		return true;
	more = frag_host_realloc(w->answer, 2 * w->cap + 2 * CHUNK, 1);
	if (!more)
		return false;
	w->answer = more;
	w->cap = 2 * w->cap + 2 * CHUNK;
	return true;
}

int frag_worker_take(struct frag_worker *w, char *why)
{
	ssize_t n = 1;
	int status;

	while (n > 0 && grow(w)) {
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

void frag_worker_end(struct frag_worker *w)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		reap(w);
	}
	frag_host_free(w->answer);
	*w = (struct frag_worker){ 0 };
}
