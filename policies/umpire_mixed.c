/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's MixedPool (LLNL/Umpire src/umpire/strategy/MixedPool.cpp).
 *
 *	Fixed pools (slotpool.h) of 256 B, 4 KiB and 64 KiB: from the smallest on,
 *	times 16, up to 128 KiB, each with min(2048, 2 MiB / object) objects to a
 *	sub-pool, as long as that is more than one. A request goes to the smallest
 *	that is not smaller, everything above to a QuickPool (quickcore.h) that
 *	coalesces when all of it is free. Every fixed pool takes its first sub-pool at
 *	the start, smallest first. Its release() is empty, so trim gives nothing back; the
 *	QuickPool still releases its free chunks when it is refused one.
 *
 * Structure: the pools share one upstream; chunk->owner tells whose a chunk is.
 * A handle of a fixed pool has its lowest bit set, because a QuickPool piece may
 * have any size.
 */
#include <frag/policy.h>

#include <quickcore.h>
#include <slotpool.h>
#include <upstream.h>

#define POOLS_MAX 32u
#define OBJECTS_MAX 2048u
#define FIXED_TAG 1u

struct params {
	uint64_t smallest, largest, factor, subpool;
	struct frag_quick_params pool;
	char upstream[FRAG_OPT_STRING_MAX];
};

/* MixedPool's QuickPool has QuickPool's defaults, except for the heuristic. */
static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("smallest", struct params, smallest, 256, 16, FRAG_GIB,
		       "object size of the smallest fixed pool, a multiple of 16", .unit = 16),
	FRAG_OPT_BYTES("largest", struct params, largest, 128 * FRAG_KIB, 0, FRAG_GIB,
		       "no fixed pool above this object size", .tune = "0,4K,2M"),
	FRAG_OPT_UINT("factor", struct params, factor, 16, 2, 1024,
		      "object size of a fixed pool over that of the one below"),
	FRAG_OPT_BYTES("subpool", struct params, subpool, 2 * FRAG_MIB, 0, FRAG_GIB,
		       "most bytes of a sub-pool of a fixed pool"),
	FRAG_QUICK_OPTS(struct params, FRAG_COALESCE_PERCENT),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"),
	FRAG_OPT_END
};

struct mixed {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_slotpool fixed[POOLS_MAX];
	uint32_t fixed_count, started_count;
	struct frag_quick q;
};

/* ---- which pool -------------------------------------------------------------------------- */

/* The smallest fixed pool for a request, or NULL: the QuickPool. O(fixed pools). */
static struct frag_equal *fixed_for(struct mixed *a, uint64_t bytes)
{
	for (uint32_t i = 0; i < a->fixed_count; i++)
		if (bytes <= a->fixed[i].e.block_bytes)
			return &a->fixed[i].e;
	return NULL;
}

/* The fixed pool of a block and the block with the pool's own handle; NULL: the QuickPool. */
static struct frag_equal *fixed_of(struct mixed *a, const struct frag_block *block,
				   struct frag_block *own)
{
	if (!(block->handle & FIXED_TAG))
		return NULL;
	*own = *block;
	own->handle -= FIXED_TAG;
	return fixed_for(a, block->granted);
}

/* The constructor's sub-pools. Goes on where it was refused. */
static int start(struct mixed *a, struct frag_err *err)
{
	for (; a->started_count < a->fixed_count; a->started_count++)
		FRAG_TRY(a->fixed[0].e.ops->start(&a->fixed[a->started_count].e, err));
	return 0;
}

static int mixed_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct mixed *a = self;
	bool starts = a->started_count < a->fixed_count;
	struct frag_equal *s;

	if (FRAG_UNLIKELY(starts))
		FRAG_TRY(start(a, err));
	s = fixed_for(a, req->bytes);
	if (s) {
		FRAG_TRY(s->ops->alloc(s, req->stream, out, err));
		out->handle += FIXED_TAG;
	} else {
		FRAG_TRY(frag_quick_alloc(&a->q, req, out, err));
	}
	if (FRAG_UNLIKELY(starts))
		out->cls = FRAG_CLASS_GROW;
	return 0;
}

static void mixed_free_requested(void *self, const struct frag_block *block)
{
	struct mixed *a = self;
	struct frag_block own;
	struct frag_equal *s = fixed_of(a, block, &own);

	if (s)
		s->ops->free_requested(s, &own);
	else
		frag_quick_free_requested(&a->q, block);
}

static int mixed_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct mixed *a = self;
	struct frag_block own;
	struct frag_equal *s = fixed_of(a, block, &own);

	if (!s)
		return frag_quick_free(&a->q, block, err);
	s->ops->free(s, &own);
	return 0;
}

/* ---- looking at it ------------------------------------------------------------------------- */

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	if (c->owner == &((struct mixed *)self)->q)
		frag_quick_visit(c, v);
	else
		frag_equal_inside(c, v);
}

static void mixed_usage(void *self, struct frag_usage *out)
{
	struct mixed *a = self;

	for (uint32_t i = 0; i < a->fixed_count; i++)
		frag_equal_usage(&a->fixed[i].e, out);
	frag_quick_usage(&a->q, out);
}

static int mixed_check(void *self, struct frag_err *err)
{
	struct mixed *a = self;

	for (uint32_t i = 0; i < a->fixed_count; i++)
		FRAG_TRY(frag_equal_check(&a->fixed[i].e, err));
	return frag_quick_check(&a->q, err);
}

static void make_pools(struct mixed *a, const struct params *p)
{
	for (uint64_t object = p->smallest; object <= p->largest && a->fixed_count < POOLS_MAX;
	     object *= p->factor) {
		uint64_t objects = FRAG_MIN(p->subpool / object, OBJECTS_MAX);

		if (objects <= 1)
			break;
		frag_slotpool_init(&a->fixed[a->fixed_count++], &a->up, object, objects);
	}
	frag_quick_init(&a->q, &a->up, &p->pool, false);
}

static void release(void *self)
{
	struct mixed *a = self;

	for (uint32_t i = 0; i < a->fixed_count; i++)
		frag_equal_release(&a->fixed[i].e);
	frag_quick_release(&a->q);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct mixed), release, inside, mixed_usage, mixed_check,
	};
	const struct params *p = params;

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	make_pools(*self, p);
	return 0;
}

const struct frag_policy_ops frag_policy_umpire_mixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "umpire-mixed",
	.summary = "Umpire's MixedPool: fixed pools for small requests, a QuickPool for the rest",
	.source = "LLNL/Umpire src/umpire/strategy/MixedPool.cpp",
	.trims = "nothing: release() is empty",
	.checked = "Umpire of 2024-10-11 (after v2024.07), compiled",
	FRAG_UPSTREAM_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	.alloc = mixed_alloc,
	.free = mixed_free,
	.free_requested = mixed_free_requested,
	.trim = frag_upstream_op_trim,
};
