/* SPDX-License-Identifier: Apache-2.0 */
/* Entries as a recording has them: their number in it, and how PyTorch rounds what they ask for. */
#include "build.h"

size_t frag_raw_index(const struct frag_raw_dev *raw, size_t i)
{
	size_t at = i;

	for (size_t k = 0; k < i; k++)
		at += raw->entries[k].action == FRAG_RAW_FREE;
	return at;
}

uint64_t frag_torch_round(uint64_t n, const uint32_t *roundup16)
{
	uint64_t d, unit, floor;
	unsigned log;

	if (n < 512)
		return 512;
	log = frag_log2(n);
	d = roundup16 ? roundup16[FRAG_MIN(log < 20 ? 0u : log - 20u, 15u)] : 0;
	if (d > 1 && n / 512 >= d && n > 512 * d) {
		if (frag_is_pow2(n))
			return n;
		floor = 1ull << log;
		unit = floor >> frag_log2(d);
		return frag_round_up(n, unit);
	}
	return frag_round_up(n, 512);
}
