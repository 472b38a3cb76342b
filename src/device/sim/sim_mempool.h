/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of one cudaMemPool, without the card: which addresses it hands out and how many pages
 * it owns (rules in sim_mempool_model.c). sim_mempool.c connects it with the card: capacity,
 * prices, synchronising streams.
 *
 * Ownership: the pool owns its blocks and tables; addresses are offsets from 0.
 */
#ifndef FRAG_DEVICE_SIM_MEMPOOL_H
#define FRAG_DEVICE_SIM_MEMPOOL_H

#include <frag/error.h>

#include "lib/addr_map.h"
#include "lib/slabs.h"
#include "lib/tree.h"

enum pool_state { POOL_LIVE, POOL_RECENT, POOL_IDLE };

struct pool_block {
	uint64_t addr, bytes;
	uint64_t asked;			  /* live: bytes requested */
	uint64_t unmapped;		  /* idle: its pages below pool->top without memory */
	uint64_t freed_ns;		  /* recent: recorded time of the free */
	struct pool_block *prev, *next;	  /* address neighbours */
	struct pool_block *newer, *older; /* recent: order of freeing on its stream */
	struct frag_tree_node by_size;	  /* recent, full or part: (bytes, when it got that size) */
	struct frag_tree_node by_addr;	  /* idle with pages that can be taken: in `whole` */
	uint32_t stream;		  /* recent: stream that freed it */
	uint8_t state;
	bool in_whole;
};

/* Pieces freed on one stream since its last flush. */
struct pool_stream {
	struct frag_tree recent;
	struct pool_block *newest;
	bool seen; /* it is in `order` */
};

struct pool {
	uint64_t page_bytes, window_bytes;
	uint64_t pages, used_bytes; /* mapped pages; bytes requested and not freed */
	uint64_t takeable;	    /* mapped pages completely inside idle blocks */
	uint64_t top;		    /* pages that the table covers */
	uint64_t ticks;
	uint64_t *mapped; /* bit per page */
	size_t mapped_words;
	struct frag_tree full, part; /* idle blocks with all pages mapped, or not */
	struct frag_tree whole;	     /* idle blocks with takeable pages, by address */
	struct pool_stream *streams;
	uint32_t streams_count;
	uint32_t *order; /* the default stream, then the others in the order in which they came to
			  * the pool */
	uint32_t order_count;
	uint64_t recent_count;
	struct frag_addr_map live;
	struct frag_slab blocks;
};

/* The card counts as past all pieces freed up to these times, on the caller's stream and on others
 * (0 = none, UINT64_MAX = all). */
struct pool_passed {
	uint64_t own_ns, others_ns;
};

/* What one allocation did to the pages. */
struct pool_work {
	uint64_t fresh_pages, moved_pages;
};

/* Errors: FRAG_ENOMEM. */
int frag_simmempool_init(struct pool *p, uint64_t window_bytes, struct frag_err *err);
void frag_simmempool_release(struct pool *p);

/*
 * pages_left: number of new pages allowed. 0, FRAG_OOM (no change visible to a program) or
 * FRAG_ENOMEM.
 */
int frag_simmempool_alloc(struct pool *p, uint64_t bytes, uint32_t stream, uint64_t pages_left,
			  struct pool_passed passed, uint64_t *addr, struct pool_work *work,
			  struct frag_err *err);
/* Returns the requested bytes, 0 if addr is not live. Errors: FRAG_ENOMEM. */
int frag_simmempool_free(struct pool *p, uint64_t addr, uint32_t stream, uint64_t now_ns,
			 uint64_t *asked, struct frag_err *err);
/* Returns wholly free pages until `keep` are left or none can go. Returns their number. */
uint64_t frag_simmempool_trim(struct pool *p, uint64_t keep_pages);
/* The frees of one stream are complete: flushes, and trims to keep_pages after each piece. */
uint64_t frag_simmempool_sync(struct pool *p, uint32_t stream, uint64_t keep_pages);

#endif
