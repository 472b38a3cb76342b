/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures of the policy `dali-vm`; the rules are at the head of dali_vm.c.
 *
 *   dali_space.c  pieces of address space: merge, split, runs, regions
 *   dali_phys.c   physical blocks: taking them from where they are free, mapping
 *   dali_walk.c   visit, check, usage
 *
 * Words. block: physical memory of one size, one handle; address space is cut into places for
 * blocks. piece: contiguous part of a region, live, waiting, mapped (free, with memory), a hole (free, without), or out (free, being
 * worked on, in no set). run: longest stretch of free pieces that has a hole in it.
 *
 * Invariants: the pieces of a region are gapless; no two mapped pieces and no two holes are
 * neighbours; holes are whole blocks. `mapped` holds every mapped piece by (size, address),
 * `whole` by address those with a whole block inside, `holes` every hole by address.
 */
#ifndef FRAG_DALI_H
#define FRAG_DALI_H

#include <frag/policy.h>

#include <bset.h>
#include "lib/slabs.h"

enum dali_state { DALI_LIVE, DALI_WAITING, DALI_MAPPED, DALI_HOLE, DALI_OUT };

struct dali_piece {
	frag_addr_t addr;
	uint64_t bytes;
	struct dali_piece *prev, *next; /* in the region */
	uint8_t state;
	uint8_t was; /* of one that is out: mapped or a hole */
};

/* How far a block has come. When a driver call fails, the next mapping goes on from there. */
enum dali_stage { DALI_NONE, DALI_CREATED, DALI_PLACED, DALI_OPEN };

struct dali_block {
	uint64_t handle;
	enum dali_stage stage;
};

/* Address space without a gap, of one or more reservations. */
struct dali_region {
	frag_addr_t base;
	struct dali_piece *first;
	struct dali_block *blocks;
	size_t blocks_count;
};

struct dali_range {
	frag_addr_t addr;
	uint64_t bytes;
};

struct dali_params {
	uint64_t block, initial_va, alignment;
};

struct dali {
	struct frag_policy_env env;
	const struct dali_params *params;
	uint64_t block;		     /* bytes, a power of two */
	uint64_t initial_va;	     /* bytes of the first reservation */
	struct dali_region *regions; /* in order of creation */
	size_t regions_count;
	struct dali_range *ranges; /* reservations, in order of creation */
	size_t ranges_count;
	struct frag_slab pieces;
	struct frag_bset mapped, whole, holes;
	struct frag_slab nodes; /* of these */
	uint64_t live_bytes, waiting_bytes;
	uint64_t whole_blocks;	  /* inside of mapped pieces */
	uint64_t held_count;	  /* blocks at a stage above none */
	uint64_t stretches_count; /* of neighbouring blocks that are held */
	uint64_t created_blocks, moved_blocks;
	uint64_t moves_left; /* while a stretch is filled: places that others' blocks will fill */
};

static inline bool dali_is_free(const struct dali_piece *p)
{
	return p && (p->state == DALI_MAPPED || p->state == DALI_HOLE);
}

static inline frag_addr_t dali_end(const struct dali_piece *p)
{
	return p->addr + p->bytes;
}

/* Smallest power of two that is not below n; 1 for 0. */
static inline uint64_t dali_next_pow2(uint64_t n)
{
	return n <= 1 ? 1 : 2ull << frag_log2(n - 1);
}

static inline frag_addr_t dali_floor(const struct dali *d, frag_addr_t addr)
{
	return addr & ~(d->block - 1);
}

static inline frag_addr_t dali_ceil(const struct dali *d, frag_addr_t addr)
{
	return dali_floor(d, addr + d->block - 1);
}

/* Whole blocks inside of a piece. */
static inline uint64_t dali_whole(const struct dali *d, const struct dali_piece *p)
{
	frag_addr_t lo = dali_ceil(d, p->addr), hi = dali_floor(d, dali_end(p));

	return hi > lo ? (hi - lo) / d->block : 0;
}

/* dali_space.c */

/* Host memory for `more` pieces. 0 or FRAG_ENOMEM. */
int dali_room(struct dali *d, size_t more);
/* A free piece leaves the sets: it is out. */
void dali_take_out(struct dali *d, struct dali_piece *p);
/* A piece that is in no set becomes a free one, mapped or a hole, and merges. */
void dali_give(struct dali *d, struct dali_piece *p, enum dali_state state);
/* Cuts p to `bytes`; the rest has the same state and is in no set. pre: room. */
struct dali_piece *dali_split(struct dali *d, struct dali_piece *p, uint64_t bytes);
/* p takes in the piece behind it; both are in no set. */
void dali_join(struct dali *d, struct dali_piece *p);
/* Cuts a piece that is in no set to [lo, hi); what was outside is free, in `state`. pre: room. */
struct dali_piece *dali_cut(struct dali *d, struct dali_piece *p, frag_addr_t lo, frag_addr_t hi,
			    enum dali_state state);
/* Smallest run with room for `bytes` at a multiple of `alignment`: its first piece, or NULL. */
struct dali_piece *dali_find_run(const struct dali *d, uint64_t bytes, uint64_t alignment,
				 frag_addr_t *at);
struct dali_region *dali_region_of(const struct dali *d, frag_addr_t addr);
/* Reserves address space for at least `bytes`. 0, FRAG_OOM or an error. */
int dali_reserve(struct dali *d, uint64_t bytes, struct frag_err *err);

/* dali_phys.c */

/*
 * [addr, addr + bytes) of the run that begins with `first` becomes one piece with memory, *out,
 * that is out. 0, FRAG_OOM or an error, and then nothing is out.
 */
int dali_back(struct dali *d, struct dali_piece *first, frag_addr_t addr, uint64_t bytes,
	      struct dali_piece **out, struct frag_err *err);
/* Gives the memory of all wholly free blocks back. 0 or an error; what went before it is gone. */
int dali_release_unused(struct dali *d, struct frag_err *err);
/* Gives every block and reservation back; for the end. */
void dali_drop_all(struct dali *d);

/* dali_walk.c */
void dali_visit(void *self, const struct frag_visitor *v);
void dali_usage(void *self, struct frag_usage *out);
int dali_check(void *self, struct frag_err *err);

#endif
