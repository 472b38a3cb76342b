/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes of a sweep. A trace that crashes its reader, or wants all memory, takes its
 * worker with it and nothing else.
 *
 * Over the pipes, both ways: a length (uint64_t) and so many bytes, the path of a trace one way,
 * the answer the other; no bytes: memory was short.
 */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/term.h"

#define ANSWER_MAX (1ull << 30)

/* ---- inside of the worker ----------------------------------------------------------- */

/* All of the bytes: from `fd`, or to it. */
static bool move_all(int fd, char *p, size_t len, bool out)
{
	while (len) {
		ssize_t n = out ? write(fd, p, len) : read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_all(int fd, void *to, size_t len)
{
	return move_all(fd, to, len, false);
}

static bool write_all(int fd, const void *from, size_t len)
{
	return move_all(fd, (char *)(uintptr_t)from, len, true);
}

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

static void __attribute__((noreturn)) work(const struct frag_sweep *s, int from, int to)
{
	uint64_t len;
	char path[PATH_MAX + 1];

	/* what the terminal sends is for the process that hands out; this one ends with it */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bound_memory(s);
	while (read_all(from, &len, sizeof(len)) && len <= PATH_MAX && read_all(from, path, len)) {
		json_t *answer;
		char *text;

		path[len] = '\0';
		answer = frag_sweep_item_run(s, path);
		text = answer ? json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
		len = text ? strlen(text) : 0;
		if (!write_all(to, &len, sizeof(len)) || !write_all(to, text, len) || !text)
			break;
		free(text);
		json_decref(answer);
	}
	_exit(0);
}

/* ---- outside of it ------------------------------------------------------------------ */

int frag_sweep_worker_start(struct frag_sweep_worker *w, const struct frag_sweep *s,
			    struct frag_err *err)
{
	int there[2], back[2];

	*w = (struct frag_sweep_worker){ .task = SIZE_MAX };
	if (pipe2(there, O_CLOEXEC))
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	if (pipe2(back, O_CLOEXEC)) {
		close(there[0]);
		close(there[1]);
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	}
	w->pid = fork();
	if (!w->pid) {
		frag_progress_silence(); /* the line is the parent's */
		close(there[1]);
		close(back[0]);
		work(s, there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	w->to = there[1];
	w->from = back[0];
	if (w->pid < 0) {
		close(w->to);
		close(w->from);
		w->pid = 0;
		return frag_fail(err, FRAG_ENOMEM, "cannot start a worker: %s", strerror(errno));
	}
	fcntl(w->from, F_SETFL, O_NONBLOCK);
	return 0;
}

int frag_sweep_worker_give(struct frag_sweep_worker *w, size_t task, const char *path)
{
	uint64_t len = strlen(path);

	w->task = task;
	w->len = 0;
	w->need = 0;
	return write_all(w->to, &len, sizeof(len)) && write_all(w->to, path, len) ? 0 : -1;
}

static int take_some(struct frag_sweep_worker *w, void *to, size_t want, size_t *got)
{
	ssize_t n = read(w->from, to, want);

	if (n > 0) {
		*got = (size_t)n;
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int frag_sweep_worker_take(struct frag_sweep_worker *w)
{
	size_t got;
	int rc;

	if (!w->need) {
		uint64_t len;

		/* eight bytes of a pipe come at once or not at all */
		rc = take_some(w, &len, sizeof(len), &got);
		if (rc <= 0)
			return rc;
		if (got != sizeof(len) || !len || len > ANSWER_MAX)
			return -1;
		if (len + 1 > w->cap) {
			char *p = frag_host_realloc(w->answer, len + 1, 1);

			if (!p)
				return -1;
			w->answer = p;
			w->cap = len + 1;
		}
		w->need = len;
		w->len = 0;
	}
	while (w->len < w->need) {
		rc = take_some(w, w->answer + w->len, w->need - w->len, &got);
		if (rc <= 0)
			return rc;
		w->len += got;
	}
	w->answer[w->len] = '\0';
	return 1;
}

void frag_sweep_worker_end(struct frag_sweep_worker *w, char *why)
{
	const uint64_t stop = UINT64_MAX; /* no length of a path */
	int status = 0;

	snprintf(why, 120, "its worker ended");
	if (!w->pid)
		return;
	/* closing is not enough: workers that were started later hold a copy of this end */
	write_all(w->to, &stop, sizeof(stop));
	close(w->to);
	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		snprintf(why, 120, "its worker was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		snprintf(why, 120, "its worker ended with status %d", WEXITSTATUS(status));
	else
		snprintf(why, 120, "host memory exhausted");
	frag_host_free(w->answer);
	*w = (struct frag_sweep_worker){ .task = SIZE_MAX };
}
