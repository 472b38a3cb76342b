/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's functions that get a path, open a file or write, each as a row (held.h). The
 * links and names of files are in held_names.c, folders in held_folders.c, programs in held_run.c.
 */
#include "held.h"

#include <sys/uio.h>

long frag_held_go(void *function, const long *a)
{
	return ((long (*)(long, long, long, long, long, long))function)(a[0], a[1], a[2], a[3],
									a[4], a[5]);
}

/* Puts this path in place of the program's; false: NULL, see errno. */
static bool put(long *a, const struct shape *s, int dir, const char *path)
{
	if (s->dir)
		a[s->dir - 1] = dir;
	a[s->path - 1] = (long)path;
	return path;
}

static const char *given(const long *a, const struct shape *s, int *dir)
{
	*dir = s->dir ? (int)a[s->dir - 1] : AT_FDCWD;
	return (const char *)a[s->path - 1];
}

static bool resolve(long *a, const struct shape *s, struct place *p)
{
	bool link = s->more && a[s->more - 1] & AT_SYMLINK_NOFOLLOW;
	int dir;
	const char *path = given(a, s, &dir),
		   *to = frag_held_path(p, &dir, path, s->how | (link ? HELD_LINK : 0u));

	return put(a, s, dir, to) || !path;
}

/* ---- a path ---------------------------------------------------------------------------------- */

/* A file opened for reading can still be changed through its descriptor, the first argument:
 * another one, of its copy, takes its place. */
