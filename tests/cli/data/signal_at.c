/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into cufrag: at its SIGNAL_AT-th call of those below it is as if somebody had sent it
 * SIGNAL_WITH, so that every place where files or processes are half made is met, in the same order
 * each time. Only in the process that was started, not in its children. SIGNAL_COUNT names a file
 * that gets the number of calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls, at;
static int with;
static pid_t self;

static __attribute__((constructor)) void begin(void)
{
	const char *a = getenv("SIGNAL_AT"), *w = getenv("SIGNAL_WITH"),
		   *name = strrchr(program_invocation_name, '/');

	/* not in the compilers and shells that the program starts */
	if (strcmp(name ? name + 1 : program_invocation_name, "cufrag") != 0)
		return;
	at = a ? atol(a) : 0;
	with = w ? atoi(w) : SIGINT;
	self = getpid();
}

static void step(void)
{
	if (self && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == at && getpid() == self)
		kill(self, with);
}

static __attribute__((destructor)) void end(void)
{
	const char *to = getenv("SIGNAL_COUNT");
	FILE *f = self && to && getpid() == self ? fopen(to, "w") : NULL;

	self = 0;
	if (!f)
		return;
	fprintf(f, "%ld\n", calls);
	fclose(f);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define AROUND(type, name, params, args) \
	type name params \
	{ \
		type got; \
		step(); \
		got = NEXT(name) args; \
		step(); \
		return got; \
	}

int mkostemp(char *, int), mkdir(const char *, mode_t), rename(const char *, const char *),
	unlink(const char *);
int rmdir(const char *), unlinkat(int, const char *, int);
char *mkdtemp(char *);

AROUND(int, mkostemp, (char *name, int flags), (name, flags))
AROUND(char *, mkdtemp, (char *name), (name))
AROUND(int, mkdir, (const char *path, mode_t mode), (path, mode))
AROUND(int, rename, (const char *from, const char *to), (from, to))
AROUND(int, unlink, (const char *path), (path))
AROUND(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
AROUND(int, rmdir, (const char *path), (path))
AROUND(FILE *, fopen, (const char *path, const char *mode), (path, mode))
AROUND(FILE *, fdopen, (int fd, const char *mode), (fd, mode))
AROUND(int, fclose, (FILE * f), (f))
AROUND(pid_t, fork, (void), ())

/* SQLite's */
AROUND(ssize_t, pwrite64, (int fd, const void *from, size_t len, off_t at_), (fd, from, len, at_))
AROUND(int, fdatasync, (int fd), (fd))

/* looked for many times, found once */
pid_t waitpid(pid_t pid, int *status, int options)
{
	pid_t got = NEXT(waitpid)(pid, status, options);

	if (got > 0)
		step();
	return got;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;
	int fd;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	step();
	fd = NEXT(open)(path, flags, mode);
	step();
	return fd;
}
