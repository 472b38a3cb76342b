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
 * Ownership: zero but `k` and `fresh` = `free`; frag_kvcache_pool_release, after all are dropped.
 */
#ifndef FRAG_PLAN_KVCACHE_POOL_H
#define FRAG_PLAN_KVCACHE_POOL_H

#include "kvcache.h"
#include "lib/addr_map.h"

#define FRAG_KVCACHE_POOL_BLOCKS (1u << 25) /* that are taken, at most */

struct frag_kvcache_block;
struct frag_kvcache_pool {
	struct frag_kvcache *k;
	uint64_t fresh, free; /* blocks: never taken; these and freed ones */
	struct {
		struct frag_kvcache_block *oldest, *newest;
	} freed;
	struct frag_addr_map cached;
};

void frag_kvcache_pool_release(struct frag_kvcache_pool *p);
/* Blocks of the longest hit of q, which holds none. */
uint64_t frag_kvcache_pool_hit(const struct frag_kvcache_pool *p,
			       const struct frag_kvcache_request *q);
/* Whether there are blocks for `slots` tokens of q. step: as in frag_kvcache_needs. */
bool frag_kvcache_pool_has(const struct frag_kvcache_pool *p, const struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, uint64_t step);
/* Takes them, and processes `tokens` behind the hit or what is done. Errors: FRAG_ENOMEM. */
int frag_kvcache_pool_take(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, uint64_t tokens, struct frag_err *err);
/* Gives back what no window sees any more, or all. */
void frag_kvcache_pool_skip(struct frag_kvcache_pool *p, struct frag_kvcache_request *q);
void frag_kvcache_pool_drop(struct frag_kvcache_pool *p, struct frag_kvcache_request *q);

#endif
