/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and the segments that they pin; see replay_cursor.h. The policy reports its segments in
 * address order, each followed by its pieces. An occupied piece is matched by address with the
 * blocks of the replay: one, or several if the policy grants parts of a piece.
 */
#include "replay_cursor.h"

#include <stdlib.h>

#include "lib/bisect.h"

struct walk {
	struct frag_heap_view *view;
	struct frag_heap_block *list;
	size_t count; /* by address */
	/* the segment that is walked */
	uint32_t segment;
	frag_addr_t low, high;
	uint64_t holes, largest;
	bool any;
};

FRAG_COMPARE(by_address, struct frag_heap_block, FRAG_ORDER(x->addr, y->addr),
	     FRAG_ORDER(x->slot, y->slot))

/* First block at or above an address. */
static size_t find(const struct walk *w, frag_addr_t addr)
{
	size_t at;

	FRAG_BISECT(at, 0, w->count, w->list[at].addr < addr);
	return at;
}

static void end_segment(struct walk *w)
{
	size_t from, to;
	uint64_t share, rest;

	if (!w->any)
		return;
	from = find(w, w->low);
	to = find(w, w->high);
	w->view->non_releasable += w->holes;
	if (from == to)
		w->view->ownerless += w->holes;
	else if (w->holes)
		w->view->segments_with_holes++;
	share = from < to ? w->holes / (to - from) : 0;
	rest = from < to ? w->holes % (to - from) : 0;
	for (size_t i = from; i < to; i++) {
		struct frag_heap_block *h = &w->list[i];

		h->non_releasable_bytes = share + (i == from ? rest : 0);
		h->segment_non_releasable_bytes = w->holes;
		h->largest_hole = w->largest;
		h->segment = w->segment;
		h->alone = to - from == 1;
	}
}

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct walk *w = ctx;

	(void)stream;
	end_segment(w);
	w->any = true;
	w->segment = w->view->segments_count++;
	w->low = addr;
	w->high = addr + bytes;
	w->holes = w->largest = 0;
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct walk *w = ctx;

	/* the addresses of a segment may be more than its bytes, where parts are not mapped */
	w->high = FRAG_MAX(w->high, addr + bytes);
	if (state != FRAG_STATE_FREE)
		return;
	if (bytes <= releasable)
		return;
	w->holes += bytes - releasable;
	w->largest = FRAG_MAX(w->largest, bytes - releasable);
}

static size_t fill(const struct frag_cursor *s, struct frag_heap_block *list)
{
	const struct frag_run *run = s->run;
	size_t n = 0;

	for (uint32_t i = 0; i < run->slots_count; i++) {
		const struct frag_run_slot *slot = &run->slots[i];

		if (slot->state != SLOT_LIVE && slot->state != SLOT_PENDING &&
		    slot->state != SLOT_HELD)
			continue;
		if (list)
			list[n] = (struct frag_heap_block){ .slot = i,
							    .stack = s->births[i].stack,
							    .waiting = slot->state != SLOT_LIVE,
							    .requested = slot->b.requested,
							    .granted = slot->b.granted,
							    .addr = slot->b.addr,
							    .born = s->births[i].event,
							    .born_us = s->births[i].time_us };
		n++;
	}
	return n;
}

int frag_heap_view_take(struct frag_cursor *s, struct frag_heap_view *out, struct frag_err *err)
{
	struct walk w = { .view = out };
	struct frag_visitor v = { .ctx = &w, .segment = on_segment, .block = on_block };

	*out = (struct frag_heap_view){ .count = fill(s, NULL) };
	FRAG_TRY_CALLOC(out->list, out->count + 1, "blocks", err);
	fill(s, out->list);
	qsort(out->list, out->count, sizeof(*out->list), by_address);
	w.list = out->list;
	w.count = out->count;
	if (s->run->policy.ops->visit)
		s->run->policy.ops->visit(s->run->policy.self, &v);
	end_segment(&w);
	return 0;
}

void frag_heap_view_release(struct frag_heap_view *view)
{
	frag_host_free(view->list);
	*view = (struct frag_heap_view){ 0 };
}
