/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of initial blocks by what was not chosen; see ends.h. */
#include "ends.h"

#include "trace/build/build.h"

#define SLACK FRAG_MIB /* what a block of the large pool may own beyond its rounded request */
#define UNIT 512

/* The initial block of the large pool that ends where `at` begins, NULL if none does. */
static struct frag_initial_block *block_before(const struct frag_trace_dev *td, frag_addr_t at)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		const struct frag_initial_segment *g = &td->initial_segments[i];

		if (at <= g->addr || at - g->addr >= g->bytes || g->small || g->expandable)
			continue;
		for (size_t k = g->first_block; k < g->first_block + g->blocks_count; k++)
			if (td->initial_blocks[k].addr + td->initial_blocks[k].bytes == at)
				return &td->initial_blocks[k];
	}
	return NULL;
}

/*
 * May block `s` have this size? Not if it was gone before the event, nor if an allocation
 * was recorded inside while it lived.
 */
static bool possible(const struct frag_trace_dev *td, const struct frag_initial_block *s,
		     uint64_t bytes, uint64_t event)
{
	for (size_t i = 0; i < td->events_count; i++) {
		const struct frag_event *e = &td->events[i];

		if ((e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED) &&
		    e->slot == s->slot)
			return i > event;
		if (e->kind == FRAG_EV_ALLOC && td->addrs[i] > s->addr &&
		    td->addrs[i] - s->addr < bytes)
			return false;
	}
	return true;
}

/* A block that is there at the end has its size in the final snapshot. */
static bool size_is_recorded(const struct frag_trace_dev *td, const struct frag_initial_block *s)
{
	for (size_t i = 0; i < td->final_blocks_count; i++)
		if (td->final_blocks[i].addr == s->addr)
			return td->final_blocks[i].state != FRAG_STATE_FREE &&
			       td->final_blocks[i].bytes == s->bytes;
	return false;
}

bool ends_explain(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
		  const struct follow_report *rep)
{
	const uint32_t *roundup = settings->roundup;
	struct frag_initial_block *s;
	uint64_t least, wanted, size;

	if (!td->initial.segments_count || rep->diff != FOLLOW_ADDR || !rep->got_room)
		return false;
	s = block_before(td, rep->got);
	wanted = frag_torch_round(td->events[rep->event].bytes, roundup);
	if (!s || wanted > rep->got_room)
		return false;
	least = frag_torch_round(s->requested, roundup);
	size = s->bytes + rep->got_room - wanted + UNIT;
	if (size > least + SLACK || !possible(td, s, size, rep->event))
		return false;
	if (size_is_recorded(td, s) && possible(td, s, s->bytes, td->events_count))
		return false;
	s->bytes = size;
	return true;
}
