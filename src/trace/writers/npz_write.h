/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an .npz: a zip of arrays, not compressed, as NumPy's savez makes it. Arrays begin at
 * multiples of 64 bytes, so that they can be used where they lie (mapped), without a copy. Columns
 * whose length is known beforehand are written side by side, row by row, with a buffer each. Zip64
 * throughout: arrays may be longer than 4 GiB.
 *
 * Ownership: the caller owns the file, which must be a regular one. Errors of the file are
 * returned.
 */
#ifndef FRAG_EXPLAIN_NPZ_WRITE_H
#define FRAG_EXPLAIN_NPZ_WRITE_H

#include <stdio.h>

#include <frag/base.h>
#include <frag/error.h>

#include "trace/input/gzip_check.h"

struct frag_npz_column {
	char name[64]; /* in the zip, with .npy */
	unsigned width;
	uint64_t count;	 /* of its values */
	uint64_t offset; /* of its member in the zip */
	uint64_t bytes;	 /* of the member */
	uint64_t at;	 /* current offset */
	uint32_t crc;	 /* so far */
	size_t used;
	unsigned char *buffer;
};

struct frag_npz {
	int fd;
	uint64_t end;
	struct frag_npz_column *columns;
	size_t count, cap;
	struct frag_gzip_check check; /* its tables */
};

/* Errors: FRAG_EUSAGE: not a regular file. */
int frag_npz_begin(struct frag_npz *w, FILE *to, struct frag_err *err);
/* A column of `count` unsigned numbers of `width` bytes; its number is w->count - 1 after that. */
int frag_npz_column(struct frag_npz *w, const char *name, unsigned width, uint64_t count,
		    struct frag_err *err);
/* The next value of a column. Errors: FRAG_EINPUT: one more than was announced; FRAG_EOUTPUT. */
int frag_npz_add(struct frag_npz *w, size_t column, uint64_t value, struct frag_err *err);
/* A whole array of unsigned numbers of this machine's order. */
int frag_npz_put(struct frag_npz *w, const char *name, unsigned width, const void *values,
		 uint64_t count, struct frag_err *err);
/* The directory. Errors: FRAG_EINPUT: a column has fewer values than announced; FRAG_EOUTPUT. */
int frag_npz_end(struct frag_npz *w, struct frag_err *err);
void frag_npz_release(struct frag_npz *w);

#endif
