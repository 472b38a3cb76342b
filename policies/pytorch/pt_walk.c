/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of the PyTorch allocator: visit, check, usage. */
#include "pt.h"

#include <stdlib.h>

FRAG_COMPARE(by_base, struct pt_seg *, FRAG_ORDER((*x)->base, (*y)->base))

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
	FRAG_AUTO_FREE struct pt_seg **list =
		frag_host_alloc(a->segs_count * sizeof(struct pt_seg *));
	size_t n = 0;

	if (!list)
		return;
	for (struct pt_seg *g = a->segs; g; g = g->next)
		list[n++] = g;
	qsort(list, n, sizeof(struct pt_seg *), by_base);
	for (size_t i = 0; i < n; i++)
		visit_segment(v, list[i]);
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

/* What the sets hold, or a walk over the blocks finds. */
struct tally {
	size_t free_blocks, unmapped_blocks;
};

static void count_sets(const struct pt *a, struct tally *t)
{
	for (uint32_t p = 0; p < a->pools_count; p++) {
		for (uint32_t s = 0; s < a->pools[p].sets_count; s++) {
			const struct pt_set *set = a->pools[p].sets[s];

			const struct frag_bin_node *n = set ? frag_binset_first(&set->free) : NULL;

			for (; n; n = frag_binset_next(&set->free, n))
				t->free_blocks += ((const struct pt_block *)n)->state == PT_FREE;
			t->unmapped_blocks += set ? frag_bset_count(&set->unmapped) : 0;
		}
	}
}

static int check_seg(const struct pt_seg *g, struct tally *t, struct frag_err *err)
{
	const char *broken = NULL;

	for (const struct pt_block *b = g->first; b && !broken; b = b->next) {
		bool is_free = b->state == PT_FREE, unmapped = b->state == PT_UNMAPPED;

		t->free_blocks += is_free;
		t->unmapped_blocks += unmapped;
		if ((is_free || unmapped) && b->next && b->next->state == b->state)
			broken = "neighbours of one state";
		if (unmapped && !frag_bset_has(&b->set->unmapped, 0, b->addr, b))
			broken = "an unmapped block is not in its set";
	}
	return broken ? frag_fail(err, FRAG_ECHECK, "segment 0x%llx: %s",
				  (unsigned long long)g->base, broken)
		      : 0;
}

int pt_check(void *self, struct frag_err *err)
{
	const struct pt *a = self;
	struct tally found = { 0 }, sets = { 0 };

	for (const struct pt_seg *g = a->segs; g; g = g->next)
		FRAG_TRY(check_seg(g, &found, err));
	count_sets(a, &sets);
	if (found.free_blocks == sets.free_blocks && found.unmapped_blocks == sets.unmapped_blocks)
		return 0;
	return frag_fail(err, FRAG_ECHECK, "a free block is not in its set, or another one is");
}
