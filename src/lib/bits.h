/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of numbers below 4,096: one bit each in words[], and one bit in *some for each non-zero
 * word, so that a few instructions find the smallest number. Both belong to the caller and start
 * zeroed; words[] covers the numbers in use.
 */
#ifndef FRAG_LIB_BITS_H
#define FRAG_LIB_BITS_H

#include <frag/base.h>

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

/* The smallest number. pre: the set is not empty. */
static inline uint32_t frag_bits_first(const uint64_t *words, uint64_t some)
{
	uint32_t w = (uint32_t)__builtin_ctzll(some);

	return w * 64 + (uint32_t)__builtin_ctzll(words[w]);
}

#endif
