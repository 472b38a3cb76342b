/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files, complete or absent: written to a file with a temporary name beside the target,
 * which is then renamed. "-" is standard output and is written directly.
 *
 * 	FRAG_TRY(frag_outfile_open(&out, path, err));
 * 	fprintf(out.to, …);             errors of the stream are seen by commit
 * 	return frag_outfile_commit(&out, err);
 *
 * Ownership: the struct is the caller's; after commit (also a failed one) or abort it is empty and
 * nothing is left beside the target.
 */
#ifndef FRAG_BASE_OUTFILE_H
#define FRAG_BASE_OUTFILE_H

#include <frag/error.h>

#include <stdio.h>

struct frag_outfile {
	FILE *to; /* write here; NULL if closed */
	char *path;
	char *temp; /* its name; NULL: none */
};

/* Errors: FRAG_EOUTPUT naming path and reason, FRAG_ENOMEM. */
int frag_outfile_open(struct frag_outfile *out, const char *path, struct frag_err *err);
/* Flushes, checks every write so far, and renames. On failure the target is unchanged. */
int frag_outfile_commit(struct frag_outfile *out, struct frag_err *err);
/* Flushes. Returns 0, or once the errno of the first failed write. */
int frag_outfile_reason(FILE *to);
/* Discards what was written. Allowed on an empty struct. */
void frag_outfile_abort(struct frag_outfile *out);

/* All at once. */
int frag_outfile_put(const char *path, const char *bytes, size_t len, struct frag_err *err);

/* Creates the folder and its missing parents. An existing folder is fine. */
int frag_make_dirs(const char *path, struct frag_err *err);
/* Whether it could, before hours of work; creates nothing. */
int frag_can_make_dirs(const char *path, struct frag_err *err);
/* The length of the folders in which both paths lie. */
size_t frag_path_shared(const char *a, const char *b);
/* "dir/name" in new memory, NULL if memory is short. */
char *frag_path_join(const char *dir, const char *name);

#endif
