/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses the simulated driver hands out. Two zones of one address space: reservations grow
 * upwards from the bottom, chunks for segments downwards from the top (rules in sim_place.c).
 *
 * Ownership: struct place owns its chunks and nodes; pieces are borrowed until freed. Freeing never
 * fails and needs no memory.
 */
#ifndef FRAG_DEVICE_SIM_PLACE_H
#define FRAG_DEVICE_SIM_PLACE_H

#include <frag/error.h>

#include "sim_arena.h"

struct place {
	struct arena arena;	    /* chunks */
	struct frag_tree chunks;    /* by address */
	struct frag_tree gaps;	    /* free address space above `low`: address -> bytes */
	struct frag_tree spans;	    /* reservations by address */
	struct frag_tree span_gaps; /* free address space between them */
	struct frag_slab nodes;	    /* of gaps, span_gaps and spans */
	frag_addr_t low;	    /* no chunk was ever below */
	frag_addr_t top;	    /* no reservation is above */
	uint64_t chunks_open, spans_open;
	bool started;	     /* own rule used once: the context is placed */
	struct piece *local; /* stacks of the threads; NULL: no context is placed */
	uint64_t local_bytes;
	void (*host)(void *ctx); /* tells what the host process took and gave; NULL: nothing */
	void *host_ctx;
};

/* local_bytes: of the context, 0 = an H200's. Errors: FRAG_ENOMEM. */
int frag_simplace_init(struct place *p, uint64_t local_bytes, struct frag_err *err);
void frag_simplace_release(struct place *p);

/* Places a segment by the driver's rule. FRAG_OOM: address space exhausted; FRAG_ENOMEM. */
int frag_simplace_cut(struct place *p, uint64_t bytes, struct piece **out, struct frag_err *err);
/* Places a segment at a recorded address. FRAG_EDEVICE: the address is in use. */
int frag_simplace_claim(struct place *p, frag_addr_t addr, uint64_t bytes, bool wish,
			struct piece **out, struct frag_err *err);
void frag_simplace_give(struct place *p, struct piece *piece);

/* Pages of the host process: take puts them as the kernel would, 0 = no room; give: any part. */
frag_addr_t frag_simplace_host_take(struct place *p, uint64_t bytes);
void frag_simplace_host_give(struct place *p, frag_addr_t addr, uint64_t bytes);

/* A kernel needs local memory of this size; only more than before has an effect. behind: bytes of
 * other kinds that come with the kernel, and stay for good. */
void frag_simplace_local(struct place *p, uint64_t bytes, uint64_t behind);

/* A library maps so many bytes (cuMemMap), for good. */
void frag_simplace_map(struct place *p, uint64_t bytes);

/* Places a reservation by the driver's rule, or at a given address (hint, recording). */
int frag_simplace_reserve(struct place *p, uint64_t bytes, frag_addr_t *out, struct frag_err *err);
int frag_simplace_reserve_at(struct place *p, frag_addr_t addr, uint64_t bytes,
			     struct frag_err *err);
/* pre: an address from one of the two above, with the same bytes. */
void frag_simplace_unreserve(struct place *p, frag_addr_t addr);

#endif
