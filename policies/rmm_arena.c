/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's arena memory resource (rapidsai/rmm cpp/include/rmm/mr/detail/arena.hpp,
 * cpp/src/mr/detail/arena_memory_resource_impl.cpp, 2026).
 *
 *	One block from the upstream, by default half of the free memory, is all there
 *	ever is. Sizes are rounded up to 256 B, or to size classes (256 B steps to
 *	2 KiB, then four per doubling, with 54 KiB where 56 KiB would be).
 *
 *	Above 1 MiB: from the global arena. First fit over its superblocks in order of
 *	address; an empty one is first cut to the size if at least 1 MiB is left.
 *	Up to 1 MiB: first fit over the superblocks of the stream's own arena; else a
 *	superblock moves there from the global arena, by the same rule, so normally
 *	one of 1 MiB, but possibly one with large blocks in it.
 *
 *	A block above 1 MiB is freed after the stream is synchronised; superblocks of
 *	the global arena that get empty merge with empty neighbours. A small block
 *	goes back to its superblock at once if that is still in the stream's own arena,
 *	else after a synchronise. Empty superblocks stay in the arena of their stream.
 *
 *	When nothing fits: the device is synchronised, every arena hands all its
 *	superblocks to the global one, and the request is tried once more.
 *
 * Structure: rmm_arena/superblock.h. RMM takes the block in its constructor, here
 * the first request does, so that a card too small for it answers with a refusal.
 */
#include <frag/policy.h>

#include <streamlists.h>
#include <upstream.h>

#include "rmm_arena/superblock.h"

#define ALIGNMENT 256u

struct params {
	uint64_t size;
	bool size_classes;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("size", struct params, size, 0, 0, 1ull << 40,
		       "bytes of the arena, at least 1 MiB; 0: half of the free memory",
		       .tune = "1G,2G,4G,6G,8G,12G,16G,24G,32G,48G,64G"),
	FRAG_OPT_BOOL("size-classes", struct params, size_classes, false,
		      "round to size classes, as RMM does when built with that switch"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"), FRAG_OPT_END
};

struct arenas {
	struct frag_upstream up; /* first: see upstream.h */
	const struct params *p;
	struct frag_streams streams; /* of struct ra_arena; only the table is used */
	struct ra_heap heap;
	uint64_t live_bytes, waiting_bytes;
};

static const struct frag_streams_ops table_ops = { .bytes = sizeof(struct ra_arena) };

/* ---- sizes -------------------------------------------------------------------------- */

static uint64_t size_class(uint64_t bytes)
{
	uint64_t size;

	if (bytes <= 2 * FRAG_KIB)
		return frag_round_up(bytes, ALIGNMENT);
	size = frag_round_up(bytes, (1ull << frag_log2(bytes - 1)) / 4);
	if (size != 56 * FRAG_KIB)
		return size;
	return bytes <= 54 * FRAG_KIB ? 54 * FRAG_KIB : 64 * FRAG_KIB;
}

static uint64_t rounded(const struct arenas *a, uint64_t bytes)
{
	bytes = FRAG_MAX(bytes, 1u);
	return a->p->size_classes ? size_class(bytes) : frag_round_up(bytes, ALIGNMENT);
}

static bool is_large(uint64_t size)
{
	return size > RA_SUPERBLOCK_MIN;
}

/* ---- the upstream block ----------------------------------------------------------- */

/* Half of what this process could still get. */
static int default_size(struct arenas *a, uint64_t *size, struct frag_err *err)
{
	uint64_t limit = a->up.a.env.limit_bytes, reserved = a->up.a.env.dev->reserved_bytes;
	uint64_t free_bytes, total_bytes;

	FRAG_TRY(frag_dev_mem_info(a->up.a.env.dev, &free_bytes, &total_bytes, err));
	free_bytes = FRAG_MIN(free_bytes, limit > reserved ? limit - reserved : 0);
	*size = free_bytes / 2;
	return 0;
}

static int start(struct arenas *a, struct frag_err *err)
{
	uint64_t size = a->p->size;
	struct frag_chunk *c;

	if (!size)
		FRAG_TRY(default_size(a, &size, err));
	size = frag_round_down(size, ALIGNMENT);
	if (size < RA_SUPERBLOCK_MIN)
		return FRAG_OOM;
	FRAG_TRY(ra_heap_room(&a->heap, err));
	FRAG_TRY(frag_upstream_take(&a->up, size, 0, &c, err));
	return ra_heap_start(&a->heap, c->addr, c->bytes, err);
}

/* ---- allocation --------------------------------------------------------------------- */

static struct frag_span *try_alloc(struct arenas *a, struct ra_arena *own, uint64_t size)
{
	struct ra_super *s = NULL;

	if (!is_large(size))
		s = (struct ra_super *)frag_tree_first_fit(&own->supers, size);
	if (!s) {
		s = ra_heap_fit(&a->heap, size);
		if (s && !is_large(size))
			ra_super_move(s, own);
	}
	return s ? ra_super_take(&a->heap, s, size) : NULL;
}

/* Every arena hands its superblocks back. */
static int defragment(struct arenas *a, struct frag_err *err)
{
	FRAG_TRY(frag_dev_sync_all(a->up.a.env.dev, err));
	if (a->up.a.env.sync)
		a->up.a.env.sync(a->up.a.env.sync_ctx);
	for (uint32_t i = 0; i < a->streams.count; i++) {
		struct ra_arena *arena = a->streams.list[i];

		while (arena && arena->supers.root) {
			struct ra_super *s = (struct ra_super *)arena->supers.root;

			ra_super_move(s, &a->heap.global);
			ra_heap_coalesce(&a->heap, s);
		}
	}
	return 0;
}

static int arena_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	enum frag_class cls = FRAG_CLASS_HIT;
	struct arenas *a = self;
	struct ra_arena *own;
	struct frag_span *n;
	uint64_t size;

