/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made aside until it is complete or used up: files and folders named .cufrag-XXXXXX. They go when
 * a signal ends the program, too; what a program left that was killed goes when the next one makes
 * something in the same folder.
 *
 * Ownership: a path that is given out is borrowed until remove or done, which take any copy of it.
 */
#ifndef FRAG_BASE_SCRATCH_H
#define FRAG_BASE_SCRATCH_H

#include <frag/error.h>

/* In `dir`; NULL: where temporary files go ($TMPDIR). 0 or an errno. */
int frag_scratch_folder(const char *dir, char **path);
/* *fd is open for writing, and the caller's. 0 or an errno. */
int frag_scratch_file(const char *dir, char **path, int *fd);
/* One that no next program removes, because what is in it may be worth hours: as mkdtemp(3). 0 or an errno. */
int frag_scratch_adopt(char *folder);
/* Links an open file that has no name there. 0 or an errno. */
int frag_scratch_name(int fd, const char *name);
/* The same to a name aside. 0 or an errno. */
int frag_scratch_link(const char *dir, int fd, char **path);
/* With all that is in it. NULL does nothing. */
void frag_scratch_remove(const char *path);
/* It has another name now. */
void frag_scratch_done(const char *path);

#endif
