/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's binning memory resource over another one (rapidsai/rmm
 * cpp/src/mr/detail/binning_memory_resource_impl.cpp, 2026).
 *
 *	Bins of 2^min to 2^max bytes, each a fixed-size pool of 128 blocks to a chunk
 *	(equalblocks.h). A request goes to the smallest bin that is not smaller, one
 *	above the largest bin straight to the upstream, and there it stays: a bin
 *	that cannot grow refuses. Every bin takes its first chunk at the start,
 *	smallest first. The defaults are those of RMM's benchmark: 256 KiB to 4 MiB
 *	over a pool.
 *
 * Structure: bins in an array by exponent, all over one upstream. Blocks that
 * went straight through keep the upstream's handle; over the bare device they are
 * chunks of their own without an owner, of one piece. `granted` tells the two kinds
 * apart: a bin's blocks have exactly its size, the others are above the largest.
 */
#include <frag/policy.h>

#include <equalblocks.h>

struct params {
	uint64_t min_exponent, max_exponent, chunk_blocks;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_UINT("min-exponent", struct params, min_exponent, 18, 8, 31,
		      "size of the smallest bin, as a power of two (18: 256 KiB)",
		      .tune = "9,12,15,20"),
	FRAG_OPT_UINT("max-exponent", struct params, max_exponent, 22, 8, 31,
		      "size of the largest bin, as a power of two (22: 4 MiB)",
		      .tune = "18,20,24,26"),
	FRAG_OPT_UINT("blocks-per-chunk", struct params, chunk_blocks, 128, 1, 65536,
		      "blocks that a bin takes from the upstream at once", .tune = "1,8,32,512"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "rmm-pool"), FRAG_OPT_END
};

struct binning {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_equals bins;
	uint64_t left_bytes; /* straight through, that the driver failed to take back */
};

/* ---- straight through --------------------------------------------------------------- */

static int direct_alloc(struct binning *a, const struct frag_request *req, struct frag_block *out,
			struct frag_err *err)
{
	struct frag_chunk *c;

	if (!frag_upstream_is_device(&a->up))
		return frag_adaptor_alloc(a, req, out, err);
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&a->up.pieces, 1), "rmm-binning: blocks", err);
	FRAG_TRY(frag_upstream_take(&a->up, req->bytes, req->stream, &c, err));
	frag_piece_grant(frag_chunk_piece(&a->up, c), out);
	out->cls = FRAG_CLASS_GROW;
	a->up.live_bytes += c->bytes;
	return 0;
}

static int direct_free(struct binning *a, const struct frag_block *block, struct frag_err *err)
{
	struct frag_piece *p = frag_piece_of(block);
	bool gone;
	int rc;

	if (!frag_upstream_is_device(&a->up))
		return frag_adaptor_free(a, block, err);
	*(p->state == FRAG_STATE_LIVE ? &a->up.live_bytes : &a->up.waiting_bytes) -= p->bytes;
	p->state = FRAG_STATE_FREE;
	rc = frag_upstream_give(&a->up, p->chunk, &gone, err);
	if (gone)
		frag_slab_free(&a->up.pieces, p);
	else
		a->left_bytes += p->bytes;
	return rc;
}

/* ---- the policy --------------------------------------------------------------------- */

static int binning_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			 struct frag_err *err)
{
	struct binning *a = self;
	bool starts = a->bins.started_count < a->bins.count;

	if (FRAG_UNLIKELY(starts))
		FRAG_TRY(frag_equals_start(&a->bins, err));
	if (frag_equals_serve(&a->bins, req->bytes))
		FRAG_TRY(frag_equals_alloc(&a->bins, req, out, err));
	else
		FRAG_TRY(direct_alloc(a, req, out, err));
	if (FRAG_UNLIKELY(starts))
		out->cls = FRAG_CLASS_GROW;
	return 0;
}

static void binning_free_requested(void *self, const struct frag_block *block)
{
	struct binning *a = self;

	if (frag_equals_serve(&a->bins, block->granted))
		frag_equal_free_requested(a, block);
	else
		(frag_upstream_is_device(&a->up) ? frag_pieces_free_requested
						 : frag_adaptor_free_requested)(a, block);
}

static int binning_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct binning *a = self;

	return frag_equals_serve(&a->bins, block->granted) ? frag_equal_free(a, block, err)
							   : direct_free(a, block, err);
}

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	if (c->owner)
		frag_equal_inside(self, c, v);
	else
		frag_chunk_visit(c, v, false);
}

static void binning_usage(void *self, struct frag_usage *out)
{
	struct binning *a = self;

	frag_equals_usage(&a->bins, out);
	out->allocated_bytes += a->up.live_bytes;
	out->waiting_bytes += a->up.waiting_bytes;
	out->free_bytes += a->left_bytes;
	out->non_releasable_bytes += a->left_bytes;
	out->blocks_count += frag_slab_live(&a->up.pieces);
	if (a->left_bytes)
		out->largest_free_bytes = 0;
}

static int binning_check(void *self, struct frag_err *err)
{
	return frag_equals_check(&((struct binning *)self)->bins, err);
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->min_exponent > p->max_exponent)
		return FRAG_USAGE(err, "min-exponent is above max-exponent");
	return 0;
}

static void release(void *self)
{
	frag_equals_release(&((struct binning *)self)->bins);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct binning), release, inside, binning_usage, binning_check,
	};
	const struct params *p = params;
	struct binning *a;

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	a = *self;
	for (uint64_t i = p->min_exponent; i <= p->max_exponent; i++)
		frag_equals_add(&a->bins, &a->up, 1ull << i, p->chunk_blocks, true);
	return 0;
}

const struct frag_policy_ops frag_policy_rmm_binning = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-binning",
	.summary = "RMM's bins of fixed-size blocks for small requests, a pool for the rest",
	.source = "rapidsai/rmm cpp/src/mr/detail/binning_memory_resource_impl.cpp, 2026",
	FRAG_UPSTREAM_RMM,
	FRAG_UPSTREAM_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.create = create,
	.alloc = binning_alloc,
	.free = binning_free,
	.free_requested = binning_free_requested,
};
