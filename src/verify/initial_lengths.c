/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of initial blocks, inferred from choices not taken; see initial_lengths.h. */
#include "initial_lengths.h"

#include "resolve.h"
#include "trace/build/build.h"

#define SLACK FRAG_MIB /* most that a block of the large pool may have beyond its rounded request */
#define UNIT 512

static bool never_splits(const struct frag_trace_dev *td, const struct frag_initial_segment *g)
{
	return g->pool < td->pools_count && td->pools[g->pool].b & FRAG_POOL_NO_SPLIT;
}

/* The initial block that ends where `at` begins and could be longer, or NULL. *whole: it took all
 * free memory there when it was handed out. */
static struct frag_initial_block *block_before(const struct frag_trace_dev *td, frag_addr_t at,
					       bool *whole)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		const struct frag_initial_segment *g = &td->initial_segments[i];

		*whole = never_splits(td, g);
		if (at <= g->addr || at - g->addr >= g->bytes ||
		    (!*whole && (g->small || g->expandable)))
			continue;
		for (size_t k = g->first_block; k < g->first_block + g->blocks_count; k++)
			if (td->initial_blocks[k].addr + td->initial_blocks[k].bytes == at)
				return &td->initial_blocks[k];
	}
	return NULL;
}

/*
 * May block `s` have this size? Not if it was freed before the event, nor if an allocation was
 * recorded inside it while it was live.
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

/* If a block exists at the end, the final snapshot has its size. */
static bool size_is_recorded(const struct frag_trace_dev *td, const struct frag_initial_block *s)
{
	for (size_t i = 0; i < td->final_blocks_count; i++)
		if (td->final_blocks[i].addr == s->addr)
			return td->final_blocks[i].state != FRAG_STATE_FREE &&
			       td->final_blocks[i].bytes == s->bytes;
	return false;
}

/* A block that took all free memory is longer by whole pages: by everything free after it, or by
 * enough that the request does not fit. */
static bool longer_whole(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
			 const struct follow_report *rep, struct frag_initial_block *s)
{
	uint64_t wanted = frag_torch_round(td->events[rep->event].bytes, settings->roundup);
	uint64_t least = frag_torch_round(s->requested, settings->roundup);
	uint64_t page = resolve_segment_bytes(settings, least <= FRAG_MIB ? least : 2 * FRAG_MIB);
	uint64_t size = s->bytes + rep->got_room;

	if (!possible(td, s, size, rep->event)) {
		size -= frag_round_down(wanted - 1, page);
		if (size <= s->bytes || !possible(td, s, size, rep->event))
			return false;
	}
	s->bytes = size;
	return true;
}

bool initial_lengths_explain(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
			     const struct follow_report *rep)
{
	const uint32_t *roundup = settings->roundup;
	struct frag_initial_block *s;
	uint64_t least, wanted, size;
	bool whole;

	if (!td->initial.segments_count || rep->diff != FOLLOW_ADDR || !rep->got_room)
		return false;
	s = block_before(td, rep->got, &whole);
	wanted = frag_torch_round(td->events[rep->event].bytes, roundup);
	if (!s || wanted > rep->got_room)
		return false;
	if (whole)
		return longer_whole(td, settings, rep, s);
	least = frag_torch_round(s->requested, roundup);
	size = s->bytes + rep->got_room - wanted + UNIT;
	if (size > least + SLACK || !possible(td, s, size, rep->event))
		return false;
	if (size_is_recorded(td, s) && possible(td, s, s->bytes, td->events_count))
		return false;
	s->bytes = size;
	return true;
}
