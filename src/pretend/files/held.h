/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_files.so: what a program writes goes below the folder that CUFRAG_HELD names, and its own files stay as they are.
 *
 *	up/PATH		copies of files that it changes, and new files, at their absolute path
 *	gone/PATH	an empty file: of this file or folder on disk, the program sees nothing (it removed, moved or replaced it)
 *	links/DEV-INODE	copies of files with several hard links, which the names share
 *	state		struct frag_held_state, mapped by each process
 *
 * All state is there, so processes agree without locks: a copy gets its name by link(2), which one of them wins. A path is held unless it
 * begins with /dev/, /proc/, /sys/ or an entry of CUFRAG_HELD_NOT. The C library's functions are replaced in
 * held_calls.c (paths), held_open.c (opening, writing) and held_folders.c; held_places.c decides.
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

#include "base/held.h"

#define FRAG_EXPORT __attribute__((visibility("default")))
/* Not ours: the kernel's. */
#define FRAG_SYS(name, ...) syscall(SYS_##name, __VA_ARGS__)

struct place {
	char user[PATH_MAX]; /* absolute and without links */
	char up[PATH_MAX +
		PATH_MAX];   /* its copy; may be "/proc/self/fd/N/…" where it is too long */
	bool in_up, on_disk; /* is it there, as the program sees it? */
	bool beneath;	     /* something lies on disk, and it did not remove that … */
	bool hidden;	     /* … something does, and it does not see it */
	mode_t mode;
	struct stat disk;
};

enum how { READ, READ_LINK, CHANGE, CHANGE_LINK };

/* NULL: nothing is held back. */
extern struct frag_held_state *frag_held;

/* False: not held; the call goes on with what it was given. `links`: those at the end are followed. */
bool frag_held_find(struct place *p, int dir, const char *path, bool links);
/* The place of a descriptor that is open on the file on disk; false: there is none to protect. */
bool frag_held_find_fd(struct place *p, int fd);
/* What a call uses in place of `path`. NULL: errno says why not. *dir becomes AT_FDCWD where the path is another. */
const char *frag_held_path(struct place *p, int *dir, const char *path, enum how how);
/* Is a new name possible there, and if so with its folder in up? 0, or -1 and errno. */
int frag_held_make_room(struct place *p);
/* Copies it to up, an open file without its contents. 0, or -1 and errno. */
int frag_held_copy(struct place *p, bool empty);
int frag_held_copy_folder(char *user);
int frag_held_copy_folder_of(char *user);
/* With all that is in it. */
int frag_held_copy_all(struct place *p);
int frag_held_may_change(const struct place *p);
/* The name on disk is hidden. */
void frag_held_hide(const char *user);
bool frag_held_is_hidden(const char *user);
/* What a name means may have changed. */
void frag_held_changed(void);
void frag_held_up(const char *user, char *up);
/* A folder of which the program sees both the one on disk and that in up, or has removed something. */
bool frag_held_is_merged(const struct place *p);
bool frag_held_is_empty(const char *user);
/* A path below up becomes the program's. */
void frag_held_strip(char *path);
/* The program wrote this many bytes. False: no more (errno = ENOSPC). */
bool frag_held_count(int fd, size_t bytes);
char *const *frag_held_variables(char *const *given, size_t n, char **all);

static inline void *frag_next(void **function, const char *name)
{
	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
	return *function;
}

#endif
