/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dali-vm: the virtual memory resource of NVIDIA DALI. Wholly free blocks move.
 *
 * Rules (NVIDIA/DALI, include/dali/core/mm/cuda_vm_resource.h and detail/free_list.h, as of 2.4.0):
 *  - Physical memory comes in blocks of one size, one handle each: 1/256 of the card, rounded
 *    up to a power of two, at least the granule, at most 64 MiB.
 *  - A request is aligned to 1/2048 of its size, rounded up to a power of two, at least the
 *    alignment asked for, at most a block; its size is rounded up to that.
 *  - Best fit among the free stretches that have memory, the lowest address among equals; the
 *    first aligned place in it; what is left before and behind it stays free.
 *  - Else best fit among the free stretches of address space, with memory or without. The places
 *    without memory are filled from the lowest on: first with wholly free blocks from elsewhere,
 *    regions in order, lowest address first, then with new ones. The new ones are created before
 *    any block is unmapped, so a refusal moves nothing and the request fails. Blocks are mapped
 *    one by one.
 *  - If there is no such stretch, address space is reserved: at first twice the card, later a
 *    power of two, at least twice the reservation before, if possible right behind the last one,
 *    so that they join.
 *  - A freed block is free at once: in the source the callers have waited for the work that
 *    uses it. Here the wait comes before the first unmapping of a request.
 *  - trim (release_unused) gives every wholly free block back; address space stays.
 *
 * Structure and invariants: dali_vm/dali.h.
 */
#include "dali_vm/dali.h"

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("block", struct dali_params, block, 0, 0, 16 * FRAG_GIB,
		       "physical block, bytes, a power of two; 0 = 1/256 of the card, at most 64M",
		       .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("initial-va", struct dali_params, initial_va, 0, 0, 1ull << 46,
		       "smallest reservation of address space, bytes; 0 = twice the card"),
	FRAG_OPT_BYTES("alignment", struct dali_params, alignment, 256, 16, 2 * FRAG_MIB,
		       "alignment of requests, bytes, a power of two", .unit = FRAG_OPT_POW2),
	FRAG_OPT_END,
};

static int validate(const void *params, struct frag_err *err)
{
	const struct dali_params *p = params;

	if (p->block && p->block < FRAG_PAGE)
		return FRAG_USAGE(err, "block must be 2 MiB or more");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct dali *d;
	struct frag_device_info info;

	FRAG_TRY_CALLOC(d, 1, "policy dali-vm", err);
	frag_dev_info(env->dev, &info);
	d->env = *env;
	d->params = params;
	d->block = d->params->block;
	if (!d->block)
		d->block = FRAG_MIN(dali_next_pow2(env->device_total_bytes >> 8), 64 * FRAG_MIB);
	d->block = FRAG_MAX(d->block, FRAG_MAX(info.granule_bytes, FRAG_PAGE));
	d->initial_va = d->params->initial_va;
	if (!d->initial_va)
		d->initial_va = 2 * env->device_total_bytes;
	frag_slab_init(&d->pieces, sizeof(struct dali_piece));
	frag_bset_nodes_init(&d->nodes);
	frag_bset_init_shared(&d->mapped, &d->nodes);
	frag_bset_init_shared(&d->whole, &d->nodes);
	frag_bset_init_shared(&d->holes, &d->nodes);
	*out = d;
	return 0;
}

static void destroy(void *self)
{
	struct dali *d = self;

	dali_drop_all(d);
	for (size_t i = 0; i < d->regions_count; i++)
		frag_host_free(d->regions[i].blocks);
	FRAG_FREE(d->regions, d->ranges);
	frag_slab_release(&d->nodes);
	frag_slab_release(&d->pieces);
	frag_host_free(d);
}

/* ---- alloc -------------------------------------------------------------------------------- */

