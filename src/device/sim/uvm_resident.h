/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which managed memory of a real card is resident, by the rule of the simulated card, and what the
 * driver has taken from the card for it, which is more. Computed from every request, touch and
 * free; does not model over-subscription.
 *
 * A block completely inside one region takes a root at its first touch. A tail takes a chunk of 64
 * KiB for each resident group and, if its last group is incomplete, a chunk of 4 KiB for each page
 * of that group. uvm_roots.h turns this into memory of the card.
 *
 * Ownership: the struct owns what it stores about a request until the request is freed. Addresses
 * and sizes are bytes.
 */
#ifndef FRAG_DEVICE_UVM_RESIDENT_H
#define FRAG_DEVICE_UVM_RESIDENT_H

#include "lib/addr_map.h"
#include "lib/slabs.h"
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
	struct uvm_page *page;	/* NULL: it has its own region, and: */
	uint64_t groups;	/* number of resident groups, the first ones of the region */
	struct uvm_chunks tail; /* chunks of the tail */
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

/* Reserves memory for one add or one touch. False: host memory exhausted. */
bool frag_uvm_resident_reserve(struct uvm_resident *b);

/* pre (add, touch): reserved. Constant time, whatever the size. */
void frag_uvm_resident_add(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes);
/* The first `bytes` were prefetched, or touched by a kernel. pre: 0 < bytes <= size. */
void frag_uvm_resident_touch(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes,
			     bool prefetch);
/* pre: live. */
void frag_uvm_resident_free(struct uvm_resident *b, frag_addr_t addr);

/* NULL: no live request begins there. Borrowed until the request is freed. */
static inline const struct uvm_piece *frag_uvm_resident_find(const struct uvm_resident *b,
							     frag_addr_t addr)
{
	return frag_addr_map_get(&b->live, addr);
}

#endif
