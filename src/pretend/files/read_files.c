/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the program reads: with CUFRAG_READ_FILES, each regular file that a process opens for
 * reading, or maps to run, becomes a line in that file, once per process and content:
 *
 *	SIZE MTIME_NS PATH
 *
 * cufrag reuses a recording while these are unchanged (src/pretend/start/kept.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read_files.h"
#include "protocol_list.inc"

#define FRAG_EXPORT __attribute__((visibility("default")))
#define SEEN_SLOTS 16384u /* a full table only repeats lines */

FRAG_EXPORT void cufrag_read_files_into(const char *name);
FRAG_EXPORT void cufrag_read_files_end(void);

static char list[4096]; /* "": not wanted */
static uint64_t seen[SEEN_SLOTS];

/* True the second time. Not exact between threads: a line may appear twice. */
static bool was_seen(const struct stat *st)
{
	uint64_t key = (uint64_t)st->st_dev << 48 ^ (uint64_t)st->st_ino * 0x9e3779b97f4a7c15u ^
		       (uint64_t)st->st_mtim.tv_nsec << 20 ^ (uint64_t)st->st_mtim.tv_sec;

	for (unsigned i = 0; i < 16; i++) {
		uint64_t *slot = &seen[(key + i) % SEEN_SLOTS];

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) == key)
			return true;
		if (!__atomic_load_n(slot, __ATOMIC_RELAXED)) {
			__atomic_store_n(slot, key, __ATOMIC_RELAXED);
			return false;
		}
	}
	return false;
}

static void tell(int fd)
{
	char line[4096 + 64], link[32], path[4096];
	struct stat st;
	ssize_t len;
	int to, n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || was_seen(&st))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	to = (int)syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			  0600);
	if (to < 0)
		return;
	path[len > 0 ? len : 0] = '\0';
	if (len <= 0 || strpbrk(path, "\n\r"))
		memcpy(path, "?", 2);
	n = snprintf(line, sizeof(line), "%lld %lld %s\n", (long long)st.st_size,
		     (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, path);
	(void)!write(to, line, (size_t)n);
	close(to);
}

void frag_read_file(int fd)
{
	int reason = errno;

	if (*list)
		tell(fd);
	errno = reason;
}

/* Files that the loader mapped without our open: the program and its libraries. */
static void tell_mapped(void)
{
	char line[4300];
	int list_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = list_fd < 0 ? NULL : fdopen(list_fd, "r");

	while (maps && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');
		int fd;

		if (!path || !strstr(line, " r-xp "))
			continue;
		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
	}
	if (maps)
		fclose(maps);
}

/* Switches to this file, "": none. Each fork of cufrag_fork_server.py has its own. */
FRAG_EXPORT void cufrag_read_files_into(const char *name)
{
	if (name && strlen(name) < sizeof(list))
		memcpy(list, name, strlen(name) + 1);
}

static void __attribute__((constructor(101))) begin(void)
{
	cufrag_read_files_into(getenv(CUFRAG_READ_FILES));
}

/* Also called for processes that skip destructors (cufrag_fork_server.py). */
FRAG_EXPORT void __attribute__((destructor)) cufrag_read_files_end(void)
{
	if (*list)
		tell_mapped();
}
