/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a .cft that grows. */
#include "growing.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const unsigned char preamble[FRAG_GROWING_PREAMBLE] = { 0x93, 'c',  'f',	 't', '\r',
							       '\n', 0x1a, '\n', 4 };

void frag_growing_preamble(unsigned char out[FRAG_GROWING_PREAMBLE])
{
	memcpy(out, preamble, sizeof(preamble));
}

bool frag_growing_is(const unsigned char *bytes, size_t n)
{
	return n >= sizeof(preamble) && !memcmp(bytes, preamble, sizeof(preamble));
}

struct frag_growing_block frag_growing_head(const char *text, size_t bytes, uint64_t number)
{
	struct frag_growing_block b = { .type = FRAG_GROWING_TYPE, .bytes = (uint32_t)bytes };
	uint64_t head;

	for (const char *at = text; (at = memchr(at, '\n', bytes - (size_t)(at - text))); at++)
		b.lines++;
	head = XXH3_64bits_withSeed(&b, offsetof(struct frag_growing_block, checksum), number);
	b.checksum = XXH3_64bits_withSeed(text, bytes, head);
	return b;
}

const char *frag_growing_check(const struct frag_growing_block *b)
{
	if (b->type != FRAG_GROWING_TYPE || b->zero || b->zero2 || b->zero3)
		return "no block begins here";
	if (!b->bytes || b->bytes > FRAG_GROWING_TEXT_MAX)
		return "a block of impossible length";
	return NULL;
}
