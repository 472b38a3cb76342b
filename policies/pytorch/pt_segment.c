/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of the PyTorch allocator: getting new ones, giving memory back,
 * garbage collection. The order of all these steps is the source's.
 */
#include "pt.h"

/* What the driver is asked for (and the limit tested with) for a rounded size. */
static uint64_t segment_size(const struct pt *a, uint64_t size)
{
	if (size <= PT_SMALL_LIMIT)
		return PT_SMALL_SEGMENT;
	if (size < PT_MIN_LARGE)
		return a->large_segment;
	return frag_round_up(size, PT_LARGE_ROUND);
}

int pt_segment_add(struct pt *a, struct pt_set *set, uint64_t bytes, struct pt_block **out,
		   struct frag_err *err)
{
	unsigned kind = pt_kind_of(set->pool);
	frag_addr_t addr;
	struct pt_seg *g = pt_seg_new(a, set, bytes, 0);
	int rc;

	FRAG_CHECK_ALLOC(g, "pytorch: segment", err);
	rc = pt_room(a, 1, err) ?: frag_dev_alloc(a->dev, bytes, &addr, err);
	if (rc) {
		pt_seg_drop(a, g);
		return rc;
	}
	pt_seg_place(a, g, addr);
	g->first = *out = pt_block_new(a, g, addr, bytes);
	a->total += bytes;
	pt_up2(a, kind, PT_SEGMENT, 1);
	pt_up2(a, kind, PT_RESERVED_BYTES, (int64_t)bytes);
	if (bytes >= a->max_split)
		pt_up(&a->st.oversize_segments, 1);
	return 0;
}

static int segment_malloc(struct pt *a, struct pt_set *set, uint64_t bytes, struct pt_block **out,
			  struct frag_err *err)
{
	FRAG_TRY(pt_segment_add(a, set, bytes, out, err));
	a->st.num_device_alloc++;
	pt_journal(a, FRAG_SEGMENT_ALLOC, (*out)->addr, bytes, set->stream);
	return 0;
}

int pt_segment_get(struct pt *a, struct pt_set *set, uint64_t size, bool retry,
		   struct pt_block **out, struct frag_err *err)
{
	uint64_t bytes = segment_size(a, size);

	if (retry)
		a->st.num_alloc_retries++;
	/* the size of the table is tested, not what would really be mapped */
	if (a->limit != UINT64_MAX && (bytes > a->limit || a->total > a->limit - bytes))
		return FRAG_OOM;
	if (a->conf.expandable && (!set->pool->id || a->release >= FRAG_TORCH_SINCE_PRIVATE_RANGES))
		return pt_range_get(a, set, size, out, err);
	return segment_malloc(a, set, bytes, out, err);
}

/* A free whole segment goes back to the driver. */
static int release_segment(struct pt *a, struct pt_block *b, struct frag_err *err)
{
	struct pt_seg *g = b->seg;
	unsigned kind = b->kind;

	FRAG_TRY(frag_dev_free(a->dev, g->base, g->bytes, err));
	a->st.num_device_free++;
	pt_journal(a, FRAG_SEGMENT_FREE, g->base, g->bytes, g->set->stream);
	pt_free_erase(a, b);
	a->total -= g->bytes;
	pt_down2(a, kind, PT_SEGMENT, 1);
	pt_down2(a, kind, PT_RESERVED_BYTES, (int64_t)g->bytes);
	if (g->bytes >= a->max_split)
		pt_down(&a->st.oversize_segments, 1);
	pt_block_drop(a, b);
	pt_seg_drop(a, g);
	return 0;
}

int pt_release_oversize(struct pt *a, struct pt_set *set, uint64_t size, bool *enough,
			struct frag_err *err)
{
	uint64_t key = FRAG_MAX(size, a->max_split), released = 0;
	struct pt_block *b;

	*enough = false;
	if (a->max_split == PT_UNLIMITED)
		return 0;
	b = pt_of(frag_binset_lower(&set->free, key));
	if (b && !b->ranged && !pt_is_split(b)) {
		b = pt_learn_first(a, b, true);
		*enough = true;
		return release_segment(a, b, err);
	}
	/* from the largest below the key downwards, until it sums up */
	b = b ? pt_prev_free(b) : pt_of(frag_binset_last(&set->free));
	while (b && released < key && b->size >= a->max_split) {
		struct pt_block *below = pt_prev_free(b), *other = pt_learn_last(a, b);

		if (other != b) {
			below = b;
			b = other;
		}
		if (!b->ranged && !pt_is_split(b)) {
			released += b->size;
			FRAG_TRY(release_segment(a, b, err));
		}
		b = below;
	}
	*enough = released >= key;
	return 0;
}

/* Free blocks of a pool in the order of the source (stream, size, rank): those that
 * a release would look at. Ranged ones go behind the others. */
static int collect(struct pt_pool *pool, struct pt_block ***out, size_t *segments, size_t *ranged,
		   struct frag_err *err)
{
	size_t cap = 0, lo = 0, hi;
	struct pt_block **list;

