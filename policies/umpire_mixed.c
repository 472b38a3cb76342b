/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's MixedPool (LLNL/Umpire src/umpire/strategy/MixedPool.cpp).
 *
 *	Fixed pools (equalblocks.h) of 256 B, 4 KiB and 64 KiB: from the smallest on,
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
#include <equalblocks.h>
#include <quickcore.h>

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
	struct frag_quick q; /* first: the upstream is its */
	struct frag_equals fixed;
};

static int mixed_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct mixed *a = self;
	bool starts = a->fixed.started_count < a->fixed.count;

	if (FRAG_UNLIKELY(starts))
		FRAG_TRY(frag_equals_start(&a->fixed, err));
	if (frag_equals_serve(&a->fixed, req->bytes)) {
		FRAG_TRY(frag_equals_alloc(&a->fixed, req, out, err));
		out->handle += FIXED_TAG;
	} else {
		FRAG_TRY(frag_quick_alloc(self, req, out, err));
	}
	if (FRAG_UNLIKELY(starts))
		out->cls = FRAG_CLASS_GROW;
	return 0;
}

/* A block of a fixed pool, with the pool's own handle? */
static bool is_fixed(const struct frag_block *block, struct frag_block *own)
{
	*own = *block;
	own->handle &= ~(uint64_t)FIXED_TAG;
	return block->handle & FIXED_TAG;
}

static void mixed_free_requested(void *self, const struct frag_block *block)
{
	struct frag_block own;

	if (is_fixed(block, &own))
		frag_equal_free_requested(&own);
	else
		frag_pieces_free_requested(self, block);
}

static int mixed_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_block own;

	if (!is_fixed(block, &own))
		return frag_quick_free(self, block, err);
	frag_equal_free(&own);
	return 0;
}

/* ---- looking at it ------------------------------------------------------------------------- */

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	if (c->owner == self)
		frag_quick_inside(self, c, v);
	else
		frag_equal_inside(c, v);
}

static void mixed_usage(void *self, struct frag_usage *out)
{
	frag_equals_usage(&((struct mixed *)self)->fixed, out);
	frag_quick_usage(self, out);
}

static int mixed_check(void *self, struct frag_err *err)
{
	FRAG_TRY(frag_equals_check(&((struct mixed *)self)->fixed, err));
	return frag_quick_check(self, err);
}

static void release(void *self)
{
	frag_equals_release(&((struct mixed *)self)->fixed);
	frag_quick_release(self);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct mixed), release, inside, mixed_usage, mixed_check,
	};
	const struct params *p = params;
	struct mixed *a;

	FRAG_TRY(frag_quick_create(env, p->upstream, &p->pool, false, &parts, self, err));
	a = *self;
	for (uint64_t object = p->smallest; object <= p->largest && a->fixed.count < FRAG_EQUAL_MAX;
	     object *= p->factor) {
		uint64_t objects = FRAG_MIN(p->subpool / object, OBJECTS_MAX);

		if (objects <= 1)
			break;
		frag_equals_add(&a->fixed, &a->q.up, object, objects, false);
	}
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
	.trim = frag_adaptor_trim,
};
