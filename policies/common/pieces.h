/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of what a policy took as a whole: a segment of its heap (segheap.h) or a chunk from
 * its upstream (upstream.h). A chain in address order without gaps, each piece live (handed
 * out), waiting (let go by the program, not completed) or free. Which free pieces may merge and
 * how they are found is the policy's own rule.
 *
 * Invariants: the next piece begins where one ends; the bytes of a chain add up to the whole.
 *
 * Ownership: pieces are objects of a slab. They keep their address from their split until they are
 * joined or the whole is given back.
 */
#ifndef FRAG_COMMON_PIECES_H
#define FRAG_COMMON_PIECES_H

#include <frag/policy.h>

#include "lib/links.h"
#include "lib/slabs.h"

struct frag_seg;
struct frag_chunk;

/* 64 bytes. */
struct frag_piece {
	frag_addr_t addr;
	uint64_t bytes;
	struct frag_piece *prev, *next; /* neighbours, NULL at the ends */
	union {				/* what it is a piece of */
		struct frag_seg *seg;
		struct frag_chunk *chunk;
	};
	union { /* the policy's */
		struct frag_piece *link[2];
		struct {
			void *list;	/* where a free one is kept */
			uint64_t stamp; /* when it came there */
		};
	};
	union {			 /* split copies it, as the stamp */
		uint32_t tag;	 /* the policy's */
		uint32_t stream; /* of its last request */
	};
	uint8_t state; /* enum frag_block_state */
	uint8_t mark;  /* the policy's; split clears it */
};

static inline bool frag_piece_is_free(const struct frag_piece *p)
{
	return p->state == FRAG_STATE_FREE;
}

/* Is it all that was taken? */
static inline bool frag_piece_is_whole(const struct frag_piece *p)
{
	return !p->prev && !p->next;
}

/* The free neighbour before or behind, or NULL. */
static inline struct frag_piece *frag_piece_free_prev(const struct frag_piece *p)
{
	return p->prev && frag_piece_is_free(p->prev) ? p->prev : NULL;
}

static inline struct frag_piece *frag_piece_free_next(const struct frag_piece *p)
{
	return p->next && frag_piece_is_free(p->next) ? p->next : NULL;
}

/* Cuts `p` to `bytes`; returns the free rest. pre: bytes < p->bytes, a spare object in the slab. */
static inline struct frag_piece *frag_piece_split(struct frag_slab *slab, struct frag_piece *p,
						  uint64_t bytes)
{
	struct frag_piece *rest = frag_slab_alloc(slab);

	*rest = (struct frag_piece){
		.addr = p->addr + bytes,
		.bytes = p->bytes - bytes,
		.seg = p->seg,
		.stamp = p->stamp,
		.tag = p->tag,
		.state = FRAG_STATE_FREE,
	};
	FRAG_LINK_AFTER(p, rest);
	p->bytes = bytes;
	return rest;
}

/* `p` takes in the piece behind it, which ends. */
static inline void frag_piece_join(struct frag_slab *slab, struct frag_piece *p)
{
	struct frag_piece *q = p->next;

	p->bytes += q->bytes;
	FRAG_UNLINK_NEXT(p);
	frag_slab_free(slab, q);
}

/* What the program gets: everything of `out` but its class. */
static inline void frag_piece_grant(struct frag_piece *p, struct frag_block *out)
{
	p->state = FRAG_STATE_LIVE;
	out->addr = p->addr;
	out->granted = p->bytes;
	out->handle = (uintptr_t)p;
}

static inline struct frag_piece *frag_piece_of(const struct frag_block *b)
{
	return (struct frag_piece *)(uintptr_t)b->handle;
}

/* Walks a chain; idle: a trim gives all of it back. */
static inline void frag_pieces_visit(const struct frag_piece *first, const struct frag_visitor *v,
				     bool idle)
{
	for (const struct frag_piece *p = first; p; p = p->next)
		v->block(v->ctx, p->addr, p->bytes, (enum frag_block_state)p->state,
			 idle ? p->bytes : 0);
}

#endif
