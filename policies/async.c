/* SPDX-License-Identifier: Apache-2.0 */
/*
 * async: cudaMallocAsync from a pool of its own (cudaMemPool).
 *
 * Rules (CUDA Programming Guide 4.3, stream-ordered memory allocator; what the
 * guide leaves open was measured on an H200, driver 580: see docs/measuring.md).
 *  - A block may be reused on its own stream at once, on others when the free
 *    has been proved complete, or as the reuse switches allow.
 *  - Physical memory comes in pages of 32 MiB; free pages move to where a
 *    request needs them. Blocks are multiples of 512 B.
 *  - When a stream or the device is synchronised, what is free and above the
 *    release threshold goes back to the driver. The default here is to keep
 *    everything, as PyTorch and RMM set it; the driver's own default is 0.
 *  - empty_cache is cudaMemPoolTrimTo(0).
 *
 * The policy only keeps the blocks: on sim the pool is modelled by the device,
 * on cuda it is the real one. What the pool holds beyond live blocks shows as
 * "other": the driver does not tell where its holes are.
 */
#include "direct.h"

struct params {
	uint64_t release_threshold;
	bool follow_event_dependencies, allow_opportunistic, allow_internal_dependencies;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("release-threshold", struct params, release_threshold, UINT64_MAX, 0,
		       UINT64_MAX, "bytes kept at a synchronise; max = never give back"),
	FRAG_OPT_BOOL("reuse-follow-event-dependencies", struct params, follow_event_dependencies,
		      1, "reuse across streams where an event orders them"),
	FRAG_OPT_BOOL("reuse-allow-opportunistic", struct params, allow_opportunistic, 1,
		      "reuse across streams where the GPU has passed the free"),
	FRAG_OPT_BOOL("reuse-allow-internal-dependencies", struct params,
		      allow_internal_dependencies, 1,
		      "when memory is short, make the stream wait for another one's free"),
	FRAG_OPT_END
};

struct self {
	struct frag_direct blocks; /* first: its hooks are used as they are */
	struct frag_policy_env env;
	uint64_t pool;
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct frag_mempool_attr attr = {
		.release_threshold = p->release_threshold,
		.reuse_follow_event_dependencies = p->follow_event_dependencies,
		.reuse_allow_opportunistic = p->allow_opportunistic,
		.reuse_allow_internal_dependencies = p->allow_internal_dependencies,
	};
	struct self *s;
	int rc;

	FRAG_TRY_CALLOC(s, 1, "policy async", err);
	s->env = *env;
	rc = frag_dev_mempool_create(env->dev, &attr, &s->pool, err);
	if (rc) {
		frag_host_free(s);
		return rc == FRAG_OOM
			       ? frag_fail(err, FRAG_EDEVICE, "cudaMemPoolCreate: out of memory")
			       : rc;
	}
	frag_direct_init(&s->blocks);
	*out = s;
	return 0;
}

static void give_back(struct self *s, const struct frag_direct_block *b)
{
	for (; b; b = b->next)
		frag_dev_mempool_free(s->env.dev, s->pool, b->addr, b->bytes, b->stream, NULL);
}

static void destroy(void *self)
{
	struct self *s = self;

	/* a pool may only go when its blocks are gone */
	give_back(s, s->blocks.first);
	give_back(s, s->blocks.orphans);
	if (frag_dev_mempool_destroy(s->env.dev, s->pool, NULL))
		frag_dev_mempool_destroy(s->env.dev, s->pool, NULL);
	frag_direct_release(&s->blocks);
	frag_host_free(s);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t before = s->env.dev->reserved_bytes, granted;
	frag_addr_t addr;

	if (req->bytes > UINT64_MAX - 511)
		return FRAG_OOM;
	granted = frag_round_up(req->bytes, 512);
	FRAG_TRY(frag_direct_room(&s->blocks, err));
	FRAG_TRY(frag_dev_mempool_alloc(s->env.dev, s->pool, req->bytes, req->stream, &addr, err));
	/* the pool grows by itself: a limit can only be seen broken, and then undone */
	if (s->env.dev->reserved_bytes > before &&
	    s->env.dev->reserved_bytes > s->env.limit_bytes) {
		FRAG_TRY(frag_dev_mempool_free(s->env.dev, s->pool, addr, req->bytes, req->stream,
					       err));
		FRAG_TRY(frag_dev_mempool_trim(s->env.dev, s->pool, s->env.limit_bytes, err));
		return FRAG_OOM;
	}
	*out = (struct frag_block){
		.addr = addr,
		.granted = granted,
		.handle = (uintptr_t)frag_direct_add(&s->blocks, addr, granted, req->stream),
		.cls = s->env.dev->reserved_bytes > before ? FRAG_CLASS_GROW : FRAG_CLASS_HIT,
	};
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_direct_block *b = (void *)(uintptr_t)block->handle;

	return frag_direct_freed(
		&s->blocks, b,
		frag_dev_mempool_free(s->env.dev, s->pool, b->addr, b->bytes, b->stream, err));
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct self *s = self;

	(void)pool;
	if (s->env.sync)
		s->env.sync(s->env.sync_ctx);
	FRAG_TRY(frag_dev_sync_all(s->env.dev, err));
	return frag_dev_mempool_trim(s->env.dev, s->pool, 0, err);
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct self *s = self;
	struct frag_mempool_usage u;

	frag_dev_mempool_usage(s->env.dev, s->pool, &u);
	fn(ctx, "ReservedMemCurrent", (int64_t)u.reserved_bytes);
	fn(ctx, "ReservedMemHigh", (int64_t)u.reserved_peak_bytes);
	fn(ctx, "UsedMemCurrent", (int64_t)u.used_bytes);
	fn(ctx, "UsedMemHigh", (int64_t)u.used_peak_bytes);
}

const struct frag_policy_ops frag_policy_async = {
	.name = "async",
	.summary = "cudaMallocAsync from a pool of its own (cudaMemPool)",
	.source = "CUDA Programming Guide 4.3; measured on an H200, driver 580",
	.trims = "after a synchronise, cudaMemPoolTrimTo(0): wholly free pages",
	.checked = "driver 580.159.04 on an H200, addresses of recorded histories",
	.flags = FRAG_POLICY_FOREIGN_SYNC | FRAG_POLICY_STREAMS,
	.needs = FRAG_CAN_ASYNC,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	FRAG_DIRECT_OPS,
	.trim = trim,
	.counters = counters,
};
