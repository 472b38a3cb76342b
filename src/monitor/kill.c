/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a process that the user chose on the screen. Between the choice and the signal the process
 * may end and its number go to another; so it is held by a descriptor (pidfd), and its time of
 * start compared, before it is signalled.
 */
#include "monitor.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc has functions for them only since 2.36 */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int frag_monitor_may_end(const struct frag_monitor_process *p, struct frag_err *err)
{
	if (p->pid == 1)
		return frag_fail(err, FRAG_EUSAGE, "pid 1 is the system itself");
	if (!p->pid || !p->start)
		return frag_fail(err, FRAG_EUSAGE,
				 "pid %u cannot be seen from here (a container, or another user's)",
				 p->pid);
	if (geteuid() && p->uid != geteuid())
		return frag_fail(err, FRAG_EUSAGE,
				 "pid %u belongs to %s: only its owner can end it", p->pid,
				 *p->user ? p->user : "another user");
	return 0;
}

bool frag_monitor_has_gpu(unsigned pid)
{
	char path[300], to[16];
	const struct dirent *entry;
	bool found = false;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	all = opendir(path);
	while (all && !found && (entry = readdir(all))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%u/fd/%.200s", pid, entry->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[FRAG_MAX(n, 0)] = '\0';
		found = !strncmp(to, "/dev/nvidia", 11) || !strcmp(to, "/dev/dxg");
	}
	if (all)
		closedir(all);
	return found;
}

int frag_monitor_end(const struct frag_monitor_process *p, int sig, struct frag_err *err)
{
	int fd, rc;

	FRAG_TRY(frag_monitor_may_end(p, err));
	fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (fd < 0 && errno == ENOSYS) /* Linux before 5.3 */
		fd = -ENOSYS;
	if (frag_monitor_start_of(p->pid) != p->start || (fd < 0 && fd != -ENOSYS)) {
		if (fd >= 0)
			close(fd);
		return frag_fail(err, FRAG_EUSAGE, "pid %u has ended already", p->pid);
	}
	rc = fd >= 0 ? (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0)
		     : kill((pid_t)p->pid, sig);
	rc = rc ? errno : 0;
	if (fd >= 0)
		close(fd);
	return rc ? frag_fail(err, FRAG_EUSAGE, "pid %u was not signalled: %s", p->pid,
			      strerror(rc))
		  : 0;
}
