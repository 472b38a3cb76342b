/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of cached blocks: request (0: the prefix), group, number of the block in it. */
#include "kvcache_pool.h"

#include <string.h>

#include "lib/grow.h"
#include "lib/links.h"

#define GROUP_SHIFT 27 /* blocks of a request are fewer */
#define REQUEST_SHIFT 39

struct frag_kvcache_block {
	struct frag_kvcache_block *older, *newer; /* of the free ones */
	struct frag_kvcache_block *same;	  /* cached later with the same key */
	uint64_t key;				  /* 0: not cached */
	uint32_t holders;
};

/* Of a request in one group. */
struct frag_kvcache_table {
	struct frag_kvcache_block **at;
	size_t first, count, cap; /* before the first they are given back */
};

void frag_kvcache_pool_release(struct frag_kvcache_pool *p)
{
	struct frag_kvcache_block *b;

	while ((b = p->freed.oldest)) {
		FRAG_QUEUE_REMOVE(&p->freed, b);
		frag_host_free(b);
	}
	frag_addr_map_release(&p->cached);
}

static uint64_t key_of(const struct frag_kvcache_pool *p, const struct frag_kvcache_request *q,
		       size_t group, uint64_t i)
{
	uint64_t shared = FRAG_MIN(p->k->prefix, q->prompt) / p->k->block;

	return (i < shared ? 0 : (uint64_t)(q - p->k->list) + 1) << REQUEST_SHIFT |
	       (uint64_t)(group + 1) << GROUP_SHIFT | i;
}

static struct frag_kvcache_block *find(const struct frag_kvcache_pool *p,
				       const struct frag_kvcache_request *q, size_t group,
				       uint64_t i)
{
	return frag_addr_map_get(&p->cached, key_of(p, q, group, i));
}

/* The first block that the token behind `blocks` sees. */
static uint64_t seen_from(const struct frag_kvcache *k, size_t group, uint64_t blocks)
{
	uint64_t window = k->groups[group].window;

	return blocks - (window == UINT64_MAX
				 ? blocks
				 : FRAG_MIN(blocks, frag_kvcache_blocks(k->block, window - 1)));
}

uint64_t frag_kvcache_pool_hit(const struct frag_kvcache_pool *p,
			       const struct frag_kvcache_request *q)
{
	uint64_t hit = p->k->prefix ? (q->prompt + q->made - 1) / p->k->block : 0;

	for (size_t g = 0; g < p->k->groups_count; g++)
		for (uint64_t i = hit; i-- > seen_from(p->k, g, hit);)
			if (!find(p, q, g, i)) {
				hit = i;
				g = SIZE_MAX; /* all again */
				break;
			}
	return hit;
}

bool frag_kvcache_pool_has(const struct frag_kvcache_pool *p, const struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, uint64_t step)
{
	uint64_t sum = 0;

	for (size_t g = 0; g < p->k->groups_count; g++) {
		uint64_t needs = frag_kvcache_group_needs(p->k, &p->k->groups[g], slots, step),
			 held = q->tables ? q->tables[g].first + q->tables[g].count : hit;

		sum += needs - FRAG_MIN(held, needs);
		for (uint64_t i = seen_from(p->k, g, hit); i < hit; i++)
			sum += !find(p, q, g, i)->holders;
	}
	return sum <= p->free;
}

static void forget(struct frag_kvcache_pool *p, struct frag_kvcache_block *b)
{
	struct frag_addr_cell *cell = frag_addr_map_find(&p->cached, b->key);
	struct frag_kvcache_block *other = frag_addr_map_get(&p->cached, b->key);

	if (other == b && b->same)
		cell->value = (uintptr_t)b->same;
	else if (other == b)
		frag_addr_map_remove(&p->cached, cell);
	while (other->same && other->same != b)
		other = other->same;
	if (other->same)
		other->same = b->same;
	b->key = 0;
	b->same = NULL;
}

static void hold(struct frag_kvcache_pool *p, struct frag_kvcache_block *b)
{
	if (!b->holders++) {
		FRAG_QUEUE_REMOVE(&p->freed, b);
		p->free--;
	}
}