static long change_open(void *next, long *a, const struct shape *s)
{
	struct place p;
	int fd;
	long rc;

	if (!frag_held || !frag_held_find_fd(&p, (int)a[0]) || !p.mode)
		return frag_held_go(next, a);
	if (p.on_disk && !p.in_up && frag_held_copy(&p, false))
		return -1;
	fd = (int)FRAG_SYS(openat, AT_FDCWD, p.up, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	a[0] = fd;
	rc = frag_held_go(next, a);
	FRAG_SYS(close, fd);
	return rc;
}

static long pass(void *next, long *a, const struct shape *s)
{
	struct place p;
	int dir;
	const char *path = given(a, s, &dir);

	if (s->how & HELD_CHANGE && s->dir && (!path || !*path))
		return change_open(next, a, s);
	return resolve(a, s, &p) ? frag_held_go(next, a) : -1;
}

/* A folder keeps its inode, with the mtime of its copy. The path is followed by struct stat. */
static long give_stat(void *next, long *a, const struct shape *s)
{
	char up[2 * PATH_MAX];
	struct stat new, *st;
	struct place p;
	long rc;

	resolve(a, s, &p);
	rc = frag_held_go(next, a);
	if (!(int)rc && (char *)a[s->path - 1] == p.user && p.in_up && p.on_disk) {
		frag_held_up(p.user, up);
		st = (struct stat *)a[s->path];
		if (!FRAG_SYS(newfstatat, AT_FDCWD, up, &new, AT_SYMLINK_NOFOLLOW))
			st->st_mtim = new.st_mtim;
	}
	return rc;
}

/* The path is followed by the buffer and its size. */
static long read_link(void *next, long *a, const struct shape *s)
{
	char text[PATH_MAX];
	struct place p;
	size_t len;
	int dir;
	const char *path;
	ssize_t n;

	resolve(a, s, &p);
	path = given(a, s, &dir);
	n = FRAG_SYS(readlinkat, dir, path, text, sizeof(text) - 1);
	if (n < 0)
		return n;
	text[n] = '\0';
	if (frag_held)
		frag_held_strip(text);
	len = strlen(text) < (size_t)a[s->path + 1] ? strlen(text) : (size_t)a[s->path + 1];
	memcpy((char *)a[s->path], text, len);
	return (long)len;
}

/* mkstemp and the like: the C library makes the name in up, and its last part is copied. */
static long make_temp(void *next, long *a, const struct shape *s)
{
	struct place p;
	char *name = (char *)a[0], *to;
	size_t n;
	long rc;

	if (!resolve(a, s, &p))
		return s->more ? 0 : -1;
	rc = frag_held_go(next, a);
	to = (char *)a[0];
	if (to == name)
		return rc;
	n = strlen(strrchr(to, '/') + 1);
	memcpy(name + strlen(name) - n, to + strlen(to) - n, n);
	return s->more && rc ? (long)name : rc; /* mkdtemp */
}

ROW(pass, access, .path = 1)
ROW(pass, eaccess, .path = 1)
ROW(pass, euidaccess, .path = 1)
ROW(pass, faccessat, .dir = 1, .path = 2, .more = 4)
ROW(pass, chdir, .path = 1)
ROWS(pass, statfs, .path = 1)
ROWS(pass, statvfs, .path = 1)
ROW(pass, pathconf, .path = 1)
ROW(pass, getxattr, .path = 1)
ROW(pass, lgetxattr, .path = 1, .how = HELD_LINK)
ROW(pass, listxattr, .path = 1)
ROW(pass, llistxattr, .path = 1, .how = HELD_LINK)
ROW(pass, statx, .dir = 1, .path = 2, .more = 3)
ROWS(give_stat, stat, .path = 1)
ROWS(give_stat, lstat, .path = 1, .how = HELD_LINK)
ROWS(give_stat, fstatat, .dir = 1, .path = 2, .more = 4)
/* for programs built with older C libraries */
ROWS(give_stat, __xstat, .path = 2)
ROWS(give_stat, __lxstat, .path = 2, .how = HELD_LINK)
ROWS(give_stat, __fxstatat, .dir = 2, .path = 3, .more = 5)
ROW(read_link, readlink, .path = 1, .how = HELD_LINK)
ROW(read_link, readlinkat, .dir = 1, .path = 2, .how = HELD_LINK)
ROW(read_link, __readlink_chk, .path = 1, .how = HELD_LINK)
ROW(read_link, __readlinkat_chk, .dir = 1, .path = 2, .how = HELD_LINK)
ROWS(pass, truncate, .path = 1, .how = HELD_CHANGE)
ROW(pass, chmod, .path = 1, .how = HELD_CHANGE)
ROW(pass, lchmod, .path = 1, .how = HELD_CHANGE | HELD_LINK)
ROW(pass, fchmodat, .dir = 1, .path = 2, .more = 4, .how = HELD_CHANGE)
ROW(pass, chown, .path = 1, .how = HELD_CHANGE)
ROW(pass, lchown, .path = 1, .how = HELD_CHANGE | HELD_LINK)
ROW(pass, fchownat, .dir = 1, .path = 2, .more = 5, .how = HELD_CHANGE)
ROW(pass, utime, .path = 1, .how = HELD_CHANGE)
ROW(pass, utimes, .path = 1, .how = HELD_CHANGE)
ROW(pass, lutimes, .path = 1, .how = HELD_CHANGE | HELD_LINK)
ROW(pass, futimesat, .dir = 1, .path = 2, .how = HELD_CHANGE)
ROW(pass, utimensat, .dir = 1, .path = 2, .more = 4, .how = HELD_CHANGE)
ROW(pass, setxattr, .path = 1, .how = HELD_CHANGE)
ROW(pass, lsetxattr, .path = 1, .how = HELD_CHANGE | HELD_LINK)
ROW(pass, removexattr, .path = 1, .how = HELD_CHANGE)
ROW(pass, lremovexattr, .path = 1, .how = HELD_CHANGE | HELD_LINK)
ROW(change_open, fchmod, .dir = 1)
ROW(change_open, fchown, .dir = 1)
ROW(change_open, futimens, .dir = 1)
ROW(change_open, futimes, .dir = 1)
ROW(change_open, fsetxattr, .dir = 1)
ROW(change_open, fremovexattr, .dir = 1)
ROW(pass, mkdir, .path = 1, .how = HELD_MAKE)
ROW(pass, mkdirat, .dir = 1, .path = 2, .how = HELD_MAKE)
ROW(pass, mknod, .path = 1, .how = HELD_MAKE)
ROW(pass, mknodat, .dir = 1, .path = 2, .how = HELD_MAKE)
ROW(pass, mkfifo, .path = 1, .how = HELD_MAKE)
ROW(pass, mkfifoat, .dir = 1, .path = 2, .how = HELD_MAKE)
ROW(pass, symlink, .path = 2, .how = HELD_MAKE)
ROW(pass, symlinkat, .dir = 2, .path = 3, .how = HELD_MAKE)
ROW(make_temp, mkdtemp, .path = 1, .more = 1, .how = HELD_MAKE)
ROWS(make_temp, mkstemp, .path = 1, .how = HELD_MAKE)
ROWS(make_temp, mkostemp, .path = 1, .how = HELD_MAKE)
ROWS(make_temp, mkstemps, .path = 1, .how = HELD_MAKE)
ROWS(make_temp, mkostemps, .path = 1, .how = HELD_MAKE)

/* ---- opening --------------------------------------------------------------------------------- */

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

/* Puts the path to open in place of the program's. */
static bool resolve_open(long *a, const struct shape *s, struct place *p, int flags)
{
	bool reads = (flags & O_PATH) ||
		     ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC)));
	int dir;
	const char *path = given(a, s, &dir);

	if (!frag_held || !path || !*path)
		return true;
	return put(a, s, dir,
		   reads ? frag_held_path(p, &dir, path, flags & O_NOFOLLOW ? HELD_LINK : 0)
			 : path_to_write(p, &dir, path, flags));
}

