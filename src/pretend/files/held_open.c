/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and writing files; see held.h. Files opened for reading are noted by read_files.c. */
#include "held.h"

#include <spawn.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "read_files.h"

/* Resolves "/proc/self/fd/N" to the file's path. */
static const char *behind_descriptor(const char *path, char *target)
{
	ssize_t n = strncmp(path, "/proc/self/fd/", 14)
			    ? 0
			    : FRAG_SYS(readlinkat, AT_FDCWD, path, target, PATH_MAX - 1);

	if (n <= 0 || *target != '/')
		return path;
	target[n] = '\0';
	frag_held_strip(target);
	return FRAG_SYS(faccessat, AT_FDCWD, target, F_OK) ? path : target;
}

static const char *path_to_write(struct place *p, int *dir, const char *path, int flags)
{
	const bool alone = (flags & O_CREAT) && (flags & O_EXCL);
	const bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
	char target[PATH_MAX];

	errno = 0;
	if (!frag_held_find(p, *dir, behind_descriptor(path, target),
			    !alone && !(flags & O_NOFOLLOW)))
		return errno == ENAMETOOLONG || errno == ELOOP ? NULL : path;
	*dir = AT_FDCWD;
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return S_ISDIR(p->mode) && frag_held_copy_folder(p->user) ? NULL : p->up;
	if (!p->in_up && !p->on_disk) {
		if (!(flags & O_CREAT))
			return p->hidden ? p->up : p->user;
		return frag_held_make_room(p) ? NULL : p->up;
	}
	if (alone)
		return errno = EEXIST, NULL;
	if (p->on_disk && (!changes || !S_ISREG(p->mode)))
		return p->user;
	if (p->on_disk && (frag_held_may_change(p) || frag_held_copy(p, flags & O_TRUNC)))
		return NULL;
	return p->up;
}

static const char *path_to_open(struct place *p, int *dir, const char *path, int flags)
{
	if (!frag_held || !path || !*path)
		return path;
	if ((flags & O_PATH) || ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))))
		return frag_held_path(p, dir, path, flags & O_NOFOLLOW ? READ_LINK : READ);
	return path_to_write(p, dir, path, flags);
}

/* Returns the descriptor to the program. */
static int opened(int fd, int flags)
{
	if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_TRUNC | O_PATH)))
		frag_read_file(fd);
	return fd;
}

/* ---- open ------------------------------------------------------------------------------- */

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	static void *function;
	struct place p;

	path = path_to_open(&p, &dir, path, flags);
	if (!path)
		return -1;
	return opened(((int (*)(int, const char *, int, ...))frag_next(&function, "openat64"))(
			      dir, path, flags, mode),
		      flags);
}

/* their declarations have attributes that these definitions need not repeat */
#ifndef __clang__ /* no such warning */
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
#define FRAG_OPEN(name, parameters, ...) \
	FRAG_EXPORT int name parameters \
	{ \
		mode_t mode; \
		va_list ap; \
\
		va_start(ap, flags); \
		mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(ap, mode_t) : 0; \
		va_end(ap); \
		return open_at(__VA_ARGS__, flags, mode); \
	}
/* With _FORTIFY_SOURCE, programs call the second name. */
#define FRAG_OPEN_PLAIN(name, parameters, ...) \
	FRAG_EXPORT int name parameters; \
	int name parameters \
	{ \
		return open_at(__VA_ARGS__); \
	}
FRAG_OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path)
FRAG_OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path)
FRAG_OPEN(openat, (int dir, const char *path, int flags, ...), dir, path)
FRAG_OPEN(openat64, (int dir, const char *path, int flags, ...), dir, path)
FRAG_OPEN_PLAIN(__open_2, (const char *path, int flags), AT_FDCWD, path, flags, 0)
FRAG_OPEN_PLAIN(__open64_2, (const char *path, int flags), AT_FDCWD, path, flags, 0)
FRAG_OPEN_PLAIN(__openat_2, (int dir, const char *path, int flags), dir, path, flags, 0)
FRAG_OPEN_PLAIN(__openat64_2, (int dir, const char *path, int flags), dir, path, flags, 0)
FRAG_OPEN_PLAIN(creat, (const char *path, mode_t mode), AT_FDCWD, path,
		O_WRONLY | O_CREAT | O_TRUNC, mode)
FRAG_OPEN_PLAIN(creat64, (const char *path, mode_t mode), AT_FDCWD, path,
		O_WRONLY | O_CREAT | O_TRUNC, mode)

static int flags_of(const char *mode)
{
	const int access = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;

	return access | (*mode == 'r' ? 0 : O_CREAT) | (*mode == 'w' ? O_TRUNC : 0) |
	       (strchr(mode, 'x') ? O_EXCL : 0);
}

