/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's functions with a path, but those that open files or list folders; see held.h. */
#include "held.h"

#include <alloca.h>
#include <elf.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <utime.h>

/* their declarations have attributes that these definitions need not repeat */
#ifndef __clang__ /* no such warning */
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

/* ---- calls with one path --------------------------------------------------------------------- */

/* Variadic part: the arguments of the original, in which `path` and `dir` are replaced. */
#define FRAG_CALL_AT(type, name, how, parameters, before, ...) \
	FRAG_EXPORT type name parameters; \
	type name parameters \
	{ \
		static void *function; \
		struct place p; \
		before; \
		if (!(path = frag_held_path(&p, &dir, path, how))) \
			return (type)-1; \
		return ((type(*) parameters)frag_next(&function, #name))(__VA_ARGS__); \
	}
#define FRAG_CALL(type, name, how, parameters, ...) \
	FRAG_CALL_AT(type, name, how, parameters, int dir = AT_FDCWD, __VA_ARGS__)
#define LINK(how, flags) ((flags)&AT_SYMLINK_NOFOLLOW ? how##_LINK : how)

FRAG_CALL(int, access, READ, (const char *path, int mode), path, mode)
FRAG_CALL(int, eaccess, READ, (const char *path, int mode), path, mode)
FRAG_CALL(int, euidaccess, READ, (const char *path, int mode), path, mode)
FRAG_CALL_AT(int, faccessat, LINK(READ, flags), (int dir, const char *path, int mode, int flags), ,
	     dir, path, mode, flags)
FRAG_CALL(int, chdir, READ, (const char *path), path)
FRAG_CALL(int, statfs, READ, (const char *path, struct statfs *to), path, to)
FRAG_CALL(int, statfs64, READ, (const char *path, struct statfs64 *to), path, to)
FRAG_CALL(int, statvfs, READ, (const char *path, struct statvfs *to), path, to)
FRAG_CALL(int, statvfs64, READ, (const char *path, struct statvfs64 *to), path, to)
FRAG_CALL(long, pathconf, READ, (const char *path, int name), path, name)
FRAG_CALL(ssize_t, getxattr, READ, (const char *path, const char *name, void *to, size_t n), path,
	  name, to, n)
FRAG_CALL(ssize_t, lgetxattr, READ_LINK, (const char *path, const char *name, void *to, size_t n),
	  path, name, to, n)
FRAG_CALL(ssize_t, listxattr, READ, (const char *path, char *to, size_t n), path, to, n)
FRAG_CALL(ssize_t, llistxattr, READ_LINK, (const char *path, char *to, size_t n), path, to, n)
FRAG_CALL(int, truncate, CHANGE, (const char *path, off_t n), path, n)
FRAG_CALL(int, truncate64, CHANGE, (const char *path, off_t n), path, n)
FRAG_CALL(int, chmod, CHANGE, (const char *path, mode_t mode), path, mode)
FRAG_CALL(int, lchmod, CHANGE_LINK, (const char *path, mode_t mode), path, mode)
FRAG_CALL_AT(int, fchmodat, LINK(CHANGE, flags),
	     (int dir, const char *path, mode_t mode, int flags), , dir, path, mode, flags)
FRAG_CALL(int, chown, CHANGE, (const char *path, uid_t user, gid_t group), path, user, group)
FRAG_CALL(int, lchown, CHANGE_LINK, (const char *path, uid_t user, gid_t group), path, user, group)
FRAG_CALL(int, utime, CHANGE, (const char *path, const struct utimbuf *t), path, t)
FRAG_CALL(int, utimes, CHANGE, (const char *path, const struct timeval t[2]), path, t)
FRAG_CALL(int, lutimes, CHANGE_LINK, (const char *path, const struct timeval t[2]), path, t)
FRAG_CALL_AT(int, futimesat, CHANGE, (int dir, const char *path, const struct timeval t[2]), , dir,
	     path, t)
FRAG_CALL(int, setxattr, CHANGE,
	  (const char *path, const char *name, const void *v, size_t n, int flags), path, name, v,
	  n, flags)
FRAG_CALL(int, lsetxattr, CHANGE_LINK,
	  (const char *path, const char *name, const void *v, size_t n, int flags), path, name, v,
	  n, flags)
FRAG_CALL(int, removexattr, CHANGE, (const char *path, const char *name), path, name)
FRAG_CALL(int, lremovexattr, CHANGE_LINK, (const char *path, const char *name), path, name)

/* ---- descriptors: a file opened for reading can still be changed through them ---------------- */

static const char *path_of_fd(struct place *p, int fd)
{
	if (!frag_held_find_fd(p, fd))
		return NULL;
	return !p->in_up && p->on_disk && frag_held_copy(p, false) ? "" : p->up;
}

#define FRAG_CALL_FD(name, parameters, args, instead) \
	FRAG_EXPORT int name parameters \
	{ \
		static void *function; \
		struct place p; \
		const char *path = frag_held ? path_of_fd(&p, fd) : NULL; \
\
		return path ? (int)(instead) \
			    : ((int(*) parameters)frag_next(&function, #name))args; \
	}
FRAG_CALL_FD(fchmod, (int fd, mode_t mode), (fd, mode), FRAG_SYS(fchmodat, AT_FDCWD, path, mode))
FRAG_CALL_FD(fchown, (int fd, uid_t u, gid_t g), (fd, u, g),
	     FRAG_SYS(fchownat, AT_FDCWD, path, u, g, 0))
FRAG_CALL_FD(futimens, (int fd, const struct timespec t[2]), (fd, t),
	     FRAG_SYS(utimensat, AT_FDCWD, path, t, 0))
FRAG_CALL_FD(futimes, (int fd, const struct timeval t[2]), (fd, t), utimes(path, t))
FRAG_CALL_FD(fsetxattr, (int fd, const char *name, const void *v, size_t n, int flags),
	     (fd, name, v, n, flags), FRAG_SYS(setxattr, path, name, v, n, flags))
FRAG_CALL_FD(fremovexattr, (int fd, const char *name), (fd, name),
	     FRAG_SYS(removexattr, path, name))

FRAG_EXPORT int fchownat(int dir, const char *path, uid_t user, gid_t group, int flags)
{
	struct place p;

	if (flags & AT_EMPTY_PATH && !*path)
		return fchown(dir, user, group);
	path = frag_held_path(&p, &dir, path, LINK(CHANGE, flags));
	return path ? (int)FRAG_SYS(fchownat, dir, path, user, group, flags) : -1;
}

FRAG_EXPORT int utimensat(int dir, const char *path, const struct timespec t[2], int flags)
{
	struct place p;

	__asm__("" : "+r"(path)); /* declared nonnull, but can be NULL */
	if (!path || (flags & AT_EMPTY_PATH && !*path))
		return futimens(dir, t);
	path = frag_held_path(&p, &dir, path, LINK(CHANGE, flags));
	return path ? (int)FRAG_SYS(utimensat, dir, path, t, flags) : -1;
}

/* ---- stat: a folder keeps its inode, with the mtime of its copy ------------------------------ */

static void renew(const char *user, struct stat *st)
{
	char up[2 * PATH_MAX];
	struct stat new;

	frag_held_up(user, up);
	if (!FRAG_SYS(newfstatat, AT_FDCWD, up, &new, AT_SYMLINK_NOFOLLOW))
		st->st_mtim = new.st_mtim;
}

#define FRAG_STAT(name, how, parameters, before, ...) \
	FRAG_EXPORT int name parameters; \
	int name parameters \
	{ \
		static void *function; \
		struct place p; \
		int rc; \
		before; \
		path = frag_held_path(&p, &dir, path, how); \
		rc = ((int(*) parameters)frag_next(&function, #name))(__VA_ARGS__); \
		if (!rc && path == p.user && p.in_up && p.on_disk) \
			renew(p.user, (struct stat *)st); \
		return rc; \
	}
FRAG_STAT(stat, READ, (const char *path, struct stat *st), int dir = AT_FDCWD, path, st)
FRAG_STAT(stat64, READ, (const char *path, struct stat64 *st), int dir = AT_FDCWD, path, st)
FRAG_STAT(lstat, READ_LINK, (const char *path, struct stat *st), int dir = AT_FDCWD, path, st)
FRAG_STAT(lstat64, READ_LINK, (const char *path, struct stat64 *st), int dir = AT_FDCWD, path, st)
FRAG_STAT(fstatat, LINK(READ, flags), (int dir, const char *path, struct stat *st, int flags), ,
	  dir, path, st, flags)
FRAG_STAT(fstatat64, LINK(READ, flags), (int dir, const char *path, struct stat64 *st, int flags), ,
	  dir, path, st, flags)
/* for programs built with older C libraries */
FRAG_STAT(__xstat, READ, (int v, const char *path, struct stat *st), int dir = AT_FDCWD, v, path,
	  st)
FRAG_STAT(__xstat64, READ, (int v, const char *path, struct stat64 *st), int dir = AT_FDCWD, v,
	  path, st)
FRAG_STAT(__lxstat, READ_LINK, (int v, const char *path, struct stat *st), int dir = AT_FDCWD, v,
	  path, st)
FRAG_STAT(__lxstat64, READ_LINK, (int v, const char *path, struct stat64 *st), int dir = AT_FDCWD,
	  v, path, st)
FRAG_STAT(__fxstatat, LINK(READ, flags),
	  (int v, int dir, const char *path, struct stat *st, int flags), , v, dir, path, st, flags)
FRAG_STAT(__fxstatat64, LINK(READ, flags),
	  (int v, int dir, const char *path, struct stat64 *st, int flags), , v, dir, path, st,
	  flags)
FRAG_CALL_AT(int, statx, LINK(READ, flags),
	     (int dir, const char *restrict path, int flags, unsigned mask,
	      struct statx *restrict st),
	     , dir, path, flags, mask, st)

/* ---- links: making and reading them ---------------------------------------------------------- */

static ssize_t read_link_at(int dir, const char *path, char *to, size_t room)
{
	char text[PATH_MAX];
	struct place p;
	ssize_t n;

	path = frag_held_path(&p, &dir, path, READ_LINK);
	n = FRAG_SYS(readlinkat, dir, path, text, sizeof(text) - 1);
	if (n < 0)
		return n;
	text[n] = '\0';
	if (frag_held)
		frag_held_strip(text);
	n = (ssize_t)strlen(text) < (ssize_t)room ? (ssize_t)strlen(text) : (ssize_t)room;
	memcpy(to, text, (size_t)n);
	return n;
}
#define FRAG_READ_LINK(name, parameters, ...) \
	FRAG_EXPORT ssize_t name parameters; \
	ssize_t name parameters \
	{ \
		return read_link_at(__VA_ARGS__); \
	}
FRAG_READ_LINK(readlink, (const char *restrict path, char *restrict to, size_t n), AT_FDCWD, path,
	       to, n)
FRAG_READ_LINK(readlinkat, (int dir, const char *restrict path, char *restrict to, size_t n), dir,
	       path, to, n)
FRAG_READ_LINK(__readlink_chk, (const char *path, char *to, size_t n, size_t room), AT_FDCWD, path,
	       to, n < room ? n : room)
FRAG_READ_LINK(__readlinkat_chk, (int dir, const char *path, char *to, size_t n, size_t room), dir,
	       path, to, n < room ? n : room)

FRAG_EXPORT char *realpath(const char *restrict path, char *restrict to)
{
	static void *function;
	struct place p;

	if (!frag_held || !frag_held->changes || !frag_held_find(&p, AT_FDCWD, path, true))
		return ((char *(*)(const char *, char *))frag_next(&function, "realpath"))(path,
											   to);
	if (!p.in_up && !p.on_disk)
		return errno = ENOENT, NULL;
	if (!*p.user)
		strcpy(p.user, "/");
	return to ? strcpy(to, p.user) : strdup(p.user);
}
FRAG_EXPORT char *__realpath_chk(const char *path, char *to, size_t room);
char *__realpath_chk(const char *path, char *to, size_t room)
{
	(void)room;
	return realpath(path, to);
}
FRAG_EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

FRAG_EXPORT char *getcwd(char *to, size_t room)
{
	static void *function;
	char *here = ((char *(*)(char *, size_t))frag_next(&function, "getcwd"))(to, room);

	if (here && frag_held)
		frag_held_strip(here);
	return here;
}

/* ---- creating and removing names ------------------------------------------------------------- */

/* Calls that create a name; `to` is its path. */
#define FRAG_MAKE(name, parameters, before, call) \
	FRAG_EXPORT int name parameters \
	{ \
		struct place p; \
		before; \
		errno = 0; \
		if (frag_held_find(&p, dir, path, false)) { \
			if (frag_held_make_room(&p)) \
				return -1; \
			dir = AT_FDCWD, path = p.up; \
			frag_held_changed(); \
		} else if (errno == ENAMETOOLONG || errno == ELOOP) { \
			return -1; \
		} \
		return (int)(call); \
	}
#define HERE int dir = AT_FDCWD
FRAG_MAKE(mkdir, (const char *path, mode_t mode), HERE, FRAG_SYS(mkdirat, dir, path, mode))
FRAG_MAKE(mkdirat, (int dir, const char *path, mode_t mode), , FRAG_SYS(mkdirat, dir, path, mode))
FRAG_MAKE(mknod, (const char *path, mode_t mode, dev_t dev), HERE,
	  FRAG_SYS(mknodat, dir, path, mode, dev))
FRAG_MAKE(mknodat, (int dir, const char *path, mode_t mode, dev_t dev), ,
	  FRAG_SYS(mknodat, dir, path, mode, dev))
FRAG_MAKE(mkfifo, (const char *path, mode_t mode), HERE,
	  FRAG_SYS(mknodat, dir, path, mode | S_IFIFO, 0))
FRAG_MAKE(mkfifoat, (int dir, const char *path, mode_t mode), ,
	  FRAG_SYS(mknodat, dir, path, mode | S_IFIFO, 0))
FRAG_MAKE(symlink, (const char *to, const char *path), HERE, FRAG_SYS(symlinkat, to, dir, path))
FRAG_MAKE(symlinkat, (const char *to, int dir, const char *path), ,
	  FRAG_SYS(symlinkat, to, dir, path))

FRAG_EXPORT int linkat(int from, const char *old, int dir, const char *path, int flags)
{
	struct place a, b;
	bool held;

	if (flags & AT_EMPTY_PATH || !strncmp(old, "/proc/", 6) ||
	    !frag_held_find(&a, from, old, flags & AT_SYMLINK_FOLLOW))
		*a.up = '\0';
	else if (a.on_disk && !a.in_up && frag_held_copy(&a, false))
		return -1;
	held = frag_held_find(&b, dir, path, false);
	if (held && frag_held_make_room(&b))
		return -1;
	return (int)FRAG_SYS(linkat, *a.up ? AT_FDCWD : from, *a.up ? a.up : old,
			     held ? AT_FDCWD : dir, held ? b.up : path, *a.up ? 0 : flags);
}
FRAG_EXPORT int link(const char *old, const char *path)
{
	return linkat(AT_FDCWD, old, AT_FDCWD, path, 0);
}

/* Is its folder writable? */
static int may_rename(const struct place *p)
{
	char folder[PATH_MAX];

	if (!p->on_disk)
		return 0;
	strcpy(folder, p->user);
	*strrchr(folder, '/') = '\0';
	return (int)FRAG_SYS(faccessat, AT_FDCWD, *folder ? folder : "/", W_OK);
}

static void hide(const struct place *p)
{
	if (p->beneath)
		frag_held_hide(p->user);
}

FRAG_EXPORT int unlinkat(int dir, const char *path, int flags)
{
	struct place p;
	bool folder = flags & AT_REMOVEDIR;

	errno = 0;
	if (!frag_held_find(&p, dir, path, false))
		return errno == ENAMETOOLONG || errno == ELOOP
			       ? -1
			       : (int)FRAG_SYS(unlinkat, dir, path, flags);
	if (!p.mode)
		return (int)FRAG_SYS(unlinkat, AT_FDCWD, p.up, flags); /* sets errno */
	if (S_ISDIR(p.mode) != folder)
		return errno = folder ? ENOTDIR : EISDIR, -1;
	if (may_rename(&p))
		return -1;
	if (folder && !frag_held_is_empty(p.user))
		return errno = ENOTEMPTY, -1;
	hide(&p);
	return p.in_up ? (int)FRAG_SYS(unlinkat, AT_FDCWD, p.up, flags) : 0;
}
FRAG_EXPORT int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}
FRAG_EXPORT int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
FRAG_EXPORT int remove(const char *path)
{
	int rc = unlinkat(AT_FDCWD, path, 0);

	return rc && errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : rc;
}

/* Can a replace b? 0, or -1 and errno. */
static int may_replace(const struct place *a, const struct place *b, unsigned flags)
{
	if (!a->mode)
		return errno = ENOENT, -1;
	if (flags & RENAME_NOREPLACE && b->mode)
		return errno = EEXIST, -1;
	if (flags & RENAME_EXCHANGE)
		return b->mode ? 0 : (errno = ENOENT, -1);
	if (b->mode && S_ISDIR(a->mode) != S_ISDIR(b->mode))
		return errno = S_ISDIR(b->mode) ? EISDIR : ENOTDIR, -1;
	if (S_ISDIR(b->mode) && !frag_held_is_empty(b->user))
		return errno = ENOTEMPTY, -1;
	return may_rename(a) || may_rename(b) ? -1 : 0;
}

static int prepare_rename(struct place *a, struct place *b, unsigned flags)
{
	if (may_replace(a, b, flags) || frag_held_copy_all(a))
		return -1;
	if (flags & RENAME_EXCHANGE)
		return frag_held_copy_all(b);
	if (!b->mode)
		return frag_held_make_room(b);
	/* its folder exists; b itself need not be copied */
	return frag_held_copy_folder_of(b->user);
}

FRAG_EXPORT int renameat2(int from, const char *old, int to, const char *path, unsigned flags)
{
	struct place a, b;
	bool held = frag_held_find(&a, from, old, false), too = frag_held_find(&b, to, path, false);

	if (held && too && !strcmp(a.user, b.user))
		return a.mode ? 0 : (errno = ENOENT, -1);
	if (held && too && prepare_rename(&a, &b, flags))
		return -1;
	if (held && !too && (!a.mode || frag_held_copy_all(&a)))
		return errno = a.mode ? errno : ENOENT, -1;
	if (!held && too && (b.mode ? frag_held_copy_folder_of(b.user) : frag_held_make_room(&b)))
		return -1;
	if (held)
		hide(&a);
	if (too && (S_ISDIR(a.mode) || flags & RENAME_EXCHANGE))
		hide(&b);
	if (held || too)
		frag_held_changed();
	return (int)FRAG_SYS(renameat2, held ? AT_FDCWD : from, held ? a.up : old,
			     too ? AT_FDCWD : to, too ? b.up : path, flags);
}
FRAG_EXPORT int renameat(int from, const char *old, int to, const char *path)
{
	return renameat2(from, old, to, path, 0);
}
FRAG_EXPORT int rename(const char *old, const char *path)
{
	return renameat2(AT_FDCWD, old, AT_FDCWD, path, 0);
}

/* ---- sockets: names that fit ----------------------------------------------------------------- */

#define FRAG_SOCKET(name, making) \
	FRAG_EXPORT int name(int fd, const struct sockaddr *at, socklen_t n) \
	{ \
		static void *function; \
		struct sockaddr_un other = { .sun_family = AF_UNIX }; \
		char path[sizeof(other.sun_path) + 1] = ""; \
		struct place p; \
\
		if (frag_held && at && at->sa_family == AF_UNIX && \
		    n > offsetof(struct sockaddr_un, sun_path) && n <= sizeof(other)) { \
			memcpy(path, ((const struct sockaddr_un *)at)->sun_path, \
			       n - offsetof(struct sockaddr_un, sun_path)); \
			if (frag_held_find(&p, AT_FDCWD, path, true) && \
			    strlen(p.up) < sizeof(other.sun_path)) { \
				if (making && frag_held_make_room(&p)) \
					return errno = errno == EEXIST ? EADDRINUSE : errno, -1; \
				strcpy(other.sun_path, p.up); \
				if (making || p.in_up || p.hidden) \
					at = (const struct sockaddr *)&other, n = sizeof(other); \
			} \
		} \
		return ((int (*)(int, const struct sockaddr *, socklen_t))frag_next( \
			&function, #name))(fd, at, n); \
	}
FRAG_SOCKET(bind, true)
FRAG_SOCKET(connect, false)

/* ---- running programs and loading libraries that it made ------------------------------------- */

static void *open_library(void *(*next)(const char *, int), const char *path, int flags)
{
	struct place p;
	int dir = AT_FDCWD;

	return next(frag_held_path(&p, &dir, path, READ), flags);
}

/* A tail call, because the loader searches the RUNPATH of its caller. */
FRAG_EXPORT void *dlopen(const char *path, int flags)
{
	static void *function;
	void *(*next)(const char *, int) =
		(void *(*)(const char *, int))frag_next(&function, "dlopen");

	return frag_held && path && strchr(path, '/') ? open_library(next, path, flags)
						      : next(path, flags);
}

/* Static, or with other privileges: this library is not loaded into it. */
static bool is_unseen(int fd)
{
	Elf64_Ehdr head;
	Elf64_Phdr part = { 0 };
	struct stat st;

	if (FRAG_SYS(fstat, fd, &st) ||
	    FRAG_SYS(pread64, fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	for (unsigned i = 0; i < head.e_phnum && part.p_type != PT_INTERP; i++)
		if (FRAG_SYS(pread64, fd, &part, sizeof(part), head.e_phoff + i * sizeof(part)) !=
		    sizeof(part))
			return false;
	return part.p_type != PT_INTERP || (st.st_mode & S_ISUID && st.st_uid != geteuid());
}

static const char *program(struct place *p, const char *path)
{
	int dir = AT_FDCWD, fd;

	if (!frag_held || !strchr(path, '/'))
		return path;
	path = frag_held_path(p, &dir, path, READ);
	fd = (int)FRAG_SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		frag_held->unseen += is_unseen(fd);
		FRAG_SYS(close, fd);
	}
	return path;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* Adds our variables to the environment of a program. */
#define WITH_OURS(given) \
	(frag_held ? frag_held_variables(given, count(given), \
					 alloca((count(given) + 4) * sizeof(char *))) \
		   : (given))
#define FRAG_EXEC(name, parameters, env, next, type, ...) \
	FRAG_EXPORT int name parameters \
	{ \
		static void *function; \
		struct place p; \
\
		path = program(&p, path); \
		return ((int(*) type)frag_next(&function, #next))(__VA_ARGS__, \
								  (char *const *)WITH_OURS(env)); \
	}
#define EXEC (const char *, char *const *, char *const *)
#define SPAWN \
	(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, \
	 char *const *, char *const *)
FRAG_EXEC(execve, (const char *path, char *const argv[], char *const env[]), env, execve, EXEC,
	  path, argv)
FRAG_EXEC(execv, (const char *path, char *const argv[]), environ, execve, EXEC, path, argv)
FRAG_EXEC(execvp, (const char *path, char *const argv[]), environ, execvpe, EXEC, path, argv)
FRAG_EXEC(execvpe, (const char *path, char *const argv[], char *const env[]), env, execvpe, EXEC,
	  path, argv)
FRAG_EXEC(posix_spawn,
	  (pid_t *restrict pid, const char *restrict path,
	   const posix_spawn_file_actions_t *restrict actions,
	   const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
	   char *const env[restrict]),
	  env, posix_spawn, SPAWN, pid, path, actions, attributes, argv)
FRAG_EXEC(posix_spawnp,
	  (pid_t *restrict pid, const char *restrict path,
	   const posix_spawn_file_actions_t *restrict actions,
	   const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
	   char *const env[restrict]),
	  env, posix_spawnp, SPAWN, pid, path, actions, attributes, argv)
