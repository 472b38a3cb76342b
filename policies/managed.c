/* SPDX-License-Identifier: Apache-2.0 */
/*
 * managed: cudaMallocManaged for every request; what is reserved is what has
 * become resident on the card.
 *
 * Rules (NVIDIA/open-gpu-kernel-modules kernel-open/nvidia-uvm).
 *  - cudaMallocManaged takes address space only. Pages come to the card when
 *    they are touched or prefetched, in blocks of 2 MiB; when the card is
 *    full, the block that was populated first goes back to the host.
 *  - A trace does not say what is touched. The touch model is an option: `whole`
 *    (every block is used completely as soon as it is allocated: the usual
 *    assumption), `first` (only the first byte: the least), or `none`.
 *  - Over-subscription is possible on the simulated card; its price are the
 *    bytes moved and their time (counters moved_in_bytes, moved_out_bytes,
 *    moved_ns, evictions).
 *  - cudaFree gives the pages back at once.
 *
 * Residency is kept per block of 2 MiB, as the driver does. A request that finds room costs
 * the same whatever its size; one for which blocks have to go, or that touches a part, costs time
 * in proportion to them (flag linear).
 */
#include "direct.h"

enum touch { TOUCH_WHOLE, TOUCH_FIRST, TOUCH_NONE };
static const char *const touch_words[] = { "whole", "first", "none", NULL };

struct params {
	uint64_t touch;
	bool prefetch;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_ENUM("touch", struct params, touch, TOUCH_WHOLE, touch_words,
		      "how much of a block is used on the card: all, the first byte, or nothing"),
	FRAG_OPT_BOOL("prefetch", struct params, prefetch, 0,
		      "move it with cudaMemPrefetchAsync instead of page faults"),
	FRAG_OPT_END
};

struct self {
	struct frag_direct blocks; /* first: its hooks are used as they are */
	struct frag_policy_env env;
	const struct params *params;
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY_CALLOC(s, 1, "policy managed", err);
	s->env = *env;
	s->params = params;
	frag_direct_init(&s->blocks);
	*out = s;
	return 0;
}

static void give_back(struct self *s, const struct frag_direct_block *b)
{
	for (; b; b = b->next)
		if (frag_dev_managed_free(s->env.dev, b->addr, b->bytes, NULL))
			frag_dev_managed_free(s->env.dev, b->addr, b->bytes, NULL);
}

static void destroy(void *self)
{
	struct self *s = self;

	give_back(s, s->blocks.first);
	give_back(s, s->blocks.orphans);
	frag_direct_release(&s->blocks);
	frag_host_free(s);
}

static int touch(struct self *s, frag_addr_t addr, uint64_t bytes, struct frag_err *err)
{
	if (s->params->touch == TOUCH_NONE)
		return 0;
	return frag_dev_managed_touch(s->env.dev, addr, s->params->touch == TOUCH_FIRST ? 1 : bytes,
				      s->params->prefetch, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	frag_addr_t addr;
	int rc;

	FRAG_TRY(frag_direct_room(&s->blocks, err));
	FRAG_TRY(frag_dev_managed_alloc(s->env.dev, req->bytes, &addr, err));
	rc = touch(s, addr, req->bytes, err);
	if (!rc && s->env.dev->reserved_bytes > s->env.limit_bytes)
		rc = FRAG_OOM;
	if (rc) {
		if (frag_dev_managed_free(s->env.dev, addr, req->bytes, NULL))
			frag_direct_freed(
				&s->blocks,
				frag_direct_add(&s->blocks, addr, req->bytes, req->stream), rc);
		return rc;
	}
	*out = (struct frag_block){
		.addr = addr,
		.granted = req->bytes,
		.handle = (uintptr_t)frag_direct_add(&s->blocks, addr, req->bytes, req->stream),
		.cls = FRAG_CLASS_GROW,
	};
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_direct_block *b = (void *)(uintptr_t)block->handle;

	return frag_direct_freed(&s->blocks, b,
				 frag_dev_managed_free(s->env.dev, b->addr, b->bytes, err));
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct self *s = self;
	struct frag_managed_usage u = { 0 };

	frag_dev_managed_usage(s->env.dev, &u);
	fn(ctx, "resident_bytes", (int64_t)u.resident_bytes);
	fn(ctx, "resident_peak_bytes", (int64_t)u.resident_peak_bytes);
	fn(ctx, "moved_in_bytes", (int64_t)u.moved_in_bytes);
	fn(ctx, "moved_out_bytes", (int64_t)u.moved_out_bytes);
	fn(ctx, "moved_ns", (int64_t)u.moved_ns);
	fn(ctx, "faults", (int64_t)u.faults);
	fn(ctx, "evictions", (int64_t)u.evictions);
}

const struct frag_policy_ops frag_policy_managed = {
	.name = "managed",
	.summary = "cudaMallocManaged: memory becomes resident where it is touched",
	.source = "NVIDIA/open-gpu-kernel-modules kernel-open/nvidia-uvm; CUDA Programming Guide",
	.trims = "nothing: nothing is cached",
	.checked = "driver 580.159.04 on an H200, free memory of recorded histories",
	.flags = FRAG_POLICY_LINEAR,
	.needs = FRAG_CAN_MANAGED,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	FRAG_DIRECT_OPS,
	.counters = counters,
};
