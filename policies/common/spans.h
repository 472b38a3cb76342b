/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: memory cut into live, waiting and free parts, a chain in address order without gaps. Free
 * ones are in a tree by address that knows their largest, so first fit is one descent, and so is
 * the question whether a place is free.
 *
 * Invariants: no two neighbours are free; a span is in the tree if and only if it is free.
 */
#ifndef FRAG_COMMON_SPANS_H
#define FRAG_COMMON_SPANS_H

#include <frag/policy.h>

#include "lib/slabs.h"
#include "lib/tree.h"

struct frag_span {
	struct frag_tree_node fit; /* first. key: address; weight: bytes; in a tree only if free */
	struct frag_span *prev, *next;
	void *owner;	 /* as it was begun with */
	uint32_t stream; /* the policy's */
	uint8_t state;	 /* enum frag_block_state */
};

struct frag_spans {
	struct frag_tree free;
	struct frag_span *first;
	size_t used_count; /* that are live or waiting */
};

/* One free span. pre: a spare object in the slab. */
void frag_spans_begin(struct frag_slab *slab, struct frag_spans *s, void *owner, frag_addr_t addr,
		      uint64_t bytes);
/* The first that fits, or just this place; what is beside it stays free. Live; NULL: there is none.
 * pre: two spare objects. */
struct frag_span *frag_spans_take(struct frag_slab *slab, struct frag_spans *s, uint64_t bytes);
struct frag_span *frag_spans_take_at(struct frag_slab *slab, struct frag_spans *s, frag_addr_t addr,
				     uint64_t bytes);
/* Free again, and one with its free neighbours. */
void frag_spans_give(struct frag_slab *slab, struct frag_spans *s, struct frag_span *n);

static inline struct frag_span *frag_span_of(const struct frag_block *b)
{
	return (struct frag_span *)(uintptr_t)b->handle;
}

static inline void frag_spans_visit(const struct frag_spans *s, const struct frag_visitor *v)
{
	for (const struct frag_span *n = s->first; n; n = n->next)
		v->block(v->ctx, n->fit.key, n->fit.weight, (enum frag_block_state)n->state, 0);
}

#endif
