/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm: growable segments whose memory moves. cufrag's own policy.
 *
 * Rules.
 *  - Requests are rounded to 512 B. Each stream (and private pool) has one arena for requests up
 *    to 256 KiB and one for larger ones. A page is 2 MiB.
 *  - Best fit among free blocks that have memory throughout, lowest address
 *    among equals, cut from the front to the byte.
 *  - On a miss it takes address space instead: the lowest free stretch that is long enough, with
 *    or without memory, at worst the endless tail. Missing memory comes from, in this order: the
 *    handles that left this place, if they are idle where they are now; new memory, while the live
 *    peak plus a slack (0.5 % of it, at least 40 MiB) is not exceeded; handles that lie wholly in
 *    other free stretches, highest address first; new memory, when nothing can move.
 *  - The driver charges per handle, almost regardless of its size. So new memory comes in
 *    handles of 8 MiB; larger ones where more is held or requested; 2 or 4 MiB while little of the
 *    time budget (1 %) is spent; up to 32 MiB when too much is. Then the slack grows, too, and the
 *    tail gets memory for this request and the next ones at once.
 *  - Memory that moves is mapped at its new place and stays mapped at the old one, so that it can
 *    return without a call. An old mapping is removed when its pages are wanted for another
 *    handle, and only once the work queued before the last free there is done: fences tell it on
 *    cuda, a lag of recorded time on sim. Until then nothing else is placed there.
 *  - The stream that freed memory may use it elsewhere at once: it runs its old work before its
 *    new work, as when a block is reused in place. Other streams wait for the lag (with
 *    alias=false every stream does).
 *  - Private pools have their own arenas and memory, except on the default stream: nothing on it
 *    can be captured into a graph, so no graph reuses its addresses.
 *  - When the driver has no more memory, it gives handles that do not fit back in exchange for
 *    others, then synchronises everything and tries again.
 *  - empty_cache gives back every handle that no live block touches.
 *
 * So the loss is bounded by the handles that live blocks share, not by holes between them, and
 * the time by the handles moved, which only a miss can cause.
 */
