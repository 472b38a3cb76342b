/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of address space and their pieces. Models the 32 MiB steps in which the driver takes
 * address space (sim_place.c).
 *
 * Search: the newest chunk with a large enough hole; in it the smallest such hole, the lowest among
 * equals; placed at its low end. Recorded addresses follow this rule (driver 580, H200; see
 * sim_place.c).
 *
 * Ownership: the arena owns chunks and pieces. A chunk stays open after its last piece is freed;
 * the caller is told and may close it. Only frag_simarena_reserve takes host memory.
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
	struct frag_tree_node by_size; /* holes: (bytes, addr) */
	bool live;
};

struct chunk {
	frag_addr_t addr;
	uint64_t bytes;
	struct piece *first;
	struct frag_tree holes;
	struct frag_tree_node by_age;  /* key: number of its opening; weight: of its largest hole */
	struct frag_tree_node by_addr; /* the caller's own index */
	uint64_t live_count;
};

struct arena {
	struct frag_tree ages; /* all chunks */
	struct frag_slab chunks, pieces;
};

void frag_simarena_init(struct arena *a);
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

#endif
