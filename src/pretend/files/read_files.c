/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the program reads: where CUFRAG_READ_FILES names a file, each regular one that a process opens for reading, or
 * maps to run it, becomes a line there,
 *
 *	SIZE MTIME_NS PATH
 *
 * once for each process and content. cufrag keeps a recording as long as they stay as they were (src/pretend/start/kept.c).
 * Without the variable these functions only pass on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAG_EXPORT __attribute__((visibility("default")))
#define SEEN_SLOTS 16384u /* a full table only repeats lines */

FRAG_EXPORT void cufrag_read_files_into(const char *name);
FRAG_EXPORT void cufrag_read_files_end(void);

static char list[4096]; /* "": not wanted */
static uint64_t seen[SEEN_SLOTS];

/* True the second time. Threads that meet here write a line twice. */
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

/* An opened file, as it is given to the program. */
static int opened(int fd, int flags)
{
	int reason = errno;

	if (fd >= 0 && *list && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_TRUNC | O_PATH)))
		tell(fd);
	errno = reason;
	return fd;
}

static void *real(void **function, const char *name)
{
	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
	return *function;
}

/* ---- what programs open files with ------------------------------------------------------------ */

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(ap, mode_t) : 0;
}

/* type: of the function; behind it the arguments before the flags, as they are passed on. */
#define FRAG_OPEN(name, parameters, type, ...) \
	FRAG_EXPORT int name parameters \
	{ \
		static void *function; \
		mode_t mode; \
		va_list ap; \
\
		va_start(ap, flags); \
		mode = mode_of(flags, ap); \
		va_end(ap); \
		return opened(((type)real(&function, #name))(__VA_ARGS__, flags, mode), flags); \
	}
typedef int (*open_fn)(const char *, int, ...);
typedef int (*openat_fn)(int, const char *, int, ...);
#define FRAG_FOPEN(name) \
	FRAG_EXPORT FILE *name(const char *restrict path, const char *restrict mode) \
	{ \
		static void *function; \
		FILE *f = ((FILE * (*)(const char *, const char *)) real(&function, #name))(path, \
											    mode); \
\
		if (f) \
			opened(fileno(f), *mode == 'r' ? O_RDONLY : O_WRONLY); \
		return f; \
	}

/* they are declared with attributes of their own, which these definitions need not repeat */
#ifndef __clang__ /* which has no such warning */
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
FRAG_OPEN(open, (const char *path, int flags, ...), open_fn, path)
FRAG_OPEN(open64, (const char *path, int flags, ...), open_fn, path)
FRAG_OPEN(openat, (int dir, const char *path, int flags, ...), openat_fn, dir, path)
FRAG_OPEN(openat64, (int dir, const char *path, int flags, ...), openat_fn, dir, path)
FRAG_FOPEN(fopen)
FRAG_FOPEN(fopen64)

/* What is compiled with _FORTIFY_SOURCE comes here. */
#define FRAG_OPEN_2(name, parameters, ...) \
	FRAG_EXPORT int __##name##_2 parameters; \
	int __##name##_2 parameters \
	{ \
		return name(__VA_ARGS__); \
	}
FRAG_OPEN_2(open, (const char *path, int flags), path, flags)
FRAG_OPEN_2(open64, (const char *path, int flags), path, flags)
FRAG_OPEN_2(openat, (int dir, const char *path, int flags), dir, path, flags)
FRAG_OPEN_2(openat64, (int dir, const char *path, int flags), dir, path, flags)

/* ---- the program's beginning and end ------------------------------------------------------------ */

/* What the loader mapped, without opening it through us: the program and its libraries. */
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

/* From here on into this file, "": into none. A process that was forked has a list of its own (cufrag_fork_server.py). */
FRAG_EXPORT void cufrag_read_files_into(const char *name)
{
	if (name && strlen(name) < sizeof(list))
		memcpy(list, name, strlen(name) + 1);
}

static void __attribute__((constructor(101))) begin(void)
{
	cufrag_read_files_into(getenv("CUFRAG_READ_FILES"));
}

/* Also of a process that ends without its destructors (cufrag_fork_server.py). */
FRAG_EXPORT void __attribute__((destructor)) cufrag_read_files_end(void)
{
	if (*list)
		tell_mapped();
}
