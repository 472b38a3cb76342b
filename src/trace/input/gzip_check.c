/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 (RFC 1952, reflected 0xedb88320), eight bytes at a time through eight tables. */
#include "gzip_check.h"

#include <string.h>

#define GZIP_MAGIC 0x1f8b08u /* gzip, deflate */

void frag_gzip_check_init(struct frag_gzip_check *c)
{
	*c = (struct frag_gzip_check){ .crc = 0 };
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;

		for (int k = 0; k < 8; k++)
			v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
		c->table[0][i] = v;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			c->table[k][i] =
				c->table[k - 1][i] >> 8 ^ c->table[0][c->table[k - 1][i] & 0xff];
}

static uint32_t le32(const unsigned char *b)
{
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

void frag_gzip_check_plain(struct frag_gzip_check *c, const unsigned char *b, size_t n)
{
	uint32_t crc = ~c->crc;

	c->plain_bytes += n;
	for (; n >= 8; n -= 8, b += 8) {
		uint32_t low = le32(b) ^ crc, high = le32(b + 4);

		crc = c->table[7][low & 0xff] ^ c->table[6][low >> 8 & 0xff] ^
		      c->table[5][low >> 16 & 0xff] ^ c->table[4][low >> 24] ^
		      c->table[3][high & 0xff] ^ c->table[2][high >> 8 & 0xff] ^
		      c->table[1][high >> 16 & 0xff] ^ c->table[0][high >> 24];
	}
	for (; n; n--, b++)
		crc = crc >> 8 ^ c->table[0][(crc ^ *b) & 0xff];
	c->crc = ~crc;
}

void frag_gzip_check_stored(struct frag_gzip_check *c, const unsigned char *b, size_t n)
{
	size_t keep = FRAG_MIN(n, sizeof(c->tail));

	for (size_t i = 0; i < n && !c->members; i++) {
		c->recent = (c->recent << 8 | b[i]) & 0xffffff;
		c->members = c->recent == GZIP_MAGIC && c->stored_bytes + i > 2;
	}
	memmove(c->tail, c->tail + keep, sizeof(c->tail) - keep);
	memcpy(c->tail + sizeof(c->tail) - keep, b + n - keep, keep);
	c->stored_bytes += n;
}

bool frag_gzip_check_good(const struct frag_gzip_check *c)
{
	if ((uint32_t)c->plain_bytes == le32(c->tail + 4))
		return c->crc == le32(c->tail);
	return c->members;
}