/* From what has memory: the piece, out, or NULL. pre: room for two pieces. */
static struct dali_piece *take_mapped(struct dali *d, uint64_t bytes, uint64_t alignment)
{
	struct frag_bset_node *at = frag_bset_lower(&d->mapped, bytes, 0);

	for (; at; at = frag_bset_next(&d->mapped, at)) {
		struct dali_piece *p = at->value;
		frag_addr_t lo = (p->addr + alignment - 1) & ~(alignment - 1);

		if (lo + bytes > dali_end(p))
			continue;
		dali_take_out(d, p);
		return dali_cut(d, p, lo, lo + bytes, DALI_MAPPED);
	}
	return NULL;
}

/* A place in address space gets its memory. */
static int map_new(struct dali *d, uint64_t bytes, uint64_t alignment, struct dali_piece **out,
		   struct frag_err *err)
{
	frag_addr_t at = 0;
	struct dali_piece *run = dali_find_run(d, bytes, alignment, &at);

	if (!run) {
		FRAG_TRY(dali_reserve(d, bytes, err));
		run = dali_find_run(d, bytes, alignment, &at);
		FRAG_ASSERT(run);
	}
	return dali_back(d, run, at, bytes, out, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct dali *d = self;
	uint64_t alignment, bytes, new_blocks = d->created_blocks;
	struct dali_piece *p;

	if (FRAG_UNLIKELY(req->bytes > d->env.device_total_bytes || req->bytes > 1ull << 45))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!dali_room(d, 2), "policy dali-vm", err);
	alignment = FRAG_MAX(d->params->alignment, dali_next_pow2(req->bytes >> 11));
	alignment = FRAG_MIN(alignment, d->block);
	bytes = (FRAG_MAX(req->bytes, 1) + alignment - 1) & ~(alignment - 1);
	p = take_mapped(d, bytes, alignment);
	out->cls = FRAG_CLASS_HIT;
	if (!p) {
		FRAG_TRY(map_new(d, bytes, alignment, &p, err));
		out->cls = d->created_blocks > new_blocks ? FRAG_CLASS_GROW : FRAG_CLASS_MAP;
	} else if (dali_is_free(p->next) || dali_is_free(p->prev)) {
		out->cls = FRAG_CLASS_SPLIT;
	}
	p->state = DALI_LIVE;
	d->live_bytes += bytes;
	out->addr = p->addr;
	out->granted = bytes;
	out->handle = (uintptr_t)p;
	return 0;
}

/* ---- free --------------------------------------------------------------------------------- */

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct dali *d = self;
	struct dali_piece *p = (void *)(uintptr_t)block->handle;

	(void)err;
	*(p->state == DALI_LIVE ? &d->live_bytes : &d->waiting_bytes) -= p->bytes;
	dali_give(d, p, DALI_MAPPED);
	return 0;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	return dali_release_unused(self, err);
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct dali *d = self;
	struct dali_piece *p = (void *)(uintptr_t)block->handle;

	if (p->state != DALI_LIVE)
		return;
	p->state = DALI_WAITING;
	d->live_bytes -= p->bytes;
	d->waiting_bytes += p->bytes;
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	const struct dali *d = self;

	fn(ctx, "created_blocks", (int64_t)d->created_blocks);
	fn(ctx, "moved_blocks", (int64_t)d->moved_blocks);
}

const struct frag_policy_ops frag_policy_dali_vm = {
	.name = "dali-vm",
	.summary = "DALI's virtual memory resource: wholly free blocks move to where they are "
		   "needed",
	.source = "NVIDIA/DALI include/dali/core/mm/cuda_vm_resource.h (2.4.0)",
	.trims = "wholly free blocks (release_unused)",
	.checked = "DALI 2.4.0, read",
	.needs = FRAG_CAN_VMM,
	FRAG_POLICY_PARAMS(struct dali_params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	.visit = dali_visit,
	.usage = dali_usage,
	.check = dali_check,
	.counters = counters,
};
