/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tournament: the greatest of many numbers, and the first or last leaf that has at least so
 * much, while single ones change. max[i] is the greater of max[2i] and max[2i + 1]; leaf k
 * is max[leaves + k], leaves a power of two, max[0] unused. The arrays are the caller's.
 */
#ifndef FRAG_LIB_TOURNAMENT_H
#define FRAG_LIB_TOURNAMENT_H

#include <frag/base.h>

/* All of max[] from its leaves. O(leaves). */
static inline void frag_tournament_build(uint64_t *max, size_t leaves)
{
	for (size_t i = leaves; i-- > 1;)
		max[i] = FRAG_MAX(max[2 * i], max[2 * i + 1]);
}

/* Changes a leaf. O(log leaves), as far up as something changes. pre: leaf < leaves. */
static inline void frag_tournament_set(uint64_t *max, size_t leaves, size_t leaf, uint64_t value)
{
	size_t i = leaves + leaf;

	max[i] = value;
	while (i > 1) {
		uint64_t greater = FRAG_MAX(max[i], max[i ^ 1]);

		i /= 2;
		if (max[i] == greater)
			return;
		max[i] = greater;
	}
}

#endif
