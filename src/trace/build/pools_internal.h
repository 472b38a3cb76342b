/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pools.c (which segments cannot share a pool) and pools_deal.c (which pool
 * each gets) share.
 */
#ifndef FRAG_TRACE_POOLS_INTERNAL_H
#define FRAG_TRACE_POOLS_INTERNAL_H

#include "pools.h"

#define FRAG_POOL_UNKNOWN UINT16_MAX

struct frag_pool_span {
	frag_addr_t addr;
	uint64_t bytes;
};

struct frag_pool_node {
	frag_addr_t addr, end;
	uint16_t stream; /* dense index */
	uint16_t label;
	uint16_t pool; /* narrowing: as far as the file names it */
	bool small, expandable;
	uint64_t mapped;	     /* expandable: bytes; the node goes when none are left */
	struct frag_pool_span *live; /* by address */
	uint32_t live_count, live_cap;
	uint64_t max_free; /* of the gaps; stale if dirty */
	bool dirty;
};

struct frag_pool_release { /* one released segment, in order */
	uint32_t node, group;
	bool full; /* part of a release of everything */
};

struct frag_pool_inferrer {
	const struct frag_raw_dev *raw;
	const uint16_t *stream_of;
	struct frag_err *err;
	struct frag_pool_node *nodes;
	size_t nodes_count, nodes_cap;
	uint32_t *alive; /* node numbers by address */
	size_t alive_count;
	uint32_t *entry_node; /* per entry, UINT32_MAX = none */
	uint64_t *edges;      /* bit matrix, row = node */
	size_t row_words;
	struct frag_pool_release *releases;
	size_t releases_count, releases_cap;
	uint32_t labels_count;
	uint64_t work, moves, max_split;
	const uint32_t *roundup;
	struct frag_narrowing *narrow; /* the walk only narrows open ends; no edges then */
	bool releases_are_full;	       /* no setting that releases only some segments */
};

/* An open end (rewind.h) while the history is walked. */
struct frag_narrow_end {
	frag_addr_t addr;
	uint64_t min_bytes, max_bytes, block;
	bool gone;
};
struct frag_narrowing {
	struct frag_narrow_end *ends; /* by address */
	size_t count, left;
	struct frag_initial_block *blocks; /* sizes are corrected here */
	bool other_reason;
};
/* A malloc of `bytes` was served from `chosen` (bytes 0: a new segment) in this node. */
void frag_pool_narrow(struct frag_pool_inferrer *p, uint32_t number, uint64_t bytes,
		      struct frag_pool_span chosen);
/* A block was freed: if it was an open one, it is no more. */
void frag_pool_narrow_gone(struct frag_pool_inferrer *p, frag_addr_t addr);
/* Would a free block `f` be taken for `bytes` rather than `chosen` (bytes 0: none)? */
bool frag_pool_better(const struct frag_pool_inferrer *p, struct frag_pool_span f, uint64_t bytes,
		      struct frag_pool_span chosen);
/* Walks the whole history from the initial state on. */
int frag_pools_walk(struct frag_pool_inferrer *p, const struct frag_initial_segment *segments,
		    size_t count, const struct frag_initial_block *blocks, uint32_t *initial_node);
int frag_pools_reserve(struct frag_pool_inferrer *p, size_t initial);
void frag_pools_init(struct frag_pool_inferrer *p, const struct frag_raw_dev *raw,
		     const uint16_t *stream_of, struct frag_err *err);
void frag_pools_release(struct frag_pool_inferrer *p);

static inline bool frag_pool_is_edge(const struct frag_pool_inferrer *p, uint32_t x, uint32_t y)
{
	return p->edges[x * p->row_words + y / 64] >> (y % 64) & 1;
}

/* Position in `alive` of the first node with addr > at. */
size_t frag_pool_alive_above(const struct frag_pool_inferrer *p, frag_addr_t at);
/* pre: fewer than nodes_cap nodes. Returns its number. */
uint32_t frag_pool_add_node(struct frag_pool_inferrer *p, struct frag_pool_node n);
void frag_pool_end_node(struct frag_pool_inferrer *p, uint32_t number);
/* Position in n->live of the first block with addr > at. */
size_t frag_pool_span_above(const struct frag_pool_node *n, frag_addr_t at);
/* The free gap in front of block i (behind the last one for i = live_count). */
struct frag_pool_span frag_pool_gap_at(const struct frag_pool_node *n, size_t i);
int frag_pool_put_live(struct frag_pool_inferrer *p, struct frag_pool_node *n, frag_addr_t addr,
		       uint64_t bytes);
void frag_pool_take_live(struct frag_pool_inferrer *p, frag_addr_t addr);
/* Size of the largest gap. */
uint64_t frag_pool_max_free(struct frag_pool_inferrer *p, struct frag_pool_node *n);

/* The live node that contains an address, UINT32_MAX if none does. */
uint32_t frag_pool_node_at(const struct frag_pool_inferrer *p, frag_addr_t at);
/* Gives every node its label; labels_count becomes their number. */
int frag_pools_deal(struct frag_pool_inferrer *p);

#endif
