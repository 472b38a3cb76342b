/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a real card's managed memory is resident, by the rule of the simulated
 * card, and what the driver has taken from the card for that, which is more. It is told of
 * every request, touch and free, and asks nobody; no over-subscription.
 *
 * A block that lies wholly in one region takes a root at its first touch. A tail takes a chunk of
 * 64 KiB for each resident group, and for the last one, if it is no whole group, a chunk
 * of 4 KiB for each of its pages. What that means for the card: uvm_roots.h.
 *
 * Ownership: the count owns what it remembers of a request until its free. Addresses and
 * sizes are bytes.
 */
#ifndef FRAG_DEVICE_UVM_RESIDENT_H
#define FRAG_DEVICE_UVM_RESIDENT_H

#include "lib/addr_map.h"
#include "lib/slab.h"
#include "uvm_groups.h"
#include "uvm_roots.h"

/* The region that requests of up to 2 MiB share. */
struct uvm_page {
	uint32_t resident; /* bit per group */
	uint32_t live_count;
};

/* A live request. */
struct uvm_piece {
	uint64_t bytes;
	struct uvm_page *page;	/* NULL: a region of its own, of which: */
	uint64_t groups;	/* resident, the first ones of the region */
	struct uvm_chunks tail; /* behind those of the tail */
};

struct uvm_resident {
	uint64_t resident_bytes;
	struct uvm_roots roots;

	struct frag_addr_map live;  /* address -> uvm_piece */
	struct frag_addr_map pages; /* number of the page -> uvm_page */
	struct frag_slab piece_slab, page_slab;
};

/* Empty; the driver holds nothing. release: forgets everything. */
void frag_uvm_resident_init(struct uvm_resident *b);
void frag_uvm_resident_release(struct uvm_resident *b);

/* Enough for one add or one touch. False: host memory exhausted. */
bool frag_uvm_resident_reserve(struct uvm_resident *b);

/* pre (add, touch): reserved. Constant time, whatever the size. */
void frag_uvm_resident_add(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes);
/* The first `bytes` of a request were prefetched, or touched by a kernel. pre: 0 < bytes <= its. */
void frag_uvm_resident_touch(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes,
			     bool prefetch);
/* pre: live. */
void frag_uvm_resident_free(struct uvm_resident *b, frag_addr_t addr);

/* NULL: no live request begins there. Borrowed until its free. */
static inline const struct uvm_piece *frag_uvm_resident_find(const struct uvm_resident *b,
							     frag_addr_t addr)
{
	return frag_addr_map_get(&b->live, addr);
}

#endif
