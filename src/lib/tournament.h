/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tournament tree: the maximum of many numbers, and the first or last leaf with at least a given
 * value, while single numbers change. max[i] is the maximum of max[2i] and max[2i + 1]; leaf k is
 * max[leaves + k]; leaves is a power of two; max[0] is unused. The arrays belong to the caller.
 */
#ifndef FRAG_LIB_TOURNAMENT_H
#define FRAG_LIB_TOURNAMENT_H

#include <frag/base.h>

/* Computes max[] from its leaves. O(leaves). */
static inline void frag_tournament_build(uint64_t *max, size_t leaves)
{
	for (size_t i = leaves; i-- > 1;)
		max[i] = FRAG_MAX(max[2 * i], max[2 * i + 1]);
}

/* Changes a leaf, and its ancestors as far as they change. O(log leaves). pre: leaf < leaves. */
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
