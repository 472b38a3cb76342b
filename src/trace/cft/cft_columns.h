/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a .cft block: arrays of values of one type, packed one after another.
 *
 * Two shapes. raw: little-endian values of 1, 2 or 4 bytes, as the hot loops need them. numbers:
 * 64-bit values, optionally as differences, cut to the width of the largest and stored byte plane
 * by byte plane. Both are compressed with zstd where that makes them smaller.
 *
 * Ownership: a packer or unpacker owns its buffers (init/release). The bytes that an unpacker reads
 * are the caller's and must stay until it is done.
 */
#ifndef FRAG_TRACE_CFT_COLUMNS_H
#define FRAG_TRACE_CFT_COLUMNS_H

#include <stdbool.h>

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_CFT_COLUMN_HEAD 12u       /* bytes before each column's data */
#define FRAG_CFT_COLUMN_MAX (1u << 20) /* values in a column, and so in a block */

struct frag_cft_packer {
	unsigned char *out;    /* packed columns so far */
	size_t len, cap;       /* len 0: begin again */
	unsigned char *planes; /* scratch */
	size_t planes_cap;
	void *zstd; /* ZSTD_CCtx */
};

int frag_cft_packer_init(struct frag_cft_packer *p, struct frag_err *err);
void frag_cft_packer_release(struct frag_cft_packer *p);
/* values: count x width bytes. Errors: FRAG_ENOMEM. */
int frag_cft_pack_raw(struct frag_cft_packer *p, const void *values, size_t count, unsigned width,
		      struct frag_err *err);
/* differences: stores v[i] - v[i-1] modulo 2^64. Errors: FRAG_ENOMEM. */
int frag_cft_pack_numbers(struct frag_cft_packer *p, const uint64_t *values, size_t count,
			  bool differences, struct frag_err *err);

struct frag_cft_unpacker {
	const unsigned char *begin, *pos, *end; /* payload of one block */
	uint64_t offset;			/* of `begin` in the input */
	unsigned char *planes;
	size_t planes_cap;
	void *zstd; /* ZSTD_DCtx */
};

int frag_cft_unpacker_init(struct frag_cft_unpacker *u, struct frag_err *err);
void frag_cft_unpacker_release(struct frag_cft_unpacker *u);
void frag_cft_unpacker_set(struct frag_cft_unpacker *u, const unsigned char *payload, size_t len,
			   uint64_t offset);
/* Offset in the input of the next byte. */
uint64_t frag_cft_unpacker_at(const struct frag_cft_unpacker *u);

/* Reads the next column, which must have exactly this shape, into out[count]. Errors: FRAG_EINPUT
 * with the offset, FRAG_ENOMEM. */
int frag_cft_unpack_raw(struct frag_cft_unpacker *u, void *out, size_t count, unsigned width,
			struct frag_err *err);
int frag_cft_unpack_numbers(struct frag_cft_unpacker *u, uint64_t *out, size_t count,
			    struct frag_err *err);
/* Number of values in the next column, without reading it; FRAG_EINPUT if more than `max`. */
int frag_cft_unpack_count(struct frag_cft_unpacker *u, size_t max, size_t *out,
			  struct frag_err *err);
/* FRAG_EINPUT unless the payload has been read to its end. */
int frag_cft_unpack_end(struct frag_cft_unpacker *u, struct frag_err *err);

/* FRAG_EINPUT "damaged .cft trace at byte N: what". */
int frag_cft_bad(struct frag_err *err, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
