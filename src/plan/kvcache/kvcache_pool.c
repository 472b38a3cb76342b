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

int frag_kvcache_pool_init(struct frag_kvcache_pool *p, struct frag_kvcache *k,
			   struct frag_err *err)
{
	size_t n = 0;

	*p = (struct frag_kvcache_pool){ .k = k, .fresh = k->tokens / k->block };
	p->free = p->fresh;
	frag_slab_init(&p->slab, sizeof(struct frag_kvcache_block));
	for (size_t i = 0; i < k->groups_count; i++)
		p->count += k->groups[i].count;
	if (p->count >= 1u << (REQUEST_SHIFT - GROUP_SHIFT))
		return frag_fail(err, FRAG_EUSAGE, "more than 4,095 groups of layers");
	FRAG_TRY_CALLOC(p->groups, p->count, "groups", err);
	for (size_t i = 0; i < k->groups_count; i++)
		for (uint64_t j = 0; j < k->groups[i].count; j++)
			p->groups[n++] = k->groups[i];
	return 0;
}

void frag_kvcache_pool_release(struct frag_kvcache_pool *p)
{
	frag_slab_release(&p->slab);
	frag_addr_map_release(&p->cached);
	FRAG_FREE(p->groups);
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
static uint64_t seen_from(const struct frag_kvcache_pool *p, size_t group, uint64_t blocks)
{
	uint64_t window = p->groups[group].window;

	return window == UINT64_MAX
		       ? 0
		       : blocks - FRAG_MIN(blocks, frag_kvcache_blocks(p->k->block, window - 1));
}

uint64_t frag_kvcache_pool_hit(const struct frag_kvcache_pool *p,
			       const struct frag_kvcache_request *q)
{
	uint64_t hit = p->k->prefix ? (q->prompt + q->made - 1) / p->k->block : 0;

	for (size_t g = 0; g < p->count && hit; g++)
		for (uint64_t i = hit; i-- > seen_from(p, g, hit);)
			if (!find(p, q, g, i)) {
				hit = i;
				g = SIZE_MAX; /* all again */
				break;
			}
	return hit;
}

static uint64_t block_of(const struct frag_kvcache_pool *p, size_t group)
{
	return p->k->block * p->groups[group].times;
}

static uint64_t needed(const struct frag_kvcache_pool *p, size_t group, uint64_t slots)
{
	return p->groups[group].window ? frag_kvcache_blocks(block_of(p, group), slots)
				       : 1 + p->k->draft;
}

bool frag_kvcache_pool_has(const struct frag_kvcache_pool *p, const struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, bool whole)
{
	uint64_t sum = 0, step = whole ? p->k->batched_tokens : 0;

	for (size_t g = 0; g < p->count; g++) {
		uint64_t last = needed(p, g, slots), window = p->groups[g].window,
			 held = q->tables ? q->tables[g].first + q->tables[g].count : hit;

		if (window && step && window < slots)
			last = FRAG_MIN(last,
					frag_kvcache_blocks(block_of(p, g), window - 1 + step) + 1);
		sum += last - FRAG_MIN(held, last);
		for (uint64_t i = seen_from(p, g, hit); i < hit; i++)
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
	for (; other->same; other = other->same)
		if (other->same == b) {
			other->same = b->same;
			break;
		}
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

/* One that is free. */
static int next(struct frag_kvcache_pool *p, struct frag_kvcache_block **out, struct frag_err *err)
{
	struct frag_kvcache_block *b = p->freed.oldest;

	if (b && (!p->k->prefix || !p->fresh)) {
		if (b->key)
			forget(p, b);
		hold(p, b);
	} else {
		if (frag_slab_live(&p->slab) == FRAG_KVCACHE_POOL_BLOCKS)
			return frag_fail(err, FRAG_ENOMEM,
					 "the requests take more than %u blocks of the cache",
					 FRAG_KVCACHE_POOL_BLOCKS);
		b = frag_slab_alloc(&p->slab);
		FRAG_CHECK_ALLOC(b, "blocks", err);
		*b = (struct frag_kvcache_block){ .holders = 1 };
		p->fresh--;
		p->free--;
	}
	*out = b;
	return 0;
}

int frag_kvcache_pool_take(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			   uint64_t hit, uint64_t slots, struct frag_err *err)
{
	if (!q->tables)
		FRAG_TRY_CALLOC(q->tables, p->count, "requests", err);
	for (size_t g = 0; g < p->count && hit; g++) {
		struct frag_kvcache_table *t = &q->tables[g];

		t->first = seen_from(p, g, hit);
		for (uint64_t i = t->first; i < hit; i++) {
			FRAG_TRY(FRAG_GROW(t->at, t->count, t->cap, "blocks", err));
			t->at[t->count] = find(p, q, g, i);
			hold(p, t->at[t->count++]);
		}
	}
	for (size_t g = 0; g < p->count; g++) {
		struct frag_kvcache_table *t = &q->tables[g];

		for (uint64_t most = needed(p, g, slots); t->first + t->count < most; t->count++) {
			FRAG_TRY(FRAG_GROW(t->at, t->count, t->cap, "blocks", err));
			FRAG_TRY(next(p, &t->at[t->count], err));
		}
	}
	return 0;
}

int frag_kvcache_pool_cache(struct frag_kvcache_pool *p, struct frag_kvcache_request *q,
			    struct frag_err *err)
{
	uint64_t full = p->k->prefix ? FRAG_MIN(q->done, q->prompt + q->made) / p->k->block : 0;

	for (; q->cached < full; q->cached++)
		for (size_t g = 0; g < p->count; g++) {
			struct frag_kvcache_table *t = &q->tables[g];
			struct frag_kvcache_block *other = find(p, q, g, q->cached), *b;

			if (q->cached < t->first)
				continue;
			b = t->at[q->cached - t->first];
			b->key = key_of(p, q, g, q->cached);
			while (other && other->same)
				other = other->same;
			if (other)
				other->same = b;
			else if (frag_addr_map_reserve(&p->cached))
				return frag_fail_nomem(err, "blocks");
			else
				frag_addr_map_put(&p->cached, b->key, b);
		}
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
	for (size_t g = 0; g < p->count; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		uint64_t window = p->groups[g].window,
			 first = window && q->done >= window
					 ? (q->done - window + 1) / block_of(p, g)
					 : 0;

		if (first > t->first)
			give_back(p, t, FRAG_MIN(first - t->first, t->count));
	}
}

void frag_kvcache_pool_drop(struct frag_kvcache_pool *p, struct frag_kvcache_request *q)
{
	for (size_t g = 0; q->tables && g < p->count; g++) {
		give_back(p, &q->tables[g], q->tables[g].count);
		FRAG_FREE(q->tables[g].at);
	}
	FRAG_FREE(q->tables);
	q->tables = NULL;
	q->done = q->cached = 0;
	q->drafts = false;
}
