/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of 2 MiB that requests of up to 2 MiB share, as the driver shares them for cudaMalloc and
 * cudaMallocManaged (rules in sim_heap.c).
 *
 * Ownership: the heap owns the bookkeeping of pages and pieces. The memory of a page belongs to its
 * owner, who opens it and gets it back with the last piece.
 */
#ifndef FRAG_DEVICE_SIM_HEAP_H
#define FRAG_DEVICE_SIM_HEAP_H

#include "lib/slabs.h"
#include "lib/tree.h"

#define HEAP_UNIT 512u

struct heap_page {
	void *owner;
	uint32_t live_count;
};

/* A live piece or a hole. */
struct heap_piece {
	frag_addr_t addr;
	struct heap_page *page;
	struct heap_piece *prev, *next; /* neighbours in the page, in address order */
	struct frag_tree_node by_size;	/* of a hole: (units, when it got that size) */
	uint32_t units;
	bool live;
};

struct heap {
	struct frag_tree holes;
	struct frag_slab pages, pieces;
};

void frag_simheap_init(struct heap *h);
void frag_simheap_release(struct heap *h);
/* Reserves memory to open one page and cut one piece. False: host memory exhausted. */
bool frag_simheap_reserve(struct heap *h);

/* pre (open, cut): reserved. */
void frag_simheap_open(struct heap *h, frag_addr_t addr, void *owner);
/* Would a cut of `bytes` find a hole? pre (fits, cut): 0 < bytes <= FRAG_PAGE. */
bool frag_simheap_fits(const struct heap *h, uint64_t bytes);
/* pre: it fits. */
struct heap_piece *frag_simheap_cut(struct heap *h, uint64_t bytes);
/* Returns the owner of the page if this was its last piece (the page is then closed), else NULL. */
void *frag_simheap_give(struct heap *h, struct heap_piece *p);

#endif
