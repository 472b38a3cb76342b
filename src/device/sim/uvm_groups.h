/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How managed memory becomes resident, after the open kernel module nvidia-uvm: only numbers and
 * masks, for the simulated card (sim_managed.c) and the count of a real card (uvm_resident.c).
 *
 * Words. region: addresses that the driver treats as one, either a request of more than 2 MiB or
 * the 2 MiB that smaller ones share. block: 2 MiB of a region, in addresses. group: 64 KiB of a
 * block; bit i of a mask is group i.
 *
 * Owns nothing, cannot fail.
 */
#ifndef FRAG_DEVICE_UVM_GROUPS_H
#define FRAG_DEVICE_UVM_GROUPS_H

#include <frag/base.h>

#define UVM_BLOCK FRAG_PAGE
#define UVM_GROUP (64 * FRAG_KIB)
#define UVM_GROUPS 32u /* of a block */
/* uvm_perf_prefetch_threshold: a subtree is fetched if more than this share is resident */
#define UVM_DENSITY_PERCENT 51u

/* Number of bits set, without the popcnt instruction, which old machines lack, or a call. */
static inline unsigned frag_uvm_count(uint32_t mask)
{
	mask -= mask >> 1 & 0x55555555u;
	mask = (mask & 0x33333333u) + (mask >> 2 & 0x33333333u);
	mask = (mask + (mask >> 4)) & 0x0f0f0f0fu;
	return mask * 0x01010101u >> 24;
}

/* Groups under the first `bytes` of a region. */
static inline uint64_t frag_uvm_groups(uint64_t bytes)
{
	return (bytes + UVM_GROUP - 1) / UVM_GROUP;
}

/* Groups [low, high) of a block. pre: low <= high <= UVM_GROUPS. */
static inline uint32_t frag_uvm_mask(uint64_t low, uint64_t high)
{
	return (uint32_t)((1ull << high) - (1ull << low));
}

/* Groups of block i that belong to a region of this many groups. pre: i * UVM_GROUPS < groups. */
static inline uint32_t frag_uvm_valid(uint64_t groups, uint64_t i)
{
	return frag_uvm_mask(0, FRAG_MIN(groups - i * UVM_GROUPS, UVM_GROUPS));
}

/*
 * Groups that become resident after a fault on `want`: these, and the largest subtree around one of
 * them, in the block's binary tree, that is then more than 51 % resident. pre: want is not empty,
 * and of `valid` but not of `resident`.
 */
static inline uint32_t frag_uvm_dense(uint32_t valid, uint32_t resident, uint32_t want)
{
	uint32_t there = resident | want, all = there;
	unsigned low = (unsigned)__builtin_ctz(want), high = 31 - (unsigned)__builtin_clz(want);

	if (there == valid)
		return want;
	for (unsigned width = 2; width <= UVM_GROUPS; width *= 2) {
		for (unsigned at = low & ~(width - 1); at <= high; at += width) {
			uint32_t sub = (uint32_t)((1ull << width) - 1) << at;
			uint32_t part = sub & valid;

			if ((sub & want) && frag_uvm_count(there & part) * 100 >
						    frag_uvm_count(part) * UVM_DENSITY_PERCENT)
				all |= part;
		}
	}
	return all & ~resident;
}

#endif
