/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-random numbers, the same on every machine: splitmix64 (Steele et al., OOPSLA 2014). */
#ifndef FRAG_LIB_RANDOM_H
#define FRAG_LIB_RANDOM_H

#include <stdint.h>

/* The next number; *state starts with any number. */
static inline uint64_t frag_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#endif
