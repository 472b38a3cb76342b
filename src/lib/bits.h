/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of numbers below 4,096: one bit each in words[], and one bit in *some for each non-zero
 * word, so that a few instructions find the next number. Both belong to the caller and start
 * zeroed; words[] covers the numbers in use.
 */
#ifndef FRAG_LIB_BITS_H
#define FRAG_LIB_BITS_H

#include <frag/base.h>

#define FRAG_BITS_NONE UINT32_MAX

static inline void frag_bits_add(uint64_t *words, uint64_t *some, uint32_t i)
{
	words[i / 64] |= 1ull << (i % 64);
	*some |= 1ull << (i / 64);
}

static inline void frag_bits_drop(uint64_t *words, uint64_t *some, uint32_t i)
{
	words[i / 64] &= ~(1ull << (i % 64));
	if (!words[i / 64])
		*some &= ~(1ull << (i / 64));
}

/* The first number >= i, or FRAG_BITS_NONE. pre: words[] covers i. */
static inline uint32_t frag_bits_from(const uint64_t *words, uint64_t some, uint32_t i)
{
	uint32_t w = i / 64;
	uint64_t bits = words[w] >> (i % 64) << (i % 64);

	if (!bits) {
		some = w == 63 ? 0 : some >> (w + 1) << (w + 1);
		if (!some)
			return FRAG_BITS_NONE;
		w = (uint32_t)__builtin_ctzll(some);
		bits = words[w];
	}
	return w * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The smallest number. pre: the set is not empty. */
static inline uint32_t frag_bits_first(const uint64_t *words, uint64_t some)
{
	uint32_t w = (uint32_t)__builtin_ctzll(some);

	return w * 64 + (uint32_t)__builtin_ctzll(words[w]);
}

#endif