/* The C library opens it; O_EXCL was already checked against the disk. */
#define FRAG_FOPEN(name, parameters, type, ...) \
	FRAG_EXPORT FILE *name parameters \
	{ \
		static void *function; \
		struct place p; \
		int dir = AT_FDCWD; \
		const char *to = path_to_open(&p, &dir, path, flags_of(mode)); \
		FILE *f = path && !to ? NULL \
				      : ((FILE * (*)type) \
						 frag_next(&function, #name))(to, __VA_ARGS__); \
\
		if (f) \
			opened(fileno(f), flags_of(mode)); \
		return f; \
	}
FRAG_FOPEN(fopen, (const char *restrict path, const char *restrict mode),
	   (const char *, const char *), mode)
FRAG_FOPEN(fopen64, (const char *restrict path, const char *restrict mode),
	   (const char *, const char *), mode)
FRAG_FOPEN(freopen, (const char *restrict path, const char *restrict mode, FILE *restrict old),
	   (const char *, const char *, FILE *), mode, old)
FRAG_FOPEN(freopen64, (const char *restrict path, const char *restrict mode, FILE *restrict old),
	   (const char *, const char *, FILE *), mode, old)

/* The child's C library opens it, so the path is decided here. */
FRAG_EXPORT int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions,
						 int fd, const char *restrict path, int flags,
						 mode_t mode)
{
	static void *function;
	struct place p;
	int dir = AT_FDCWD;

	path = path_to_open(&p, &dir, path, flags);
	return path ? ((int (*)(posix_spawn_file_actions_t *, int, const char *, int,
				mode_t))frag_next(&function, "posix_spawn_file_actions_addopen"))(
			      actions, fd, path, flags, mode)
		    : errno;
}

/* ---- temporary names: the C library's own functions would bypass ours ------------------------ */

static int make_new(char *name, int behind, int flags, bool folder)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char *to = name + strlen(name) - behind - 6;
	unsigned char some[6];
	int fd;

	if (strlen(name) < (size_t)behind + 6 || strncmp(to, "XXXXXX", 6) != 0)
		return errno = EINVAL, -1;
	for (unsigned tries = 0; tries < 1000; tries++) {
		if (getrandom(some, sizeof(some), 0) != sizeof(some))
			return -1;
		for (int i = 0; i < 6; i++)
			to[i] = letters[some[i] % 62];
		fd = folder ? mkdir(name, 0700)
			    : open_at(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}
FRAG_EXPORT char *mkdtemp(char *name)
{
	return make_new(name, 0, 0, true) ? NULL : name;
}
#define FRAG_MAKE_TEMP(name, parameters, behind, flags) \
	FRAG_EXPORT int name parameters \
	{ \
		return make_new(path, behind, flags, false); \
	}
FRAG_MAKE_TEMP(mkstemp, (char *path), 0, 0)
FRAG_MAKE_TEMP(mkstemp64, (char *path), 0, 0)
FRAG_MAKE_TEMP(mkostemp, (char *path, int flags), 0, flags)
FRAG_MAKE_TEMP(mkostemp64, (char *path, int flags), 0, flags)
FRAG_MAKE_TEMP(mkstemps, (char *path, int behind), behind, 0)
FRAG_MAKE_TEMP(mkstemps64, (char *path, int behind), behind, 0)
FRAG_MAKE_TEMP(mkostemps, (char *path, int behind, int flags), behind, flags)
FRAG_MAKE_TEMP(mkostemps64, (char *path, int behind, int flags), behind, flags)

/* ---- writing: up to --writes-max ------------------------------------------------------------- */

#define FRAG_WRITE(type, name, parameters, fd, bytes, none, ...) \
	FRAG_EXPORT type name parameters \
	{ \
		static void *function; \
\
		if (frag_held && !frag_held_count(fd, bytes)) \
			return (type)none; \
		return ((type(*) parameters)frag_next(&function, #name))(__VA_ARGS__); \
	}
static size_t bytes_of(const struct iovec *parts, int count)
{
	size_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += parts[i].iov_len;
	return sum;
}
FRAG_WRITE(ssize_t, write, (int fd, const void *buf, size_t n), fd, n, -1, fd, buf, n)
FRAG_WRITE(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at), fd, n, -1, fd, buf, n,
	   at)
FRAG_WRITE(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off_t at), fd, n, -1, fd, buf, n,
	   at)
FRAG_WRITE(ssize_t, writev, (int fd, const struct iovec *v, int n), fd, bytes_of(v, n), -1, fd, v,
	   n)
FRAG_WRITE(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), fd, bytes_of(v, n),
	   -1, fd, v, n, at)
FRAG_WRITE(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off_t at), fd, bytes_of(v, n),
	   -1, fd, v, n, at)
FRAG_WRITE(ssize_t, sendfile, (int to, int from, off_t *at, size_t n), to, n, -1, to, from, at, n)
FRAG_WRITE(ssize_t, sendfile64, (int to, int from, off_t *at, size_t n), to, n, -1, to, from, at, n)
FRAG_WRITE(ssize_t, copy_file_range,
	   (int from, off_t *a, int to, off_t *b, size_t n, unsigned flags), to, n, -1, from, a, to,
	   b, n, flags)
FRAG_WRITE(size_t, fwrite, (const void *restrict buf, size_t size, size_t n, FILE *restrict f),
	   fileno(f), size *n, 0, buf, size, n, f)
#undef fwrite_unlocked
FRAG_WRITE(size_t, fwrite_unlocked,
	   (const void *restrict buf, size_t size, size_t n, FILE *restrict f), fileno(f), size *n,
	   0, buf, size, n, f)
