/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files and folders, named .cufrag-XXXXXX. A signal that ends the program removes them,
 * too.
 *
 * Ownership: returned paths are borrowed until remove or done, which accept any copy of the path.
 */
#ifndef FRAG_BASE_SCRATCH_H
#define FRAG_BASE_SCRATCH_H

#include <frag/error.h>

/* Creates a folder in `dir`; NULL: in $TMPDIR. 0 or an errno. */
int frag_scratch_folder(const char *dir, char **path);
/* Creates a file. *fd is open for writing and belongs to the caller. 0 or an errno. */
int frag_scratch_file(const char *dir, char **path, int *fd);
/* The same with a name of its own, like mkdtemp(3). 0 or an errno. */
int frag_scratch_adopt(char *folder);
/* Removes it with its contents. NULL does nothing. */
void frag_scratch_remove(const char *path);
/* The same for a folder that is not a temporary one. A link is removed, not followed. */
void frag_scratch_remove_folder(const char *path);
/* It has been renamed, so it is no longer temporary. */
void frag_scratch_done(const char *path);

#endif
