/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The physical memory under a card's managed memory, as the driver takes it from the card: for the
 * count of a real card (uvm_resident.h), which decides how it is used.
 *
 * The rule is that of the open kernel module (nvidia-uvm/uvm_pmm_gpu.c); on an H200 with driver
 * 580.159.04 it gave the free memory after each of 88,685 requests, prefetches and frees to the
 * byte. The driver has roots of 2 MiB. If it needs one and has none to spare, it takes 64 from the
 * card. A root is used whole, or cut into chunks of 64 KiB, any of which may be cut into chunks of
 * 4 KiB. Free chunks are used in the order in which they became free; a larger one is cut only if
 * there is none. When all parts are free, they merge again, and a merged root returns to the card
 * at once. Whenever chunks of 4 KiB merge, a root returns: theirs or, if the rest of theirs is in
 * use, a spare one.
 *
 * Ownership: chunks are borrowed until returned. Calls covered by a reserve cannot fail.
 */
#ifndef FRAG_DEVICE_UVM_ROOTS_H
#define FRAG_DEVICE_UVM_ROOTS_H

#include "lib/slabs.h"
#include "uvm_groups.h"

#define UVM_BATCH 64u /* roots; uvm_perf_pma_batch_nonpinned_order is 6 */

enum uvm_chunk_size { UVM_CHUNK_GROUP, UVM_CHUNK_PAGE, UVM_CHUNK_SIZES }; /* 64 KiB, 4 KiB */

struct uvm_chunk {
	struct uvm_chunk *prev, *next; /* neighbours in the free list; if in use, next: of the same
				        * user */
	struct uvm_cut *cut;	       /* the chunk that it is part of */
};

struct uvm_chunks {
	struct uvm_chunk *first, *last;
};

struct uvm_roots {
	uint64_t used_count;
	uint64_t spare_count; /* taken from the card, not in use */

	struct uvm_chunks free[UVM_CHUNK_SIZES];
	struct frag_slab cut_slab[UVM_CHUNK_SIZES]; /* by the size of the parts */
};

/* Starts empty. release: frees everything. */
void frag_uvmroots_init(struct uvm_roots *m);
void frag_uvmroots_release(struct uvm_roots *m);

/* Reserves memory for less than a root of chunks. False: host memory exhausted. */
bool frag_uvmroots_reserve(struct uvm_roots *m);

/* Whole roots. */
void frag_uvmroots_take(struct uvm_roots *m, uint64_t count);
static inline void frag_uvmroots_give(struct uvm_roots *m, uint64_t count)
{
	m->used_count -= count;
}

/* Takes one chunk, to the end of a list. pre: reserved. */
void frag_uvmroots_take_chunk(struct uvm_roots *m, enum uvm_chunk_size size,
			      struct uvm_chunks *list);
/* Returns all chunks of a list, in order; the list is then empty. */
void frag_uvmroots_give_chunks(struct uvm_roots *m, struct uvm_chunks *list);

/* Bytes of the card that the driver holds. */
static inline uint64_t frag_uvmroots_taken(const struct uvm_roots *m)
{
	return (m->used_count + m->spare_count) * UVM_BLOCK;
}

#endif
