/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of address space and the pieces they are cut into. Serves twice: the
 * 32 MiB steps in which the driver takes address space (sim_place.c), and the
 * 2 MiB pages that small cudaMallocs share (sim_malloc.c).
 *
 * Search: the newest chunk with a hole that is big enough, in it the smallest
 * such hole, among equals the lowest, placed at its low end. That is what the
 * addresses in recordings follow (driver 580, H200; see sim_place.c).
 *
 * Ownership: the arena owns chunks and pieces. A chunk stays open when its last
 * piece goes; the caller is told and closes it or not. Only frag_simarena_reserve
 * takes host memory.
 */
#ifndef FRAG_DEVICE_SIM_ARENA_H
#define FRAG_DEVICE_SIM_ARENA_H

#include "lib/slab.h"
#include "lib/tree.h"

struct chunk;

/* A live piece or a hole. Neighbouring holes are always joined. */
struct piece {
	frag_addr_t addr;
	uint64_t bytes;
	struct chunk *chunk;
	struct piece *prev, *next;     /* in address order inside the chunk */
	struct frag_tree_node by_size; /* holes: (bytes, addr) */
	bool live;
};

struct chunk {
	frag_addr_t addr;
	uint64_t bytes;
	void *owner; /* the caller's own */
	struct piece *first;
	struct frag_tree holes;
	uint64_t greatest;	       /* hole */
	uint32_t age;		       /* place in arena->ages */
	struct frag_tree_node by_addr; /* the caller's own index */
	uint64_t live_count;
};

/*
 * Chunks in order of opening, with a tournament over their greatest holes (lib/tournament.h).
 * Closed chunks leave empty leaves until the next packing.
 */
struct ages {
	uint64_t *max;
	struct chunk **chunks; /* by leaf, NULL = closed */
	uint32_t leaves;       /* a power of two, or 0 */
	uint32_t used, open;
};

struct arena {
	struct ages ages;
	struct frag_slab chunks, pieces;
};

void frag_simarena_init(struct arena *a);
void frag_simarena_release(struct arena *a);
/* Enough for opening one chunk and cutting one piece. False: host memory exhausted. */
bool frag_simarena_reserve(struct arena *a);

/* pre (open, cut, cut_at): reserved. A new chunk is one hole. */
struct chunk *frag_simarena_open(struct arena *a, frag_addr_t addr, uint64_t bytes, void *owner);
/* Address space of the chunk is the caller's again. pre: no live piece in it. */
void frag_simarena_close(struct arena *a, struct chunk *c);
/* The chunk to cut from, NULL if none has room. */
struct chunk *frag_simarena_find(const struct arena *a, uint64_t bytes);
struct piece *frag_simarena_cut(struct arena *a, struct chunk *c, uint64_t bytes);
/* The same at a given address; NULL if that is not wholly in a hole of the chunk. */
struct piece *frag_simarena_cut_at(struct arena *a, struct chunk *c, frag_addr_t addr,
				   uint64_t bytes);
/* Lengthens a chunk that ends in a hole; false if it does not. The space is the caller's. */
bool frag_simarena_extend(struct arena *a, struct chunk *c, uint64_t bytes);
/* Makes a piece a hole again. True: its chunk has no live piece left. */
bool frag_simarena_give(struct arena *a, struct piece *p);

#endif
