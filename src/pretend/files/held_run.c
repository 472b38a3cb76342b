/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, programs and libraries that the program made; see held.h. */
#include "held.h"

#include <alloca.h>
#include <elf.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- sockets: names that fit ----------------------------------------------------------------- */

static long name_socket(void *next, long *a, const struct shape *s)
{
	const struct sockaddr_un *at = (const struct sockaddr_un *)a[1];
	struct sockaddr_un other = { .sun_family = AF_UNIX };
	const size_t n = (socklen_t)a[2], start = offsetof(struct sockaddr_un, sun_path);
	char path[sizeof(other.sun_path) + 1] = "";
	struct place p;

	if (!frag_held || !at || at->sun_family != AF_UNIX || n <= start || n > sizeof(other))
		return frag_held_go(next, a);
	memcpy(path, at->sun_path, n - start);
	if (frag_held_find(&p, AT_FDCWD, path, true) && strlen(p.up) < sizeof(other.sun_path)) {
		if (s->how == HELD_MAKE && frag_held_make_room(&p))
			return errno = errno == EEXIST ? EADDRINUSE : errno, -1;
		strcpy(other.sun_path, p.up);
		if (s->how == HELD_MAKE || p.in_up || p.hidden) {
			a[1] = (long)&other;
			a[2] = sizeof(other);
		}
	}
	return frag_held_go(next, a);
}

ROW(name_socket, bind, .how = HELD_MAKE)
ROW(name_socket, connect, )

/* ---- running programs and loading libraries that it made ------------------------------------- */

static void *open_library(void *(*next)(const char *, int), const char *path, int flags)
{
	struct place p;
	int dir = AT_FDCWD;

	return next(frag_held_path(&p, &dir, path, 0), flags);
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
	path = frag_held_path(p, &dir, path, 0);
	fd = (int)FRAG_SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		frag_held->unseen += is_unseen(fd);
		FRAG_SYS(close, fd);
	}
	return path;
}

/* more: the environment, which gets our variables. */
static long run(void *next, long *a, const struct shape *s)
{
	char *const *given = (char *const *)a[s->more - 1];
	struct place p;
	size_t n = 0;

	a[s->path - 1] = (long)program(&p, (const char *)a[s->path - 1]);
	while (given && given[n])
		n++;
	if (frag_held)
		a[s->more - 1] =
			(long)frag_held_variables(given, n, alloca((n + 4) * sizeof(char *)));
	return frag_held_go(next, a);
}

static long run_in_ours(void *next, long *a, const struct shape *s)
{
	a[2] = (long)environ;
	return run(next, a, s);
}

ROW(run, execve, .path = 1, .more = 3)
ROW(run, execvpe, .path = 1, .more = 3)
ROW_AS(run_in_ours, execv, "execve", .path = 1, .more = 3)
ROW_AS(run_in_ours, execvp, "execvpe", .path = 1, .more = 3)
ROW(run, posix_spawn, .path = 2, .more = 6)
ROW(run, posix_spawnp, .path = 2, .more = 6)
