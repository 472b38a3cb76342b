/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which managed memory of a real card is resident, by the rule of the simulated card. Computed from
 * every request, touch and free; does not model over-subscription.
 *
 * Ownership: the struct owns what it stores about a request until the request is freed. Addresses
 * and sizes are bytes.
 */
#ifndef FRAG_DEVICE_UVM_RESIDENT_H
#define FRAG_DEVICE_UVM_RESIDENT_H

#include "lib/addr_map.h"
#include "lib/slabs.h"

/* A live request. */
struct uvm_piece {
	uint64_t bytes;
	uint64_t groups; /* number of resident groups, the first ones of its region */
	bool shares;	 /* its region of 2 MiB with other requests: see pages */
};

struct uvm_resident {
	uint64_t resident_bytes;
	struct frag_addr_map live;  /* address -> uvm_piece */
	struct frag_addr_map pages; /* number of a shared region -> live requests << 32 | groups */
	struct frag_slab piece_slab;
};

/* Empty. release: forgets everything. */
void frag_uvm_resident_init(struct uvm_resident *b);
void frag_uvm_resident_release(struct uvm_resident *b);

/* Reserves memory for one add. False: host memory exhausted. */
bool frag_uvm_resident_reserve(struct uvm_resident *b);

/* pre of add: reserved. Constant time, whatever the size. */
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
