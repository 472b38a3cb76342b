/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a chunk: a chain in address order without gaps, each live, waiting
 * or free. For pools that split and merge; which free parts may merge and how they
 * are found is the pool's own rule.
 *
 * Invariants: the first part of a chunk is chunk->head; p->next begins where p
 * ends; the sizes of a chain add up to the chunk.
 *
 * Ownership: parts are objects of the pool's slab.
 */
#ifndef FRAG_COMMON_PARTS_H
#define FRAG_COMMON_PARTS_H

#include "lib/slab.h"
#include "upstream.h"

struct frag_part {
	frag_addr_t addr;
	uint64_t size;
	struct frag_part *prev, *next; /* neighbours in the chunk; NULL at its ends */
	struct frag_chunk *chunk;
	void *list;	 /* the pool's own: where a free part is kept */
	uint64_t stamp;	 /* the pool's own: when it came there */
	uint32_t stream; /* of its last request */
	uint8_t state;	 /* enum frag_block_state */
};

/* A free part that is the whole of a new chunk. pre: the slab has a spare object. */
static inline struct frag_part *frag_part_whole(struct frag_slab *slab, struct frag_chunk *c)
{
	struct frag_part *p = frag_slab_alloc(slab);

	*p = (struct frag_part){ .addr = c->addr,
				 .size = c->bytes,
				 .chunk = c,
				 .stream = c->stream,
				 .state = FRAG_STATE_FREE };
	c->head = p;
	return p;
}

/* Cuts `p` to `size`; returns the rest, free. pre: size < p->size; a spare object. */
static inline struct frag_part *frag_part_split(struct frag_slab *slab, struct frag_part *p,
						uint64_t size)
{
	struct frag_part *rest = frag_slab_alloc(slab);

	*rest = (struct frag_part){ .addr = p->addr + size,
				    .size = p->size - size,
				    .prev = p,
				    .next = p->next,
				    .chunk = p->chunk,
				    .stream = p->stream,
				    .state = FRAG_STATE_FREE };
	if (p->next)
		p->next->prev = rest;
	p->next = rest;
	p->size = size;
	return rest;
}

/* `p` takes in the part behind it, which is in no list any more. */
static inline void frag_part_absorb_next(struct frag_slab *slab, struct frag_part *p)
{
	struct frag_part *n = p->next;

	p->size += n->size;
	p->next = n->next;
	if (n->next)
		n->next->prev = p;
	frag_slab_free(slab, n);
}

/* Is it all of its chunk? */
static inline bool frag_part_is_whole(const struct frag_part *p)
{
	return !p->prev && !p->next;
}

static inline struct frag_part *frag_part_of(const struct frag_block *b)
{
	return (struct frag_part *)(uintptr_t)b->handle;
}

/* Fills what a policy returns. */
static inline void frag_part_grant(struct frag_part *p, uint32_t stream, enum frag_class cls,
				   struct frag_block *out)
{
	p->state = FRAG_STATE_LIVE;
	p->stream = stream;
	out->addr = p->addr;
	out->granted = p->size;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
}

/* Walks the parts of one chunk; a free whole chunk counts as releasable if `gives_back`. */
void frag_parts_visit(const struct frag_chunk *c, const struct frag_visitor *v, bool gives_back);

/* What the chains of all chunks add up to. */
struct frag_parts_tally {
	uint64_t live_bytes, waiting_bytes, free_bytes, whole_bytes;
	size_t count, free_count, whole_count; /* whole: free and all of a chunk */
};
/*
 * Checks every chain of the chunks of `owner`. free_part: the pool's own rules for a free part
 * (in its list, neighbours merged); 0 or what frag_fail returned.
 */
typedef int (*frag_parts_check_fn)(void *self, const struct frag_part *p, struct frag_err *err);
int frag_parts_check(const struct frag_upstream *up, const void *owner,
		     frag_parts_check_fn free_part, void *self, struct frag_parts_tally *out,
		     struct frag_err *err);

#endif
