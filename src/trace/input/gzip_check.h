/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what libarchive 3.6 does not: the CRC-32 and length at the end of a gzip file. A file of several members has
 * one of each per member, of which only the last is seen here, so such files are not checked. */
#ifndef FRAG_TRACE_GZIP_CHECK_H
#define FRAG_TRACE_GZIP_CHECK_H

#include <frag/base.h>

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

#endif
