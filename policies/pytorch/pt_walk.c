/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of the PyTorch allocator: visit, check, usage. */
#include "pt.h"

#include <stdlib.h>

/* The address beside the segment: sorting many does not wait for memory. */
struct placed {
	frag_addr_t base;
	struct pt_seg *g;
};

FRAG_COMPARE(by_base, struct placed, FRAG_ORDER(x->base, y->base))

static void visit_block(const struct frag_visitor *v, const struct pt_block *b)
{
	static const enum frag_block_state states[] = {
		[PT_FREE] = FRAG_STATE_FREE,
		[PT_LIVE] = FRAG_STATE_LIVE,
		[PT_WAITING] = FRAG_STATE_WAITING,
	};

	if (v->block)
		v->block(v->ctx, b->addr, b->size, states[b->state],
			 b->state == PT_FREE ? pt_releasable(b) : 0);
}

/* An expandable segment is shown as its mapped runs. */
static void visit_segment(const struct frag_visitor *v, const struct pt_seg *g)
{
	const struct pt_block *b = g->first, *run;

	while (b) {
		uint64_t bytes = 0;

		for (; b && b->state == PT_UNMAPPED; b = b->next)
			;
		for (run = b; b && b->state != PT_UNMAPPED; b = b->next)
			bytes += b->size;
		if (!run)
			return;
		if (v->segment)
			v->segment(v->ctx, run->addr, bytes, g->set->stream);
		for (; run != b; run = run->next)
			visit_block(v, run);
	}
}

void pt_visit(void *self, const struct frag_visitor *v)
{
	struct pt *a = self;
	struct placed *list = frag_host_alloc(a->segs_count * sizeof(*list));
	size_t n = 0;

	for (struct pt_seg *g = a->segs; g; g = g->next) {
		if (list)
			list[n++] = (struct placed){ g->base, g };
		else
			visit_segment(v,
				      g); /* no host memory to sort: better unsorted than nothing */
	}
	if (list)
		qsort(list, n, sizeof(*list), by_base);
	for (size_t i = 0; i < n; i++)
		visit_segment(v, list[i].g);
	frag_host_free(list);
}

void pt_usage(void *self, struct frag_usage *out)
{
	const struct pt *a = self;
	uint64_t active = (uint64_t)pt_use_current(&a->st, PT_ALL, PT_ACTIVE_BYTES);

	*out = (struct frag_usage){ 0 };
	out->allocated_bytes = (uint64_t)pt_use_current(&a->st, PT_ALL, PT_ALLOCATED_BYTES);
	out->waiting_bytes = active - out->allocated_bytes;
	out->free_bytes = a->total - active;
	out->releasable_bytes = a->releasable;
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
	/* with more the largest free block is left to a walk */
	for (uint32_t p = 0; p < a->pools_count && a->sets_count <= PT_SETS_FAST; p++) {
		for (uint32_t i = 0; i < a->pools[p].sets_count; i++) {
			const struct pt_set *set = a->pools[p].sets[i];
			const struct frag_bin_node *last =
				set ? frag_binset_last(&set->free) : NULL;

			if (last)
				out->largest_free_bytes =
					FRAG_MAX(out->largest_free_bytes, last->size);
		}
	}
	out->segments_count = a->segs_count;
	out->blocks_count = frag_slab_live(&a->blocks);
}

/* What a walk over the blocks adds up to. */
struct tally {
	uint64_t total, active, releasable;
	size_t blocks, free_blocks, unmapped_blocks;
};

static int check_block(struct pt *a, const struct pt_block *b, struct tally *t,
		       struct frag_err *err)
{
	const struct pt_block *n = b->next;

	t->blocks++;
	if (b->next && (n->prev != b || n->addr != b->addr + b->size))
		return frag_fail(err, FRAG_ECHECK, "block 0x%llx and the next do not join",
				 (unsigned long long)b->addr);
	if (n && b->state == n->state && (b->state == PT_FREE || b->state == PT_UNMAPPED))
		return frag_fail(err, FRAG_ECHECK, "neighbours of one state at 0x%llx",
				 (unsigned long long)b->addr);
	if (b->state != PT_UNMAPPED)
		t->total += b->size;
	if (b->state == PT_UNMAPPED) {
		t->unmapped_blocks++;
		return 0;
	}
	if (b->state != PT_FREE) {
		t->active += b->size;
		if (b->size < b->requested)
			return frag_fail(err, FRAG_ECHECK, "block 0x%llx is too short",
					 (unsigned long long)b->addr);
		return 0;
	}
	t->free_blocks++;
	t->releasable += pt_releasable(b);
	(void)a;
	return 0;
}

static int check_sets(struct pt *a, const struct tally *t, struct frag_err *err)
{
	size_t blocks = frag_slab_live(&a->blocks), free_blocks = 0, unmapped = 0;

	for (uint32_t p = 0; p < a->pools_count; p++) {
		for (uint32_t s = 0; s < a->pools[p].sets_count; s++) {
			struct pt_set *set = a->pools[p].sets[s];
			const char *broken;

			if (!set)
				continue;
			free_blocks += set->free.count;
			unmapped += frag_bset_count(&set->unmapped);
			broken = frag_binset_broken(&set->free);
			for (const struct frag_bin_node *n = frag_binset_first(&set->free);
			     n && !broken; n = frag_binset_next(&set->free, n))
				if (((const struct pt_block *)n)->state != PT_FREE)
					broken = "a block that is not free";
			if (!broken)
				broken = frag_bset_broken(&set->unmapped);
			if (broken)
				return frag_fail(err, FRAG_ECHECK, "free set: %s", broken);
		}
	}
	if (blocks != t->blocks || free_blocks != t->free_blocks || unmapped != t->unmapped_blocks)
		return frag_fail(err, FRAG_ECHECK,
				 "sets hold %zu free and %zu unmapped of %zu blocks, chains %zu, "
				 "%zu of %zu",
				 free_blocks, unmapped, blocks, t->free_blocks, t->unmapped_blocks,
				 t->blocks);
	return 0;
}

int pt_check(void *self, struct frag_err *err)
{
	struct pt *a = self;
	struct tally t = { 0 };

	for (const struct pt_seg *g = a->segs; g; g = g->next) {
		const char *broken = g->page ? pt_room_broken(g) : NULL;
		uint64_t end = g->base;

		if (broken)
			return frag_fail(err, FRAG_ECHECK, "segment 0x%llx: %s",
					 (unsigned long long)g->base, broken);

		if (!g->first || g->first->addr != g->base || g->first->prev)
			return frag_fail(err, FRAG_ECHECK, "segment 0x%llx has a wrong first block",
					 (unsigned long long)g->base);
		for (const struct pt_block *b = g->first; b; b = b->next) {
			FRAG_TRY(check_block(a, b, &t, err));
			end = b->addr + b->size;
		}
		if (end != g->base + g->bytes)
			return frag_fail(err, FRAG_ECHECK, "segment 0x%llx is not covered",
					 (unsigned long long)g->base);
	}
	if (t.total != a->total ||
	    t.active != (uint64_t)pt_use_current(&a->st, PT_ALL, PT_ACTIVE_BYTES) ||
	    t.releasable != a->releasable)
		return frag_fail(err, FRAG_ECHECK,
				 "counters differ from the blocks: total %llu %llu, releasable "
				 "%llu %llu",
				 (unsigned long long)a->total, (unsigned long long)t.total,
				 (unsigned long long)a->releasable,
				 (unsigned long long)t.releasable);
	return check_sets(a, &t, err);
}
