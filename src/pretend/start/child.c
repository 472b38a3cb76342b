/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/clock.h>

#include "base/term.h"
#include "inject/launch/family.h"

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
