/* SPDX-License-Identifier: Apache-2.0 */
/* What input.c needs for files that are packed: libarchive, the check of a gzip file, and the blocks
 * of a .cft that grows. */
#ifndef FRAG_TRACE_UNPACK_H
#define FRAG_TRACE_UNPACK_H

#include <archive.h>
#include <sys/types.h>

#include <frag/base.h>

#include "base/appended_cft.h"
#include "base/library.h"

/* ---- libarchive, loaded with the first compressed file: it pulls in a dozen libraries, and loading
 * them takes twice as long as starting the rest of the program ---- */

/* What is used of it, by the names it has there. */
#define FRAG_ARCHIVE_FUNCTIONS(X) \
	X(archive_read_new) \
	X(archive_read_free) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_raw) \
	X(archive_read_support_format_empty) \
	X(archive_read_open) \
	X(archive_read_next_header) \
	X(archive_read_data) \
	X(archive_filter_code) \
	X(archive_error_string) \
	X(archive_set_error)

struct frag_archive_lib {
	FRAG_ARCHIVE_FUNCTIONS(FRAG_SYMBOL_MEMBER)
};

/* To the end of the process; NULL if it is not installed, and *fault: the loader's message (no
 * package, memory or files left). Any thread. */
const struct frag_archive_lib *frag_archive_lib(const char **fault);

/* ---- what libarchive 3.6 does not check: the CRC-32 and length at the end of a gzip file. A file of
 * several members has one of each per member, of which only the last is seen here, so such files are
 * not checked ---- */

struct frag_gzip_check {
	uint32_t table[8][256];
	uint32_t crc; /* of the plain bytes so far */
	uint64_t plain_bytes, stored_bytes;
	unsigned char tail[8]; /* the last stored bytes, oldest first */
	uint32_t recent;       /* the last three stored bytes, for the magic bytes */
	bool members;	       /* the magic bytes came again */
};

void frag_gzip_check_init(struct frag_gzip_check *c);
void frag_gzip_check_stored(struct frag_gzip_check *c, const unsigned char *bytes, size_t n);
void frag_gzip_check_plain(struct frag_gzip_check *c, const unsigned char *bytes, size_t n);
/* After the last byte: do checksum and length agree? */
bool frag_gzip_check_good(const struct frag_gzip_check *c);

/* ---- lines from the blocks of a growing .cft (base/appended_cft.h) ---- */

/* Up to n bytes as stored; 0 at the end of the file, -1 with errno. */
typedef ssize_t (*frag_appended_pull_fn)(void *ctx, void *dst, size_t n);

struct frag_appended_read {
	frag_appended_pull_fn pull;
	void *ctx;
	uint64_t number, offset; /* of the next block */
	char *text;
	size_t at, end;	   /* the rest of the current block */
	const char *wrong; /* after -1; NULL: errno says it */
};

/* Reads the preamble. -1: memory is short. */
int frag_appended_read_init(struct frag_appended_read *g, frag_appended_pull_fn pull, void *ctx);
void frag_appended_read_release(struct frag_appended_read *g);
/* Up to `room` bytes of lines; 0: no complete block is left; -1: see wrong and offset. */
ssize_t frag_appended_read(struct frag_appended_read *g, unsigned char *dst, size_t room);

#endif
