/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, sets and segments as objects: making, linking, dropping. No rules here. */
#include "pt.h"

#include <string.h>

int pt_room(struct pt *a, size_t more, struct frag_err *err)
{
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&a->blocks, more), "pytorch: blocks", err);
	FRAG_CHECK_ALLOC(!frag_bset_nodes_reserve(&a->nodes, frag_slab_live(&a->blocks) +
								     a->blocks.spare_count),
			 "pytorch: free sets", err);
	return 0;
}

/* By half as much again: a program may name a new pool with each request. */
static int grow_pools(struct pt *a, uint32_t want, struct frag_err *err)
{
	struct pt_pool *pools;

	want = FRAG_MAX(want, FRAG_MIN((a->pools_count + a->pools_count / 2) & ~1u, 2u << 16));
	pools = frag_host_realloc(a->pools, want, sizeof(*pools));
	FRAG_CHECK_ALLOC(pools, "pytorch: pools", err);
	for (uint32_t i = a->pools_count; i < want; i++)
		pools[i] = (struct pt_pool){ .small = !(i & 1), .id = (uint16_t)(i / 2) };
	for (uint32_t i = FRAG_MAX(a->pools_count, 2u); i < want && a->env.no_split; i++)
		pools[i].no_split = a->env.no_split(a->env.no_split_ctx, pools[i].id);
	a->pools = pools;
	a->pools_count = want;
	/* the pools have moved: sets point to them */
	for (uint32_t i = 0; i < want; i++)
		for (uint32_t s = 0; s < pools[i].sets_count; s++)
			if (pools[i].sets[s])
				pools[i].sets[s]->pool = &pools[i];
	return 0;
}

static int grow_streams(struct pt_pool *pool, uint32_t want, struct frag_err *err)
{
	struct pt_set **sets;

	want = FRAG_MAX(want, pool->sets_count + pool->sets_count / 2);
	sets = frag_host_realloc(pool->sets, want, sizeof(*sets));
	FRAG_CHECK_ALLOC(sets, "pytorch: streams", err);
	memset(sets + pool->sets_count, 0, (want - pool->sets_count) * sizeof(*sets));
	pool->sets = sets;
	pool->sets_count = want;
	return 0;
}

static void set_split_rule(const struct pt *a, struct pt_set *set)
{
	bool fine = set->pool->small || a->conf.expandable;

	set->split_below = set->pool->no_split ? 0 : fine ? PT_UNLIMITED : a->max_split;
	set->split_left = fine ? PT_MIN_BLOCK - 1 : PT_SMALL_LIMIT;
}

int pt_set_make(struct pt *a, uint16_t pool_id, bool small, uint32_t stream, struct pt_set **out,
		struct frag_err *err)
{
	uint32_t p = 2u * pool_id + !small;
	struct pt_pool *pool;
	struct pt_set *set;

	if (p >= a->pools_count)
		FRAG_TRY(grow_pools(a, 2u * pool_id + 2, err));
	pool = &a->pools[p];
	if (stream >= pool->sets_count)
		FRAG_TRY(grow_streams(pool, stream + 1, err));
	if (!pool->sets[stream]) {
		set = frag_slab_alloc(&a->sets);
		FRAG_CHECK_ALLOC(set, "pytorch: stream", err);
		*set = (struct pt_set){ .pool = pool, .stream = stream };
		/* real programs have tens of streams */
		if (frag_binset_init(&set->free, &a->nodes, a->sets_count >= PT_SETS_FAST)) {
			frag_slab_free(&a->sets, set);
			return frag_fail_nomem(err, "pytorch: free sets");
		}
		a->sets_count++;
		frag_bset_init_shared(&set->unmapped, &a->nodes);
		set_split_rule(a, set);
		pool->sets[stream] = set;
	}
	*out = pool->sets[stream];
	return 0;
}

void pt_sets_release(struct pt *a)
{
	for (uint32_t p = 0; p < a->pools_count; p++) {
		for (uint32_t s = 0; s < a->pools[p].sets_count; s++) {
			struct pt_set *set = a->pools[p].sets[s];

			if (set)
				frag_binset_release(&set->free);
		}
		frag_host_free(a->pools[p].sets);
	}
	frag_slab_release(&a->nodes);
	frag_slab_release(&a->sets);
	frag_host_free(a->pools);
}

void pt_absorb(struct pt *a, struct pt_block *b, struct pt_block *n)
{
	if (n == b->prev) {
		b->addr = n->addr;
		if (a->order != PT_BY_BLOCK)
			b->rank = n->rank;
	}
	FRAG_UNLINK(b->seg->first, n);
	b->size += n->size;
	pt_block_drop(a, n);
}

struct pt_seg *pt_seg_new(struct pt *a, struct pt_set *set, uint64_t bytes, uint64_t page)
{
	struct pt_seg *g = frag_slab_alloc(&a->segments);

	if (!g)
		return NULL;
	*g = (struct pt_seg){
		.bytes = bytes, .page = page, .set = set, .kind = (uint8_t)pt_kind_of(set->pool)
	};
	FRAG_LINK_FIRST(a->segs, g);
	a->segs_count++;
	return g;
}

/* Gives a segment and its blocks another place in the order. */
static void move_in_order(struct pt_seg *g, uint64_t rank)
{
	uint64_t by = rank - g->rank;

	g->rank = rank;
	for (struct pt_block *b = g->first; b; b = b->next) {
		if (b->state == PT_FREE)
			frag_binset_rekey(&b->set->free, &b->bin, b->rank + by, b->size);
		else
			b->rank += by;
	}
}

static uint64_t seg_rank(const struct pt *a, uint64_t number, frag_addr_t base)
{
	return (number << a->rank_bits) - base / PT_MIN_BLOCK;
}

/* All numbers are used: renumbers the remaining segments from 1, in their order. Numbers only
 * get smaller, so none collides with one that has not changed yet. */
static void renumber(struct pt *a)
{
	struct pt_seg *g = a->segs;

	a->made = 0;
	while (g && g->next)
		g = g->next;
	for (; g; g = g->prev)
		if (g->first)
			move_in_order(g, seg_rank(a, ++a->made, g->base));
}

void pt_seg_place(struct pt *a, struct pt_seg *g, frag_addr_t base)
{
	g->base = base;
	if (a->order != PT_BY_SEGMENT)
		return;
	if (FRAG_UNLIKELY(a->made >= UINT64_MAX >> a->rank_bits))
		renumber(a);
	g->rank = seg_rank(a, ++a->made, base);
}

void pt_seg_drop(struct pt *a, struct pt_seg *g)
{
	FRAG_UNLINK(a->segs, g);
	a->segs_count--;
	frag_host_free(g->handles);
	frag_slab_free(&a->segments, g);
}
