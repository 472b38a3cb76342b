/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm: growable segments whose pages move. Our own.
 *
 * Rules.
 *  - Requests are rounded to 512 B and served from an arena of their stream and
 *    size class: small (up to 1 MiB) in pages of 2 MiB, middle, and large ones in
 *    bigger pages, because the driver's price of a page does not depend on its size.
 *  - Best fit among free blocks that have memory throughout, lowest address
 *    among equals, cut from the front to the byte.
 *  - A miss takes address space instead: the smallest free stretch, with or
 *    without memory, that is long enough (among the next few the one that needs
 *    the fewest pages), at worst the endless tail. Pages that are missing there are
 *    moved from the inside of other free stretches, highest address first. New
 *    memory is taken only while less than (1 + slack) of the live peak is held, or
 *    when no page is free to move.
 *  - A page moves only when the work queued before its last free is done: by
 *    fences on cuda, by a lag of recorded time on sim.
 *  - When the driver has no more memory, pages of other sizes are given back for
 *    it, then everything is synchronised and tried again.
 *  - empty_cache gives every page back that no live block touches.
 *
 * So loss is bounded by the pages that live blocks share, not by holes between
 * them; and time by the pages moved, which a miss alone can cause.
 */
#include "vmm/vm.h"

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("small-page", struct vm_params, small_page, 2 * FRAG_MIB, 2 * FRAG_MIB,
		       FRAG_GIB, "page for requests up to small-limit, bytes, a power of two"),
	FRAG_OPT_BYTES("page", struct vm_params, page, 4 * FRAG_MIB, 2 * FRAG_MIB, FRAG_GIB,
		       "page for middle requests, bytes, a power of two"),
	FRAG_OPT_BYTES("large-page", struct vm_params, large_page, 16 * FRAG_MIB, 2 * FRAG_MIB,
		       FRAG_GIB, "page for requests above large-limit, bytes, a power of two"),
	FRAG_OPT_BYTES("small-limit", struct vm_params, small_limit, FRAG_MIB, 512, FRAG_GIB,
		       "largest small request, bytes"),
	FRAG_OPT_BYTES("large-limit", struct vm_params, large_limit, 32 * FRAG_MIB, 512,
		       1024 * FRAG_GIB, "largest middle request, bytes"),
	FRAG_OPT_DOUBLE("slack", struct vm_params, slack, 0.01, 0, 10,
			"memory held beyond the live peak before pages move, as a part of it"),
	FRAG_OPT_BYTES("slack-bytes", struct vm_params, slack_bytes, 32 * FRAG_MIB, 0,
		       1024 * FRAG_GIB, "and in bytes"),
	FRAG_OPT_UINT("lag-us", struct vm_params, lag_us, 10000, 0, 1000000000,
		      "sim: recorded time after which queued work is done, microseconds"),
	FRAG_OPT_BOOL("alias", struct vm_params, alias, true,
		      "memory may appear at a second place of its stream before the lag is over"),
	FRAG_OPT_UINT("look", struct vm_params, look, 4, 1, 64,
		      "stretches of address space compared on a miss"),
	FRAG_OPT_END
};

static int validate(const void *params, struct frag_err *err)
{
	const struct vm_params *p = params;

	if (!frag_is_pow2(p->small_page) || !frag_is_pow2(p->page) || !frag_is_pow2(p->large_page))
		return frag_fail(err, FRAG_EUSAGE, "vmm: page sizes must be powers of two");
	if (p->small_limit > p->large_limit)
		return frag_fail(err, FRAG_EUSAGE, "vmm: small-limit is above large-limit");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct vm_params *p = params;
	struct vm *v = frag_host_calloc(1, sizeof(*v));

	if (!v)
		return frag_fail_nomem(err, "vmm");
	v->env = *env;
	v->dev = env->dev;
	v->params = p;
	v->classes[0] = (struct vm_class){ .page = p->small_page, .up_to = p->small_limit };
	v->classes[1] = (struct vm_class){ .page = p->page, .up_to = p->large_limit };
	v->classes[2] = (struct vm_class){ .page = p->large_page, .up_to = UINT64_MAX };
	for (unsigned k = 0; k < VM_CLASSES; k++)
		while (v->classes[v->classes[k].like].page != v->classes[k].page)
			v->classes[k].like++;
	frag_slab_init(&v->blocks, sizeof(struct vm_block));
	*out = v;
	return 0;
}

static void destroy(void *self)
{
	struct vm *v = self;

	vm_drop_pages(v);
	while (v->arenas) {
		struct vm_arena *a = v->arenas;

		v->arenas = a->next;
		vm_arena_drop(v, a);
	}
	frag_host_free(v->quick);
	frag_slab_release(&v->blocks);
	frag_host_free(v);
}

