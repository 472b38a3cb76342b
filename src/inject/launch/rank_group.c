/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a job as processes of this machine: what torchrun would do. See launch.h. */
#include "family.h"
#include "launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

unsigned frag_launch_free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 0;

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) &&
	    !getsockname(fd, (struct sockaddr *)&at, &len))
		port = ntohs(at.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

static void send_all(const pid_t *pids, unsigned count, int number)
{
	for (unsigned i = 0; i < count; i++)
		if (pids[i] > 0)
			kill(pids[i], number);
}

/* Takes an ended one out of the list; the first that failed ends the others, which wait for it. */
static void reap(pid_t *pids, unsigned count, unsigned *left, int *status)
{
	int state;
	pid_t pid;

	while ((pid = waitpid(-1, &state, WNOHANG)) > 0) {
		for (unsigned i = 0; i < count; i++) {
			if (pids[i] != pid)
				continue;
			pids[i] = 0;
			--*left;
			if (state && !*status) {
				*status = WIFEXITED(state) ? WEXITSTATUS(state)
							   : 128 + WTERMSIG(state);
				send_all(pids, count, SIGTERM);
			}
		}
	}
}

#define PATIENCE_S \
	20 /* for ranks that are to end: one failed, or cufrag was told to, or has ended */

/* Ranks that wait inside of a library for others do not hear that they are to end. */
static void lose_patience(const pid_t *pids, unsigned count, int *patience)
{
	if (--*patience)
		return;
	dprintf(STDERR_FILENO,
		"cufrag record: ranks that did not end within %d s are killed; they may have "
		"waited for others\n",
		PATIENCE_S);
	send_all(pids, count, SIGKILL);
}

/* A signal that a terminal or timeout sends to the group reaches every rank anyway; one that cufrag passes on came to this process
 * alone. *over: they had more than `memory` bytes, and were ended. */
static int await_all(pid_t *pids, unsigned count, unsigned left, const sigset_t *signals,
		     uint64_t memory, bool *over)
{
	const pid_t cufrag = getppid();
	int status = 0, patience = PATIENCE_S;
	bool ending = false, alone = false;

	while (left) {
		struct timespec look = { 3600, 0 };
		siginfo_t info;
		int number;

		reap(pids, count, &left, &status);
		if (!left)
			break;
		if (memory || status || ending)
			look.tv_sec = 1;
		if (memory && !*over && frag_launch_family_bytes(getpid()) > memory) {
			*over = true;
			send_all(pids, count, SIGKILL);
		}
		number = sigtimedwait(signals, &info, &look);
		ending |= number == SIGTERM;
		if ((status || ending) && number < 0)
			lose_patience(pids, count, &patience);
		if (!alone && getppid() != cufrag) {
			alone = true;
			dprintf(STDERR_FILENO, "cufrag record: cufrag was killed, so the ranks are "
					       "ended\n");
			send_all(pids, count, SIGTERM);
		} else if (number > 0 && number != SIGCHLD && info.si_code == SI_USER &&
			   info.si_pid == cufrag) {
			send_all(pids, count, number);
		}
	}
	return status;
}

static void __attribute__((noreturn)) become_rank(char **program, const sigset_t *before)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, before, NULL);
	frag_launch_become(program);
	dprintf(STDERR_FILENO, "cufrag record: cannot run '%.200s': %s\n", program[0],
		strerror(errno));
	_exit(127);
}

void frag_launch_become_ranks(char **program, unsigned count,
			      void (*prepare)(const void *ctx, unsigned i), const void *ctx,
			      uint64_t memory, const char *over_path)
{
	pid_t *pids = frag_host_calloc(count, sizeof(*pids));
	sigset_t signals, before;
	unsigned left = 0;
	bool over = false;
	int status;

	sigemptyset(&signals);
	for (const int *n = (const int[]){ SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 };
	     *n; n++)
		sigaddset(&signals, *n);
	sigprocmask(SIG_BLOCK, &signals, &before);
	signal(SIGCHLD, SIG_DFL);
	for (unsigned i = 0; pids && i < count; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prepare(ctx, i);
			become_rank(program, &before);
		}
		left += pids[i] > 0;
	}
	status = pids ? await_all(pids, count, left, &signals, memory, &over) : 127;
	if (over)
		close(open(over_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	_exit(left == count ? status : status ?: 127);
}