	if (FRAG_UNLIKELY(req->bytes > FRAG_UPSTREAM_MAX))
		return FRAG_OOM;
	if (FRAG_UNLIKELY(!a->heap.first)) {
		FRAG_TRY(start(a, err));
		cls = FRAG_CLASS_GROW;
	}
	size = rounded(a, req->bytes);
	own = frag_streams_get(&a->streams, req->stream, err);
	if (FRAG_UNLIKELY(!own))
		return FRAG_ENOMEM;
	FRAG_TRY(ra_heap_room(&a->heap, err));
	n = try_alloc(a, own, size);
	if (FRAG_UNLIKELY(!n)) {
		FRAG_TRY(defragment(a, err));
		n = try_alloc(a, own, size);
		if (!n)
			return FRAG_OOM;
		cls = FRAG_CLASS_RELEASE;
	}
	if (cls == FRAG_CLASS_HIT && n->next && n->next->state == FRAG_STATE_FREE)
		cls = FRAG_CLASS_SPLIT;
	n->stream = req->stream;
	a->live_bytes += size;
	out->addr = n->fit.key;
	out->granted = size;
	out->handle = (uintptr_t)n;
	out->cls = (uint8_t)cls;
	return 0;
}

/* ---- freeing ------------------------------------------------------------------------- */

static void arena_free_requested(void *self, const struct frag_block *block)
{
	struct frag_span *n = frag_span_of(block);
	struct arenas *a = self;

	FRAG_ASSERT(n->state == FRAG_STATE_LIVE);
	n->state = FRAG_STATE_WAITING;
	a->live_bytes -= n->fit.weight;
	a->waiting_bytes += n->fit.weight;
}

/* How often the host waits for the stream: before it looks into the global arena for a large
 * block, and before it looks anywhere but into the own arena. */
static unsigned syncs_of(const struct arenas *a, const struct frag_span *n)
{
	const struct ra_arena *owner = ((const struct ra_super *)n->owner)->owner;
	bool in_global = owner == &a->heap.global, in_own = owner == a->streams.list[n->stream];

	if (is_large(n->fit.weight))
		return in_global || in_own ? 1 : 2;
	return in_own ? 0 : 1;
}

static int arena_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_span *n = frag_span_of(block);
	struct ra_super *s = n->owner;
	struct arenas *a = self;
	int rc = 0;

	FRAG_ASSERT(n->state != FRAG_STATE_FREE);
	for (unsigned i = syncs_of(a, n); i && !rc; i--)
		rc = frag_dev_sync(a->up.a.env.dev, n->stream, err);
	*(n->state == FRAG_STATE_LIVE ? &a->live_bytes : &a->waiting_bytes) -= n->fit.weight;
	ra_super_give(&a->heap, n);
	if (s->owner == &a->heap.global)
		ra_heap_coalesce(&a->heap, s);
	return rc;
}

/* ---- looking at it -------------------------------------------------------------------- */

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	const struct arenas *a = self;

	(void)c;
	for (const struct ra_super *s = a->heap.first; s; s = s->next)
		frag_spans_visit(&s->spans, v);
}

static void arena_usage(void *self, struct frag_usage *out)
{
	struct arenas *a = self;
	uint64_t free_bytes = a->up.bytes - a->live_bytes - a->waiting_bytes;
	uint64_t largest = frag_tree_max(&a->heap.global.supers);

	out->allocated_bytes += a->live_bytes;
	out->waiting_bytes += a->waiting_bytes;
	out->free_bytes += free_bytes;
	out->non_releasable_bytes += free_bytes;
	out->blocks_count += frag_slab_live(&a->heap.spans);
	for (uint32_t i = 0; i < a->streams.count; i++) {
		const struct ra_arena *arena = a->streams.list[i];

		if (arena)
			largest = FRAG_MAX(largest, frag_tree_max(&arena->supers));
	}
	out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, largest);
}

static int arena_check(void *self, struct frag_err *err)
{
	struct arenas *a = self;
	size_t supers = a->heap.global.supers.count;

	for (uint32_t i = 0; i < a->streams.count; i++) {
		const struct ra_arena *arena = a->streams.list[i];

		supers += arena ? arena->supers.count : 0;
	}
	if (supers != frag_slab_live(&a->heap.supers))
		return frag_fail(err, FRAG_ECHECK, "a superblock belongs to no arena");
	return ra_heap_check(&a->heap, err);
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->size && p->size < RA_SUPERBLOCK_MIN)
		return FRAG_USAGE(err, "size is below 1 MiB, the smallest superblock");
	return 0;
}

static void release(void *self)
{
	struct arenas *a = self;

	frag_streams_release(&a->streams);
	ra_heap_release(&a->heap);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct arenas), release, inside, arena_usage, arena_check,
	};
	const struct params *p = params;
	struct arenas *a;

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	a = *self;
	a->p = p;
	ra_heap_init(&a->heap);
	frag_streams_init(&a->streams, &table_ops, a, env->dev);
	return 0;
}

const struct frag_policy_ops frag_policy_rmm_arena = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-arena",
	.summary = "RMM's arenas: first fit in superblocks of one block taken at the start",
	.source = "rapidsai/rmm cpp/include/rmm/mr/detail/arena.hpp, 2026",
	FRAG_UPSTREAM_RMM,
	FRAG_UPSTREAM_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.create = create,
	.alloc = arena_alloc,
	.free = arena_free,
	.free_requested = arena_free_requested,
};
