/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the program reads: with CUFRAG_READ_FILES, each regular file that a process opens for
 * reading, or maps to run, becomes a line in that file, once per process and content:
 *
 *	SIZE MTIME_NS PATH
 *
 * cufrag reuses a recording while these are unchanged (src/pretend/start/kept.c).
 */
#include "held.h"

#include <link.h>

#include "protocol_list.inc"

#define SEEN_SLOTS 16384u

FRAG_EXPORT void cufrag_read_files_into(const char *name);
FRAG_EXPORT void cufrag_read_files_end(void);

static char list[4096]; /* "": not wanted */
static uint64_t seen[SEEN_SLOTS];

/* True the second time, mostly: if another file took its slot, its line is repeated. */
static bool was_seen(const struct stat *st)
{
	uint64_t key = (uint64_t)st->st_dev << 48 ^ (uint64_t)st->st_ino * 0x9e3779b97f4a7c15u ^
		       (uint64_t)st->st_mtim.tv_nsec << 20 ^ (uint64_t)st->st_mtim.tv_sec;

	return __atomic_exchange_n(&seen[key % SEEN_SLOTS], key, __ATOMIC_RELAXED) == key;
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
	/* a copy's own name, which our readlink does not tell */
	len = FRAG_SYS(readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	to = (int)FRAG_SYS(openat, AT_FDCWD, list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
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
static int tell_mapped(struct dl_phdr_info *part, size_t size, void *ctx)
{
	int fd = open(*part->dlpi_name ? part->dlpi_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return 0;
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
		dl_iterate_phdr(tell_mapped, NULL);
}