/* The best place of address space for `size`: few missing pages among the next fits. */
static struct vm_block *find_space(const struct vm *v, const struct vm_arena *a, uint64_t size,
				   uint64_t *skip)
{
	struct frag_bset_pos at = frag_bset_lower(&a->part, size, 0);
	struct vm_block *best = NULL;
	size_t least = SIZE_MAX;

	for (uint64_t i = 0; at.leaf && (i < v->params->look || !best); at = frag_bset_next(at)) {
		struct vm_block *b = frag_bset_value(at);
		uint64_t from;
		size_t missing;

		i++;
		if (!vm_fit(b, size, &from))
			continue;
		missing = vm_missing(a, b->addr + from, size);
		if (missing < least) {
			least = missing;
			*skip = from;
			best = b;
		}
	}
	return best;
}

static int take(struct vm *v, struct vm_arena *a, uint64_t size, struct vm_block **out,
		uint8_t *cls, struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_lower(&a->full, size, 0);
	struct vm_block *b = at.leaf ? frag_bset_value(at) : NULL;
	uint64_t skip = 0;
	int rc;

	if (!b) {
		if (a->stale_count)
			FRAG_TRY(vm_epoch_update(v, a, err));
		b = find_space(v, a, size, &skip);
	}
	if (!b)
		return FRAG_OOM; /* address space has run out */
	*cls = b->size == size ? FRAG_CLASS_HIT : FRAG_CLASS_SPLIT;
	vm_free_erase(v, b);
	b = vm_cut(v, b, skip, size);
	if (b->unmapped) {
		*cls = FRAG_CLASS_MAP;
		rc = vm_back(v, b, err);
		if (rc) {
			vm_give(v, b);
			return rc;
		}
	}
	*out = b;
	return 0;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct vm *v = self;
	uint64_t size = (req->bytes + 511) & ~511ull;
	struct vm_arena *a = NULL;
	struct vm_block *b;
	unsigned k = 0;
	uint8_t cls;

	if (size < req->bytes || size > v->env.device_total_bytes)
		return FRAG_OOM;
	while (size > v->classes[k].up_to)
		k++;
	if (FRAG_LIKELY(!req->pool && req->stream < v->quick_streams))
		a = v->quick[req->stream * VM_CLASSES + k];
	if (FRAG_UNLIKELY(!a))
		FRAG_TRY(vm_arena_get(v, k, req->stream, req->pool, &a, err));
	if (FRAG_UNLIKELY(a->blocks + 4 > a->reserved || v->blocks.spare_count < 4))
		FRAG_TRY(vm_room(v, a, 4, err));
	FRAG_TRY(take(v, a, size, &b, &cls, err));
	b->state = VM_LIVE;
	v->live_bytes += size;
	if (v->live_bytes + v->waiting_bytes > v->live_peak_bytes)
		v->live_peak_bytes = v->live_bytes + v->waiting_bytes;
	out->addr = b->addr;
	out->granted = size;
	out->handle = (uintptr_t)b;
	out->cls = cls;
	return 0;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct vm *v = self;
	struct vm_block *b = (void *)(uintptr_t)block->handle;

	b->state = VM_WAITING;
	v->live_bytes -= b->size;
	v->waiting_bytes += b->size;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct vm *v = self;
	struct vm_block *b = (void *)(uintptr_t)block->handle;
	struct vm_arena *a = b->arena;
	frag_addr_t addr = b->addr;
	uint64_t size = b->size;

	*(b->state == VM_LIVE ? &v->live_bytes : &v->waiting_bytes) -= size;
	vm_give(v, b);
	return vm_touch(v, a, addr, size, err);
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct vm *v = self;

	if (!pool && v->env.sync)
		v->env.sync(v->env.sync_ctx);
	FRAG_TRY(vm_settle(v, err));
	return vm_release(v, pool, err);
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	const struct vm *v = self;

	fn(ctx, "new_pages", (int64_t)v->new_pages);
	fn(ctx, "moved_pages", (int64_t)v->moved_pages);
	fn(ctx, "released_pages", (int64_t)v->released_pages);
	fn(ctx, "aliased_pages", (int64_t)v->aliased_pages);
}

const struct frag_policy_ops frag_policy_vmm = {
	.abi = FRAG_POLICY_ABI,
	.name = "vmm",
	.summary = "growable segments whose free pages move to where they are needed",
	.source = "cufrag's own; driver costs measured on an H200",
	.needs = FRAG_CAN_VMM,
	.opts = opts,
	.params_size = sizeof(struct vm_params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.free_requested = free_requested,
	.trim = trim,
	.visit = vm_visit,
	.check = vm_check,
	.usage = vm_usage,
	.counters = counters,
};