static void note_read(int fd, int flags)
{
	if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_TRUNC | O_PATH)))
		frag_read_file(fd);
}

/* more: flags; 0: those of creat. */
static long open_file(void *next, long *a, const struct shape *s)
{
	int flags = s->more ? (int)a[s->more - 1] : O_WRONLY | O_CREAT | O_TRUNC;
	struct place p;
	long fd;

	if (!resolve_open(a, s, &p, flags))
		return -1;
	fd = frag_held_go(next, a);
	note_read((int)fd, flags);
	return fd;
}

/* The second argument is a mode, as "r+". */
static long open_stream(void *next, long *a, const struct shape *s)
{
	const char *mode = (const char *)a[1];
	const int access = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
	const int flags = access | (*mode == 'r' ? 0 : O_CREAT) | (*mode == 'w' ? O_TRUNC : 0) |
			  (strchr(mode, 'x') ? O_EXCL : 0);
	struct place p;
	long f;

	if (!resolve_open(a, s, &p, flags))
		return 0;
	f = frag_held_go(next, a);
	if (f)
		note_read(fileno((FILE *)f), flags);
	return f;
}

/* The child's C library opens it, so the path is decided here. */
static long open_later(void *next, long *a, const struct shape *s)
{
	struct place p;

	return resolve_open(a, s, &p, (int)a[s->more - 1]) ? frag_held_go(next, a) : errno;
}

ROWS(open_file, open, .path = 1, .more = 2)
ROWS(open_file, openat, .dir = 1, .path = 2, .more = 3)
/* with _FORTIFY_SOURCE, programs call these */
ROW(open_file, __open_2, .path = 1, .more = 2)
ROW(open_file, __open64_2, .path = 1, .more = 2)
ROW(open_file, __openat_2, .dir = 1, .path = 2, .more = 3)
ROW(open_file, __openat64_2, .dir = 1, .path = 2, .more = 3)
ROWS(open_file, creat, .path = 1)
ROWS(open_stream, fopen, .path = 1)
ROWS(open_stream, freopen, .path = 1)
ROW(open_later, posix_spawn_file_actions_addopen, .path = 3, .more = 4)

/* ---- writing: up to --writes-max; dir: the descriptor, more: how many bytes ------------- */

static long go_counted(void *next, long *a, int fd, size_t bytes)
{
	return frag_held && !frag_held_count(fd, bytes) ? -1 : frag_held_go(next, a);
}

static long count(void *next, long *a, const struct shape *s)
{
	return go_counted(next, a, (int)a[s->dir - 1], (size_t)a[s->more - 1]);
}

/* Programs ask for more than there is; path: the source. */
static long count_copy(void *next, long *a, const struct shape *s)
{
	struct stat st;
	size_t n = (size_t)a[s->more - 1];

	if (frag_held && !FRAG_SYS(fstat, (int)a[s->path - 1], &st) && S_ISREG(st.st_mode) &&
	    (size_t)st.st_size < n)
		n = (size_t)st.st_size;
	return go_counted(next, a, (int)a[s->dir - 1], n);
}

static long count_parts(void *next, long *a, const struct shape *s)
{
	const struct iovec *parts = (const struct iovec *)a[1];
	size_t sum = 0;

	for (int i = 0; frag_held && i < (int)a[2]; i++)
		sum += parts[i].iov_len;
	return go_counted(next, a, (int)a[0], sum);
}

static long count_stream(void *next, long *a, const struct shape *s)
{
	return frag_held && !frag_held_count(fileno((FILE *)a[3]), (size_t)(a[1] * a[2]))
		       ? 0
		       : frag_held_go(next, a);
}

ROW(count, write, .dir = 1, .more = 3)
ROWS(count, pwrite, .dir = 1, .more = 3)
ROWS(count_copy, sendfile, .dir = 1, .path = 2, .more = 4)
ROW(count_copy, copy_file_range, .dir = 3, .path = 1, .more = 5)
ROW(count_parts, writev, .dir = 1)
ROWS(count_parts, pwritev, .dir = 1)
ROW(count_stream, fwrite, .dir = 4)
ROW(count_stream, fwrite_unlocked, .dir = 4)
