/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_files.so: writes of a program go to the folder CUFRAG_HELD; its own files stay as they
 * are.
 *
 *	up/PATH		new files and copies of changed ones, at their absolute path
 *	gone/PATH	an empty file: hides what is on disk (removed, moved or replaced)
 *	links/DEV-INODE	copies of files with several hard links, shared by all their names
 *	state		struct frag_held_state, mapped by each process
 *
 * All state is in files, so processes agree without locks: link(2) names a copy, and the first link
 * wins. A path is held unless it begins with /dev/, /proc/, /sys/ or an entry of CUFRAG_HELD_NOT.
 * held_calls.c, held_names.c, held_folders.c and held_run.c replace functions of the C library;
 * held_places.c resolves paths. read_files.c notes what the program reads.
 */
#ifndef FRAG_INSIDE_HELD_H
#define FRAG_INSIDE_HELD_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/held_state.h"

/* Signatures are those of handlers and of the C library: not all arguments are used. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FRAG_EXPORT __attribute__((visibility("default")))
/* Calls the kernel directly, not the replaced functions. */
#define FRAG_SYS(name, ...) syscall(SYS_##name, __VA_ARGS__)

struct place {
	char user[PATH_MAX];	      /* absolute, without symbolic links */
	char up[PATH_MAX + PATH_MAX]; /* its copy; "/proc/self/fd/N/…" if too long */
	bool in_up, on_disk;	      /* where it is visible to the program */
	bool beneath;		      /* exists on disk, not removed by the program */
	bool hidden;		      /* exists on disk, but hidden from the program */
	mode_t mode;
	struct stat disk;
};

/* What is done with a path: it is read (0), a link at its end is not followed, its file is changed,
 * or it is a new name. */
#define HELD_LINK 1u
#define HELD_CHANGE 2u
#define HELD_MAKE 4u

/* NULL: writes are not held. */
extern struct frag_held_state *frag_held;
extern char frag_held_root[2048]; /* without a slash at its end */

/* False: not held; pass the call's own arguments on. `links`: follow symbolic links at the end. */
bool frag_held_find(struct place *p, int dir, const char *path, bool links);
/* The place of a descriptor of a file on disk; false: nothing to protect. */
bool frag_held_find_fd(struct place *p, int fd);
/* The path to use for `path`. NULL: see errno. *dir: AT_FDCWD if it is replaced. */
const char *frag_held_path(struct place *p, int *dir, const char *path, unsigned how);
/* Prepares a new name: makes its folder in up. 0, or -1 and errno if it is impossible. */
int frag_held_make_room(struct place *p);
/* Copies the file to up, or an empty one if `empty`. 0, or -1 and errno. */
int frag_held_copy(struct place *p, bool empty);
int frag_held_copy_folder(char *user);
int frag_held_copy_folder_of(char *user);
/* Copies a folder with its contents. */
int frag_held_copy_all(struct place *p);
int frag_held_may_change(const struct place *p);
/* Hides the name on disk. */
void frag_held_hide(const char *user);
bool frag_held_is_hidden(const char *user);
/* From now on, paths are resolved. */
void frag_held_changed(void);
/* A new path for a file that gets its name later. */
void frag_held_make_name(char *name, const char *kind);
void frag_held_up(const char *user, char *up);
/* Are there visible entries both on disk and in up, or hidden ones? */
bool frag_held_is_merged(const struct place *p);
bool frag_held_is_empty(const char *user);
bool frag_held_is_exempt(const char *path);
/* Converts a path below up to the program's. */
void frag_held_strip(char *path);
/* Counts bytes that the program wrote. False: over the limit (errno = ENOSPC). */
bool frag_held_count(int fd, size_t bytes);
char *const *frag_held_variables(char *const *given, size_t n, char **all);
/* Notes a descriptor opened for reading. Keeps errno. */
void frag_read_file(int fd);

static inline int frag_held_look(const char *path, struct stat *st)
{
	return (int)FRAG_SYS(newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline ssize_t frag_held_read_link(const char *path, char *to)
{
	ssize_t n = FRAG_SYS(readlinkat, AT_FDCWD, path, to, PATH_MAX - 1);

	if (n >= 0)
		to[n] = '\0';
	return n;
}

static inline void *frag_next(void **function, const char *name)
{
	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
	return *function;
}

/*
 * A row: a handler, the function that it replaces, and which of its arguments are what. All
 * arguments are integers or pointers, in registers, so each function can be written with six of
 * them, also those with fewer or with "...". ROWS: also NAME64.
 */
struct shape { /* numbers of arguments, from 1; 0: it has none */
	unsigned char dir, path;
	unsigned char more; /* flags, or as the handler says */
	unsigned char how;  /* HELD_… */
};

long frag_held_go(void *function, const long *a);

#define ROW_AS(handler, name, original, ...) \
	FRAG_EXPORT long held_##name(long, long, long, long, long, long) __asm__(#name); \
	long held_##name(long a, long b, long c, long d, long e, long f) \
	{ \
		static const struct shape shape = { __VA_ARGS__ }; \
		static void *next; \
\
		return handler(frag_next(&next, original), (long[]){ a, b, c, d, e, f }, &shape); \
	}
#define ROW(handler, name, ...) ROW_AS(handler, name, #name, __VA_ARGS__)
#define ROWS(handler, name, ...) ROW(handler, name, __VA_ARGS__) ROW(handler, name##64, __VA_ARGS__)

#endif
