/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of the cache, as vLLM's V1 engine (0.22) hands them out: those that were never taken
 * first, then those that were given back longest ago; of a request that ends the last first.
 *
 * With a prefix, full blocks stay cached until they are taken again: another request with the same
 * tokens, or the same one after a preemption, finds them. Its hit is the longest for which each
 * group has all blocks that the next token sees: of a window the last ones. A block that was
 * computed twice is cached twice, found is the first of them.
 *
 * Ownership: frag_kvcache_pool_release, after frag_kvcache_pool_drop of all requests that hold.
 */
#ifndef FRAG_PLAN_KVCACHE_POOL_H
#define FRAG_PLAN_KVCACHE_POOL_H

#include "kvcache.h"
#include "lib/addr_map.h"
#include "lib/slabs.h"

#define FRAG_KVCACHE_POOL_BLOCKS (1u << 25) /* that are taken, at most */

struct frag_kvcache_block;
struct frag_kvcache_pool {
	struct frag_kvcache *k;
	struct frag_slab slab;
	struct {
		struct frag_kvcache_block *oldest, *newest;
	} freed;
	uint64_t fresh, free; /* blocks: never taken; these and freed ones */
	struct frag_addr_map cached;
	struct frag_kvcache_group *groups; /* each once */
	size_t count;
};

/* Errors: FRAG_ENOMEM. */
int frag_kvcache_pool_init(struct frag_kvcache_pool *p, struct frag_kvcache *k,
			   struct frag_err *err);
void frag_kvcache_pool_release(struct frag_kvcache_pool *p);
/* Blocks of the longest hit of q, which holds none. */
uint64_t frag_kvcache_pool_hit(const struct frag_kvcache_pool *p,
			       const struct frag_kvcache_request *q);
/* Whether there are blocks for `slots` tokens of q; whole: of its window only what it has at a time. */
bool frag_kvcache_pool_has(const struct frag_kvcache_pool *p, const struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, bool whole);
/* Takes them. pre: there are. Errors: FRAG_ENOMEM. */
int frag_kvcache_pool_take(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, struct frag_err *err);
/* The tokens that are done are in full blocks: others find them. Errors: FRAG_ENOMEM. */
int frag_kvcache_pool_cache(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			    struct frag_err *err);
/* Gives back what no window sees any more. */
void frag_kvcache_pool_skip(struct frag_kvcache_pool *p, struct frag_kvcache_request *q);
void frag_kvcache_pool_drop(struct frag_kvcache_pool *p, struct frag_kvcache_request *q);

#endif
