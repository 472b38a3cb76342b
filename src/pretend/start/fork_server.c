/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_server.h. */
#include "fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/base.h>

#include "inject/launch/family.h"
#include "pretend/start/child.h"
#include "pretend/start/held_runs.h"

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
