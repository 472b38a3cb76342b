/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of address space and their pieces. Two uses:
 *
 * Arena: models the 32 MiB steps in which the driver takes address space (sim_place.c). Search: the
 * newest chunk with a large enough hole; in it the smallest such hole, the lowest among equals;
 * placed at its low end. Recorded addresses follow this rule (driver 580, H200; see sim_place.c).
 *
 * Heap: models the pages of 2 MiB that small requests of cudaMalloc and cudaMallocManaged share.
 * Requests of up to 2 MiB, rounded up to 512 B, go to the smallest large enough hole of any open
 * page; among equals, to the one that has had its size for the longest time. They get its low end.
 * If there is no such hole, a page is opened. Merged and cut holes count as new. A page is returned
 * with its last piece. Requests above 2 MiB share nothing, not even the tail of their last page.
 * Measured on an H200, driver 580.159.04: three random histories of 5,000 cudaMallocs and cudaFrees
 * (7,790 allocations of 1 B to 25 MiB). The rules match every address inside pages, and the free
 * memory after every call.
 *
 * Ownership: chunks and pieces are the arena's, address space is the caller's. A chunk of an arena
 * stays open after its last piece is freed; the caller is told and may close it. Only
 * frag_simarena_reserve takes host memory.
 */
#ifndef FRAG_DEVICE_SIM_ARENA_H
#define FRAG_DEVICE_SIM_ARENA_H

#include "lib/slabs.h"
#include "lib/tree.h"

struct chunk;

/* A live piece or a hole. Adjacent holes are always merged. */
struct piece {
	frag_addr_t addr;
	uint64_t bytes;
	struct chunk *chunk;
	struct piece *prev, *next;     /* in address order inside the chunk */
	struct frag_tree_node by_size; /* holes: (bytes, addr; of a heap: when it got that size) */
	bool live;
};

struct chunk {
	frag_addr_t addr;
	uint64_t bytes;
	struct piece *first;
	struct frag_tree holes;	       /* not of a heap */
	void *owner;		       /* of a heap: the caller's */
	struct frag_tree_node by_age;  /* key: number of its opening; weight: of its largest hole */
	struct frag_tree_node by_addr; /* the caller's own index */
	uint64_t live_count;
};

struct arena {
	bool heap;
	struct frag_tree ages;	/* all chunks, not of a heap */
	struct frag_tree holes; /* of a heap */
	struct frag_slab chunks, pieces;
};

void frag_simarena_init(struct arena *a, bool heap);
void frag_simarena_release(struct arena *a);
/* Reserves memory to open one chunk and cut one piece. False: host memory exhausted. */
bool frag_simarena_reserve(struct arena *a);

/* pre (open, cut, cut_at): reserved. A new chunk is one hole. */
struct chunk *frag_simarena_open(struct arena *a, frag_addr_t addr, uint64_t bytes);
/* Returns the chunk's address space to the caller. pre: no live piece in it. */
void frag_simarena_close(struct arena *a, struct chunk *c);
/* The chunk to cut from, NULL if none has room. */
struct chunk *frag_simarena_find(const struct arena *a, uint64_t bytes);
struct piece *frag_simarena_cut(struct arena *a, struct chunk *c, uint64_t bytes);
/* The same at a given address; NULL if it is not completely inside a hole of the chunk. */
struct piece *frag_simarena_cut_at(struct arena *a, struct chunk *c, frag_addr_t addr,
				   uint64_t bytes);
/* Extends a chunk that ends in a hole; false if it does not. The caller provides the space. */
bool frag_simarena_extend(struct arena *a, struct chunk *c, uint64_t bytes);
/* Turns a piece into a hole. True: its chunk has no live piece left. */
bool frag_simarena_give(struct arena *a, struct piece *p);

/* Of a heap. pre (open, cut): reserved. */
void frag_simheap_open(struct arena *a, frag_addr_t addr, void *owner);
/* Would a cut of `bytes` find a hole? pre (fits, cut): 0 < bytes <= FRAG_PAGE. */
bool frag_simheap_fits(const struct arena *a, uint64_t bytes);
/* pre: it fits. */
struct piece *frag_simheap_cut(struct arena *a, uint64_t bytes);
/* Returns the owner of the page if this was its last piece (the page is then closed), else NULL. */
void *frag_simheap_give(struct arena *a, struct piece *p);

#endif
