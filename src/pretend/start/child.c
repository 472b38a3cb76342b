/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/clock.h>

#include "base/term.h"
#include "inject/launch/family.h"
#include "pretend/start/held_runs.h"

#define GRACE_NS 5000000000ull /* from asking a process to end to killing it */

static void enter(const struct frag_child *c)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* for frag_launch_family_kill */
	frag_progress_silence();
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
}

int frag_child_begin(struct frag_child *c, struct frag_err *err)
{
	c->begin_ns = frag_clock_ns();
	c->asked_ns = 0;
	fflush(NULL);
	c->pid = fork();
	if (!c->pid)
		enter(c);
	if (c->pid > 0)
		setpgid(c->pid, c->pid);
	if (c->pid >= 0)
		return 0;
	c->pid = 0;
	return frag_fail(err, FRAG_ENOMEM, "cannot start a process: %s", strerror(errno));
}

void frag_child_leave(int status)
{
	frag_launch_family_kill(getpid()); /* what the program left behind */
	_exit(status);
}

void frag_child_end(struct frag_child *c)
{
	uint64_t now = frag_clock_ns();

	if (!c->asked_ns) {
		kill(-c->pid, SIGTERM);
		c->asked_ns = now;
	} else if (now - c->asked_ns > GRACE_NS) {
		kill(c->pid, SIGSTOP);
		frag_launch_family_kill(c->pid);
		kill(-c->pid, SIGKILL);
	}
}

bool frag_child_ended(struct frag_child *c, int *state)
{
	siginfo_t info = { 0 };

	*state = 0;
	if (!waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid)
		return false;
	kill(-c->pid, SIGKILL); /* what it left behind */
	while (waitpid(c->pid, state, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return true;
}

/* ---- the server of forks ------------------------------------------------------------------- */

/* A socket that listens at FOLDER/ask, by a path that is short enough for any folder; -1: none. */
static int listen_in(const char *folder)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good;

	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/ask", dir);
	unlink(at.sun_path); /* of a server that was ended */
	good = fd >= 0 && dir >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)) &&
	       !listen(fd, 64);
	if (dir >= 0)
		close(dir);
	if (!good && fd >= 0)
		close(fd);
	return good ? fd : -1;
}

pid_t frag_forks_begin(const char *folder)
{
	char modules[4200], first[4200], number[16];
	struct frag_child c = { 0 };
	struct frag_err err;
	int fd = -1;

	snprintf(modules, sizeof(modules), "%s/modules", folder);
	snprintf(first, sizeof(first), "%s/first", folder);
	snprintf(c.log, sizeof(c.log), "%s/server.log", folder);
	if (!access(modules, R_OK) && !access(first, R_OK))
		fd = listen_in(folder);
	if (fd < 0)
		return 0;
	if (!frag_child_begin(&c, &err) && !c.pid) {
		fcntl(fd, F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", fd);
		/* for what modules write as they are loaded */
		if (!frag_held_make(folder, FRAG_GIB, &err))
			execl("/bin/sh", "sh", first, number, modules, NULL);
		_exit(127);
	}
	close(fd);
	return c.pid;
}

void frag_forks_end(pid_t server)
{
	if (server <= 0)
		return;
	kill(server, SIGSTOP);
	frag_launch_family_kill(server);
	kill(server, SIGKILL);
	while (waitpid(server, NULL, 0) < 0 && errno == EINTR)
		;
}
