/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of a real card's managed memory: what of it is resident, by the rule of the simulated
 * card, and what the driver has taken from the card for that, which is more. It is told of
 * every request, touch and free, and asks nobody; no over-subscription.
 *
 * Taken, as measured on an H200 (driver 580.159.04) and as in the open kernel module
 * (nvidia-uvm/uvm_pmm_gpu.c). The driver backs blocks with root chunks of 2 MiB. A block that lies
 * wholly in one region takes a root at its first touch. A tail takes a chunk of 64 KiB for each
 * resident group; these are cut from roots that all tails share, free ones are used in the
 * order in which they became free, and a root all of whose chunks are free is given
 * back. Roots come from the card 64 at a time, when there is no spare one, and go back to the card
 * one at a time: a root that was given back is not spare.
 *
 * Replayed by this rule, the requests of four recordings take what cudaMemGetInfo had shown on
 * the card (2026-11), three to the byte, mempool one root more. Not in the rule: 64 regions of
 * 2 MiB + 4 KiB took two roots more than it says.
 *
 * Ownership: the book owns what it remembers of a request until its free. Addresses and
 * sizes are bytes.
 */
#ifndef FRAG_DEVICE_UVM_BOOK_H
#define FRAG_DEVICE_UVM_BOOK_H

#include "sim_store.h"
#include "uvm_groups.h"

#define UVM_BATCH 64u /* roots; uvm_perf_pma_batch_nonpinned_order is 6 */

/* 64 KiB of a root that tails share. */
struct uvm_chunk {
	struct uvm_chunk *prev, *next; /* of the free ones; in use, next: of the same tail */
	struct uvm_root *root;
};

struct uvm_chunks {
	struct uvm_chunk *first, *last;
};

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

struct uvm_book {
	uint64_t resident_bytes;
	uint64_t roots_count; /* in use */
	uint64_t spare_count; /* taken from the card, not in use */

	struct addr_map live;  /* address -> uvm_piece */
	struct addr_map pages; /* number of the page -> uvm_page */
	struct uvm_chunks free;
	struct slab piece_slab, page_slab, root_slab;
};

/* Empty; the driver holds no spare root. release: forgets everything. */
void frag_uvmbook_init(struct uvm_book *b);
void frag_uvmbook_release(struct uvm_book *b);

/* Enough for one add or one touch. False: host memory exhausted. */
bool frag_uvmbook_reserve(struct uvm_book *b);

/* pre (add, touch): reserved. Constant time, whatever the size. */
void frag_uvmbook_add(struct uvm_book *b, frag_addr_t addr, uint64_t bytes);
/* The first `bytes` of a request were prefetched, or touched by a kernel. pre: 0 < bytes <= its. */
void frag_uvmbook_touch(struct uvm_book *b, frag_addr_t addr, uint64_t bytes, bool prefetch);
/* pre: live. */
void frag_uvmbook_free(struct uvm_book *b, frag_addr_t addr);

/* NULL: no live request begins there. Borrowed until its free. */
static inline const struct uvm_piece *frag_uvmbook_find(const struct uvm_book *b, frag_addr_t addr)
{
	return frag_simmap_find(&b->live, addr);
}

/* Bytes of the card that the driver holds for managed memory. */
static inline uint64_t frag_uvmbook_taken(const struct uvm_book *b)
{
	return (b->roots_count + b->spare_count) * UVM_BLOCK;
}

#endif