/* One that is free, behind those of t. */
static int add(struct frag_kvcache_pool *p, struct frag_kvcache_table *t, struct frag_err *err)
{
	struct frag_kvcache_block *b = p->freed.oldest;

	FRAG_TRY(FRAG_GROW(t->at, t->count, t->cap, "blocks", err));
	if (!b || (p->k->prefix && p->fresh)) {
		if (p->k->tokens / p->k->block - p->fresh == FRAG_KVCACHE_POOL_BLOCKS)
			return frag_fail(err, FRAG_ENOMEM,
					 "the requests take more than %u blocks of the cache",
					 FRAG_KVCACHE_POOL_BLOCKS);
		FRAG_TRY_CALLOC(b, 1, "blocks", err);
		FRAG_QUEUE_ADD(&p->freed, b);
		p->fresh--;
	}
	if (b->key)
		forget(p, b);
	hold(p, b);
	t->at[t->count++] = b;
	return 0;
}

/* Blocks whose tokens are all done. */
static int cache(struct frag_kvcache_pool *p, struct frag_kvcache_request *q, size_t group,
		 uint64_t i, struct frag_err *err)
{
	const struct frag_kvcache_table *t = &q->tables[group];
	struct frag_kvcache_block *other = find(p, q, group, i), *b;

	if (i < t->first)
		return 0;
	b = t->at[i - t->first];
	b->key = key_of(p, q, group, i);
	while (other && other->same)
		other = other->same;
	if (other)
		other->same = b;
	else if (frag_addr_map_reserve(&p->cached))
		return frag_fail_nomem(err, "blocks");
	else
		frag_addr_map_put(&p->cached, b->key, b);
	return 0;
}

int frag_kvcache_pool_take(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, uint64_t tokens, struct frag_err *err)
{
	const size_t groups = p->k->groups_count;

	if (!q->tables) {
		FRAG_TRY_CALLOC(q->tables, groups, "requests", err);
		q->done = (uint32_t)(hit * p->k->block);
		q->cached = (uint32_t)hit;
	}
	for (size_t g = 0; g < groups && hit; g++) {
		struct frag_kvcache_table *t = &q->tables[g];

		t->first = seen_from(p->k, g, hit);
		FRAG_TRY(frag_grow_to(&t->at, hit - t->first, &t->cap, sizeof(*t->at), "blocks",
				      err));
		for (uint64_t i = t->first; i < hit; i++)
			hold(p, t->at[t->count++] = find(p, q, g, i));
	}
	for (size_t g = 0; g < groups; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		uint64_t needs = frag_kvcache_group_needs(p->k, &p->k->groups[g], slots, 0);

		while (t->first + t->count < needs)
			FRAG_TRY(add(p, t, err));
	}
	q->done += (uint32_t)tokens;
	slots = p->k->prefix ? FRAG_MIN(q->done, q->prompt + q->made) / p->k->block : 0;
	for (; q->cached < slots; q->cached++)
		for (size_t g = 0; g < groups; g++)
			FRAG_TRY(cache(p, q, g, q->cached, err));
	return 0;
}

/* The first n that it holds, from the last on. */
static void give_back(struct frag_kvcache_pool *p, struct frag_kvcache_table *t, uint64_t n)
{
	for (size_t i = n; i-- > 0;)
		if (!--t->at[i]->holders) {
			FRAG_QUEUE_ADD(&p->freed, t->at[i]);
			p->free++;
		}
	t->first += n;
	t->count -= n;
	if (t->count)
		memmove(t->at, t->at + n, t->count * sizeof(*t->at));
}

void frag_kvcache_pool_skip(struct frag_kvcache_pool *p, struct frag_kvcache_request *q)
{
	for (size_t g = 0; g < p->k->groups_count; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		uint64_t window = p->k->groups[g].window,
			 block = p->k->block * p->k->groups[g].times,
			 first = window && q->done >= window ? (q->done - window + 1) / block : 0;

		if (first > t->first)
			give_back(p, t, FRAG_MIN(first - t->first, t->count));
	}
}

void frag_kvcache_pool_drop(struct frag_kvcache_pool *p, struct frag_kvcache_request *q)
{
	for (size_t g = 0; q->tables && g < p->k->groups_count; g++) {
		give_back(p, &q->tables[g], q->tables[g].count);
		FRAG_FREE(q->tables[g].at);
	}
	FRAG_FREE(q->tables);
	q->tables = NULL;
	q->done = 0;
	q->drafts = false;
}
