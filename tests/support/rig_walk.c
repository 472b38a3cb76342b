/* SPDX-License-Identifier: Apache-2.0 */
/* The rig's walk: what a policy says it holds against what is known of it. */
#include "rig_internal.h"

void rig_check(struct rig *r)
{
	if (r->ops->check)
		PROMISE(r, !r->ops->check(r->policy.self, &test_err), "check: %s", test_err.msg);
}

struct walk {
	struct rig *r;
	struct rig_walk sum;
	frag_addr_t segment, segment_end; /* of the current segment */
	uint64_t blocks_bytes;		  /* of it so far */
	frag_addr_t block_end;
	size_t found; /* live blocks of ours met at their very place */
	bool any;
};

static bool is_vmm(const struct walk *w)
{
	return w->r->ops->needs & FRAG_CAN_VMM || w->r->ops->flags & FRAG_POLICY_ADAPTOR;
}

static void segment_complete(struct walk *w)
{
	uint64_t bytes = w->segment_end - w->segment;

	if (w->any)
		PROMISE(w->r, w->blocks_bytes == bytes,
			"walk: blocks of %llu bytes in a segment of %llu", LL(w->blocks_bytes),
			LL(bytes));
}

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct walk *w = ctx;

	segment_complete(w);
	PROMISE(w->r, bytes, "walk: empty segment");
	PROMISE(w->r, !w->any || addr >= w->segment_end, "walk: segments out of order");
	w->any = true;
	w->segment = addr;
	w->segment_end = addr + bytes;
	w->block_end = addr;
	w->blocks_bytes = 0;
	w->sum.segments_bytes += bytes;
	w->sum.segments_count++;
}

/* Is this one of ours, with the state we think it has? */
static void match_block(struct walk *w, frag_addr_t addr, uint64_t bytes,
			enum frag_block_state state)
{
	struct rig *r = w->r;
	size_t i = rig_place_of(r, addr);
	const struct rig_slot *s = i < r->count ? &r->slots[r->by_addr[i]] : NULL;

	if (!s || s->block.addr != addr || s->block.granted != bytes)
		return;
	w->found++;
	if (r->ops->free_requested)
		PROMISE(r, (state == FRAG_STATE_WAITING) == (s->state == RIG_PENDING),
			"walk: block at %#llx waits here or there only", LL(addr));
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct walk *w = ctx;

	PROMISE(w->r, w->any, "walk: block before the first segment");
	PROMISE(w->r, bytes, "walk: empty block at %#llx", LL(addr));
	/* segments of mapped pages may have holes between their blocks */
	PROMISE(w->r, is_vmm(w) ? addr >= w->block_end : addr == w->block_end,
		"walk: block at %#llx, the one before ends at %#llx", LL(addr), LL(w->block_end));
	PROMISE(w->r, releasable <= bytes, "walk: more releasable than there is");
	PROMISE(w->r, state == FRAG_STATE_FREE || !releasable,
		"walk: occupied block is releasable");
	w->block_end = addr + bytes;
	w->blocks_bytes += bytes;
	if (state == FRAG_STATE_FREE) {
		w->sum.free_bytes += bytes;
		w->sum.releasable_bytes += releasable;
		return;
	}
	if (state == FRAG_STATE_LIVE)
		w->sum.live_bytes += bytes;
	else
		w->sum.waiting_bytes += bytes;
	match_block(w, addr, bytes, state);
}

/*
 * The O(1) counters, where a policy has them, against a walk. The largest free block may be left to
 * the walk; a segment that could not be given back is free and of no use.
 */
static void check_usage(struct rig *r)
{
	struct frag_usage told = { 0 }, walk;

	if (!r->ops->usage)
		return;
	r->ops->usage(r->policy.self, &told);
	frag_policy_usage_walk(&r->policy, &walk);
#define SAME(field) \
	PROMISE(r, told.field == walk.field, "usage: " #field " %llu, walk: %llu", LL(told.field), \
		LL(walk.field))
	SAME(allocated_bytes);
	SAME(waiting_bytes);
	SAME(free_bytes);
	SAME(releasable_bytes);
	SAME(non_releasable_bytes);
	/* mapped pages: where one segment ends and another begins is seen by the walk only */
	if (!r->dev->stat[FRAG_CALL_RESERVE].count || r->usage_exact)
		SAME(segments_count);
	if (r->usage_exact)
		SAME(blocks_count);
	if (!r->failed && (told.largest_free_bytes || r->usage_exact))
		SAME(largest_free_bytes);
#undef SAME
}

/*
 * Segments against what the device counts. The driver packs and rounds small
 * segments into its pages, so it may count up to two pages more for each; a memory pool
 * and managed memory are out of the policy's sight.
 */
static void check_reserved(struct rig *r, const struct rig_walk *sum)
{
	uint64_t slack = 2 * FRAG_PAGE * (sum->segments_count + 1);

	if (!r->sim || r->ops->needs & FRAG_CAN_MANAGED)
		return;
	PROMISE(r, sum->segments_bytes <= r->dev->reserved_bytes,
		"walk: segments of %llu bytes, %llu are reserved", LL(sum->segments_bytes),
		LL(r->dev->reserved_bytes));
	if (r->ops->needs & FRAG_CAN_ASYNC)
		return;
	PROMISE(r, r->dev->reserved_bytes <= sum->segments_bytes + slack,
		"walk: segments of %llu bytes, but %llu are reserved", LL(sum->segments_bytes),
		LL(r->dev->reserved_bytes));
}

void rig_walk(struct rig *r, struct rig_walk *out)
{
	struct walk w = { .r = r };
	struct frag_visitor v = { .ctx = &w, .segment = on_segment, .block = on_block };

	if (out)
		*out = w.sum;
	/* null holds nothing, whatever it handed out */
	if (!r->ops->visit || !(r->ops->needs | (r->ops->flags & FRAG_POLICY_ADAPTOR)))
		return;
	r->ops->visit(r->policy.self, &v);
	segment_complete(&w);
	PROMISE(r, w.sum.live_bytes + w.sum.waiting_bytes == r->granted_bytes,
		"walk: %llu bytes live or waiting, %llu were granted",
		LL(w.sum.live_bytes + w.sum.waiting_bytes), LL(r->granted_bytes));
	PROMISE(r, is_vmm(&w) || w.found == r->count, "walk: %zu of %zu live blocks found", w.found,
		r->count);
	check_usage(r);
	check_reserved(r, &w.sum);
	if (out)
		*out = w.sum;
}
