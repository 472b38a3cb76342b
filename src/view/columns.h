/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of numbers as the page reads them: each number in groups of 7 bits, the lowest first;
 * several columns packed into one blob, compressed by zlib if its library is installed. Blobs go to
 * a store: a file without a name.
 *
 * Ownership: a zeroed struct is empty, and so is a released one. Additions after memory ran out are
 * remembered in `failed`.
 */
#ifndef FRAG_VIEW_COLUMNS_H
#define FRAG_VIEW_COLUMNS_H

#include <stdio.h>

#include <frag/base.h>
#include <frag/error.h>

struct frag_column {
	uint8_t *bytes;
	size_t count, cap;
	bool failed;
};

bool frag_column_grow(struct frag_column *c);

static inline void frag_column_byte(struct frag_column *c, uint8_t value)
{
	if (FRAG_LIKELY(c->count < c->cap) || frag_column_grow(c))
		c->bytes[c->count++] = value;
}

static inline void frag_column_put(struct frag_column *c, uint64_t value)
{
	for (; value > 127; value >>= 7)
		frag_column_byte(c, (uint8_t)(value | 128));
	frag_column_byte(c, (uint8_t)value);
}

/* The difference of two numbers, small in both directions: 0, -1, 1, -2, … become 0, 1, 2, 3, … */
static inline void frag_column_step(struct frag_column *c, uint64_t from, uint64_t to)
{
	uint64_t d = to - from;

	frag_column_put(c, d << 1 ^ (0 - (d >> 63)));
}

/* What is packed, and where it is in the store. */
struct frag_blob {
	uint64_t offset;
	uint64_t bytes; /* in the store */
	uint64_t plain; /* unpacked; equal: it is not compressed */
};

struct frag_blob_store {
	FILE *file;
	struct frag_blob *blobs;
	size_t count, cap;
	uint64_t bytes;
};

int frag_blob_store_open(struct frag_blob_store *s, struct frag_err *err);
void frag_blob_store_release(struct frag_blob_store *s);
/* Packs and empties columns, each after its length, into a blob. Errors: FRAG_ENOMEM, FRAG_EOUTPUT. */
int frag_blob_store_pack(struct frag_blob_store *s, struct frag_column *columns, size_t count,
			 uint64_t *blob, struct frag_err *err);
/* Any bytes. */
int frag_blob_store_add(struct frag_blob_store *s, const void *bytes, size_t count, uint64_t *blob,
			struct frag_err *err);
/* Blob `i` in new memory. */
int frag_blob_store_read(const struct frag_blob_store *s, size_t i, uint8_t **bytes,
			 struct frag_err *err);

#endif