#include "vmm/vm.h"

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("small-page", struct vm_params, small_page, 2 * FRAG_MIB, 2 * FRAG_MIB,
		       FRAG_GIB, "page for requests up to small-limit, bytes, a power of two",
		       .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("page", struct vm_params, page, 2 * FRAG_MIB, 2 * FRAG_MIB, FRAG_GIB,
		       "page for larger requests, bytes, a power of two", .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("piece", struct vm_params, piece, 8 * FRAG_MIB, 2 * FRAG_MIB, FRAG_GIB,
		       "size of new handles, bytes; half or a quarter of it while the budget "
		       "has savings"),
	FRAG_OPT_BYTES("max-page", struct vm_params, max_page, 32 * FRAG_MIB, 2 * FRAG_MIB,
		       32 * FRAG_GIB, "largest new handle, bytes; at most 128 pages"),
	FRAG_OPT_BYTES("small-limit", struct vm_params, small_limit, 256 * FRAG_KIB, 512, FRAG_GIB,
		       "largest small request, bytes"),
	FRAG_OPT_UINT("coarse", struct vm_params, coarse, 2048, 1, 1000000,
		      "new handles have at least 1/coarse of the memory held (up to 2 x piece: "
		      "4/coarse) …"),
	FRAG_OPT_UINT("coarse-request", struct vm_params, coarse_request, 200, 1, 1000000,
		      "… and at least 1/coarse-request of the request"),
	FRAG_OPT_BYTES("ahead", struct vm_params, ahead, 8 * FRAG_MIB, 0, 32 * FRAG_GIB,
		       "largest handle for growing ahead, bytes, if the slack has room"),
	FRAG_OPT_DOUBLE("budget", struct vm_params, budget, 0.01, 0, 1,
			"share of the recorded time for driver calls; beyond it new handles get "
			"larger"),
	FRAG_OPT_BOOL("private-pools", struct vm_params, private_pools, true,
		      "private pools keep their memory, except on the default stream"),
	FRAG_OPT_DOUBLE("slack", struct vm_params, slack, 0.005, 0, 10,
			"memory held beyond the live peak before any moves, as a part of it; up to "
			"twice that while the budget is overdrawn"),
	FRAG_OPT_BYTES(
		"slack-bytes", struct vm_params, slack_bytes, 40 * FRAG_MIB, 0, 1024 * FRAG_GIB,
		"… or in bytes, if that is more: this value, or a fifth of it + 1/100 of the "
		"peak, if less; up to three times that while the budget is overdrawn"),
	FRAG_OPT_UINT("lag-us", struct vm_params, lag_us, 10000, 0, 1000000000,
		      "simulated card: queued work is done after this much recorded time, "
		      "microseconds"),
	FRAG_OPT_BOOL("alias", struct vm_params, alias, true,
		      "memory may get a second address in its stream before the lag is over"),
	FRAG_OPT_END
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct vm_params *p = params;
	struct vm *v;

	FRAG_TRY_CALLOC(v, 1, "vmm", err);
	v->env = *env;
	v->dev = env->dev;
	v->params = p;
	v->classes[0] = (struct vm_class){ .page = p->small_page, .up_to = p->small_limit };
	v->classes[1] = (struct vm_class){ .page = p->page, .up_to = UINT64_MAX };
	frag_slab_init(&v->blocks, sizeof(struct vm_block));
	frag_slab_init(&v->handles, sizeof(struct vm_handle));
	frag_slab_init(&v->places, sizeof(struct vm_place));
	frag_bset_nodes_init(&v->nodes);
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
	frag_slab_release(&v->nodes);
	frag_host_free(v);
}

#define SPACE_SCAN 1024u /* stretches looked at per miss, the tail apart */

/*
 * A place of address space for `size`: the lowest that fits. So what is live stays together, and
 * every gap between live stretches costs the pages at its two edges. The tail is the last and has
 * always room behind what is parked there.
 */
static struct vm_block *find_space(struct vm *v, const struct vm_arena *a, uint64_t size,
				   bool strict, uint64_t *skip)
{
	struct frag_bset_node *at = frag_bset_lower(&a->part, 0, 0);
	struct vm_block *tail;

	for (unsigned i = 0; at && i < SPACE_SCAN; i++, at = frag_bset_next(&a->part, at)) {
		struct vm_block *b = at->value;

		if (b->size >= size && vm_fit(v, b, size, strict, skip))
			return b;
	}
	if (!at)
		return NULL;
	tail = frag_bset_value(frag_bset_last(&a->part));
	return vm_fit(v, tail, size, strict, skip) ? tail : NULL;
}

/* A free block with memory throughout. */
static struct vm_block *find_full(const struct vm_arena *a, uint64_t size)
{
	struct frag_bset_node *at = frag_bset_lower(&a->full, size, 0);

	return frag_bset_value(at);
}

/* Cuts the piece out of `b` and sees to its memory. */
static int take_from(struct vm *v, struct vm_block *b, uint64_t skip, uint64_t size,
		     struct vm_block **out, uint8_t *cls, struct frag_err *err)
{
	int rc = 0;

	*cls = b->size == size ? FRAG_CLASS_HIT : FRAG_CLASS_SPLIT;
	vm_free_erase(v, b);
	b = vm_cut(v, b, skip, size);
	if (b->unmapped) {
		*cls = FRAG_CLASS_MAP;
		rc = vm_back(v, b, err);
	}
	if (rc)
		vm_give(v, b);
	else
		*out = b;
	return rc;
}

static int take(struct vm *v, struct vm_arena *a, uint64_t size, struct vm_block **out,
		uint8_t *cls, struct frag_err *err)
{
	struct vm_block *b = find_full(a, size);
	uint64_t skip = 0;
	int rc;

	if (b)
		return take_from(v, b, 0, size, out, cls, err);
	for (unsigned strict = 0; strict < 2; strict++) {
		v->unsure = false;
		b = find_space(v, a, size, strict, &skip);
		if (v->unsure) {
			FRAG_TRY(vm_epoch_update(v, a, err));
			b = find_space(v, a, size, strict, &skip);
		}
		if (!b)
			return FRAG_OOM; /* address space has run out */
		rc = take_from(v, b, skip, size, out, cls, err);
		if (rc != VM_BLOCKED)
			return rc;
	}
	FRAG_BUG("vmm: a place that was free is in the way");
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct vm *v = self;
	uint64_t size = (req->bytes + 511) & ~511ull;
	uint16_t pool = v->params->private_pools && req->stream ? req->pool : 0;
	struct vm_arena *a = NULL;
	struct vm_block *b;
	unsigned k = 0;
	uint8_t cls;

	if (size < req->bytes || size > v->env.device_total_bytes)
		return FRAG_OOM;
	while (size > v->classes[k].up_to)
		k++;
	if (FRAG_LIKELY(!pool && req->stream < v->quick_streams))
		a = v->quick[req->stream * VM_CLASSES + k];
	if (FRAG_UNLIKELY(!a))
		FRAG_TRY(vm_arena_get(v, k, req->stream, pool, &a, err));
	if (FRAG_UNLIKELY(v->blocks.spare_count < 4))
		FRAG_TRY(vm_room(v, 4, err));
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
	FRAG_TRY(vm_close_epochs(v, err));
	return vm_release(v, pool, err);
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	const struct vm *v = self;

	fn(ctx, "new_handles", (int64_t)v->new_handles);
	fn(ctx, "moved_handles", (int64_t)v->moved_handles);
	fn(ctx, "revived_handles", (int64_t)v->revived_handles);
	fn(ctx, "released_handles", (int64_t)v->released_handles);
	fn(ctx, "early_moves", (int64_t)v->early_moves);
}

const struct frag_policy_ops frag_policy_vmm = {
	.name = "vmm",
	.summary = "growable segments whose free pages move to where they are needed",
	.source = "cufrag's own; driver costs measured on an H200",
	.trims = "every free page",
	.flags = FRAG_POLICY_STREAMS | FRAG_POLICY_FENCED | FRAG_POLICY_POOLS,
	.needs = FRAG_CAN_VMM,
	FRAG_POLICY_PARAMS(struct vm_params),
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	.visit = vm_visit,
	.check = vm_check,
	.usage = vm_usage,
	.counters = counters,
};
