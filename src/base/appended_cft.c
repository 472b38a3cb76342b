/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a .cft that grows. */
#include "appended_cft.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const unsigned char preamble[FRAG_APPENDED_PREAMBLE] = { 0x93, 'c',  'f',  't', '\r',
								'\n', 0x1a, '\n', 4 };

void frag_appended_preamble(unsigned char out[FRAG_APPENDED_PREAMBLE])
{
	memcpy(out, preamble, sizeof(preamble));
}

bool frag_appended_is(const unsigned char *bytes, size_t n)
{
	return n >= sizeof(preamble) && !memcmp(bytes, preamble, sizeof(preamble));
}

struct frag_appended_block frag_appended_head(const char *text, size_t bytes, uint64_t number)
{
	struct frag_appended_block b = { .type = FRAG_APPENDED_TYPE, .bytes = (uint32_t)bytes };
	uint64_t head;

	for (const char *at = text; (at = memchr(at, '\n', bytes - (size_t)(at - text))); at++)
		b.lines++;
	head = XXH3_64bits_withSeed(&b, offsetof(struct frag_appended_block, checksum), number);
	b.checksum = XXH3_64bits_withSeed(text, bytes, head);
	return b;
}

const char *frag_appended_check(const struct frag_appended_block *b)
{
	if (b->type != FRAG_APPENDED_TYPE || b->zero || b->zero2 || b->zero3)
		return "no block begins here";
	if (!b->bytes || b->bytes > FRAG_APPENDED_TEXT_MAX)
		return "a block of impossible length";
	return NULL;
}
