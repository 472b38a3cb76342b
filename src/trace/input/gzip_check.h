/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum of a gzip file, which libarchive (3.6) does not look at: CRC-32
 * and length of the plain bytes, in the last eight bytes stored.
 * Several members in one file have a trailer each and only the last is
 * seen here: such files are let through.
 */
#ifndef FRAG_TRACE_GZIP_CHECK_H
#define FRAG_TRACE_GZIP_CHECK_H

#include <frag/base.h>

struct frag_gzip_check {
	uint32_t table[8][256];
	uint32_t crc; /* of the plain bytes so far */
	uint64_t plain_bytes, stored_bytes;
	unsigned char tail[8]; /* the last stored bytes, oldest first */
	uint32_t recent;       /* the last three stored bytes, for the magic word */
	bool members;	       /* the magic word came again */
};

void frag_gzip_check_init(struct frag_gzip_check *c);
void frag_gzip_check_stored(struct frag_gzip_check *c, const unsigned char *bytes, size_t n);
void frag_gzip_check_plain(struct frag_gzip_check *c, const unsigned char *bytes, size_t n);
/* After the last byte: is what came out what went in? */
bool frag_gzip_check_good(const struct frag_gzip_check *c);

#endif