	for (uint32_t s = 0; s < pool->sets_count; s++)
		if (pool->sets[s])
			cap += pool->sets[s]->free.count;
	list = frag_host_alloc(2 * cap * sizeof(struct pt_block *));
	FRAG_CHECK_ALLOC(list, "pytorch: release", err);
	hi = cap;
	for (uint32_t s = 0; s < pool->sets_count; s++) {
		struct pt_block *b = NULL;

		if (pool->sets[s] && pool->sets[s]->free.count)
			b = pt_of(frag_binset_first(&pool->sets[s]->free));
		for (; b; b = pt_next_free(b)) {
			if (b->ranged)
				list[hi++] = b;
			else if (!pt_is_split(b))
				list[lo++] = b;
		}
	}
	for (size_t i = cap; i < hi; i++)
		list[lo + i - cap] = list[i];
	*out = list;
	*segments = lo;
	*ranged = hi - cap;
	return 0;
}

int pt_release_pool(struct pt *a, struct pt_pool *pool, struct frag_err *err)
{
	size_t segments, ranged;
	FRAG_AUTO_FREE struct pt_block **list = NULL;

	if (!a->releasable) /* many refused requests in a row must not look at every stream each time */
		return 0;
	FRAG_TRY(collect(pool, &list, &segments, &ranged, err));
	for (size_t i = 0; i < segments; i++) {
		pt_learn_list(a, list + i, segments - i);
		FRAG_TRY(release_segment(a, list[i], err));
	}
	for (size_t i = segments; i < segments + ranged; i++) {
		pt_learn_list(a, list + i, segments + ranged - i);
		FRAG_TRY(pt_range_unmap(a, list[i], err));
	}
	return 0;
}

int pt_release_all(struct pt *a, struct frag_err *err)
{
	a->st.num_sync_all_streams++;
	if (a->env.sync)
		a->env.sync(a->env.sync_ctx);
	if (!a->pools_count)
		return 0;
	FRAG_TRY(pt_release_pool(a, &a->pools[1], err));
	return pt_release_pool(a, &a->pools[0], err);
}

/* The free segments that garbage collection chooses from. */
struct gc {
	struct pt_block **list; /* in order; NULL: given back */
	size_t list_count;
	uint64_t total_age;
	size_t count, ageless;
	uint64_t reclaimed;
	bool released; /* by the last round */
};

static int gc_release(struct pt *a, struct gc *gc, size_t i, struct frag_err *err)
{
	struct pt_block *b = gc->list[i];
	uint64_t age = a->pools[1].calls - b->gc_base, bytes = b->size;

	gc->ageless -= pt_learn_ageless(a, b);
	FRAG_TRY(release_segment(a, b, err));
	gc->list[i] = NULL;
	gc->reclaimed += bytes;
	gc->total_age -= age;
	gc->count--;
	gc->released = true;
	return 0;
}

/* One round: releases every candidate at least as old as the average at its start. */
static int gc_round(struct pt *a, struct gc *gc, struct frag_err *err)
{
	double limit_age = (double)gc->total_age / (double)gc->count;
	uint64_t calls = a->pools[1].calls;

	gc->released = false;
	for (size_t i = 0; i < gc->list_count; i++)
		if (gc->list[i] && (double)(calls - gc->list[i]->gc_base) >= limit_age)
			FRAG_TRY(gc_release(a, gc, i, err));
	return 0;
}

/*
 * The same as long as the age of some is unknown: the recording shows which were old enough. The
 * unknown ones are the oldest, so no other block is released before all of them are.
 */
static int gc_round_shown(struct pt *a, struct gc *gc, struct frag_err *err)
{
	bool stays = false;

	gc->released = false;
	for (size_t i = 0; i < gc->list_count; i++) {
		struct pt_block *b = gc->list[i];
		bool ageless = b && pt_learn_ageless(a, b);

		if (!b)
			continue;
		if (pt_learn_collected(a, b) && (ageless || !stays))
			FRAG_TRY(gc_release(a, gc, i, err));
		else
			stays |= ageless;
	}
	return gc->released ? 0 : gc_round(a, gc, err);
}

int pt_collect_garbage(struct pt *a, struct frag_err *err)
{
	uint64_t threshold = (uint64_t)(a->conf.gc_threshold * (double)a->limit), target;
	struct gc gc = { .released = true };
	size_t ranged;
	int rc = 0;

	if (a->total <= threshold || a->pools_count < 2)
		return 0;
	target = a->total - threshold;
	FRAG_TRY(collect(&a->pools[1], &gc.list, &gc.list_count, &ranged, err));
	gc.count = gc.list_count;
	for (size_t i = 0; i < gc.list_count; i++) {
		gc.total_age += a->pools[1].calls - gc.list[i]->gc_base;
		gc.ageless += pt_learn_ageless(a, gc.list[i]);
	}
	/* a round is not cut short when the target is reached */
	while (!rc && gc.reclaimed < target && gc.released && gc.count)
		rc = gc.ageless ? gc_round_shown(a, &gc, err) : gc_round(a, &gc, err);
	frag_host_free(gc.list);
	return rc;
}
