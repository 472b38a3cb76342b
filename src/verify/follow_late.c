/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a difference certain? A history that began late does not say how long some initial blocks are,
 * to which pools their segments belong, and where reservations begin. Choices show most of this
 * (resolve.h, the policy's own learning). The rest may cause a difference, and then nothing is
 * known from there on. It is not the cause if the recorded choice breaks the rules for every
 * possible initial state, because all blocks up to the difference lie where they were recorded.
 */
#include "follow.h"

#define RANGE_MAX (1ull << 38) /* longest possible reservation */
#define SLACK FRAG_MIB /* most that a block of the large pool may have beyond its rounded request */

static bool began_late(const struct frag_trace_dev *td)
{
	return td->initial.segments_count ||
	       (td->events_count && td->events[0].flags & FRAG_EVF_INITIAL);
}

/* The initial segment with this address, or NULL. */
static const struct frag_initial_segment *initial_at(const struct frag_trace_dev *td,
						     frag_addr_t addr)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		const struct frag_initial_segment *g = &td->initial.segments[i];

		if (addr >= g->addr && addr - g->addr < g->bytes)
			return g;
	}
	return NULL;
}

/* The last initial block before an address in its segment, or NULL. */
static const struct frag_initial_block *block_before(const struct frag_trace_dev *td,
						     const struct frag_initial_segment *g,
						     frag_addr_t addr)
{
	const struct frag_initial_block *last = NULL;

	for (uint32_t i = 0; i < g->blocks_count; i++)
		if (td->initial.blocks[g->first_block + i].addr < addr)
			last = &td->initial.blocks[g->first_block + i];
	return last;
}

/* The initial block before an address, if it still exists and its length is not recorded. */
static const struct frag_initial_block *open_block(const struct follow *f, frag_addr_t addr)
{
	const struct frag_initial_segment *g = initial_at(f->td, addr);
	const struct frag_initial_block *b = g ? block_before(f->td, g, addr) : NULL;
	const struct frag_run_slot *slot = b ? &f->run->slots[b->slot] : NULL;

	if (!b || !f->td->uncertain_blocks || slot->state == SLOT_EMPTY || slot->b.addr != b->addr)
		return NULL;
	return follow_never_splits(f->td, g->pool) || (!g->small && !g->expandable) ? b : NULL;
}

static bool takes_whole(const struct follow *f, frag_addr_t addr)
{
	const struct frag_initial_segment *g = initial_at(f->td, addr);

	return g && follow_never_splits(f->td, g->pool);
}

/* May the free memory begin at this address, because the block before it is longer or shorter? */
static bool size_is_open(const struct follow *f, frag_addr_t addr)
{
	const struct frag_initial_block *b = open_block(f, addr);

	return b && (takes_whole(f, addr) || addr - b->addr <= b->bytes + SLACK);
}

/* May the request not fit the free memory here, because the block before is longer? */
static bool room_is_open(const struct follow *f)
{
	const struct frag_initial_block *b = open_block(f, f->r->got);
	uint64_t bytes = f->td->events[f->r->event].bytes;

	/* rounding depends on unknown settings: allow up to twice the size */
	return b && (takes_whole(f, f->r->got) ||
		     b->bytes + f->r->got_room <= b->requested + bytes + 2 * SLACK);
}

/* Is this in an initial reservation? Their beginnings and ends are not recorded. */
static bool in_old_range(const struct follow *f, frag_addr_t addr)
{
	if (follow_range_at(f, addr) < f->ranges_count)
		return false;
	for (size_t i = 0; i < f->td->initial.segments_count; i++) {
		const struct frag_initial_segment *g = &f->td->initial.segments[i];

		if (g->expandable && addr + RANGE_MAX > g->range_addr &&
		    addr < g->range_addr + RANGE_MAX)
			return true;
	}
	return false;
}

/* Unnamed pools are guessed from what they explain; another guess might explain this. */
static bool pools_are_open(const struct frag_trace_dev *td)
{
	return !td->pools_named && td->pools_count > 1;
}

struct room_walk {
	frag_addr_t at, end; /* end 0: not reached yet */
	struct follow_room room;
};

static void room_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct room_walk *w = ctx;

	(void)addr, (void)bytes, (void)stream;
	w->end = 0;
}

static void room_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		       uint64_t releasable)
{
	struct room_walk *w = ctx;

	(void)releasable;
	w->room.is_free |= addr == w->at && state == FRAG_STATE_FREE;
	if (addr == w->at || (addr == w->end && state == FRAG_STATE_FREE)) {
		w->room.bytes += bytes;
		w->end = addr + bytes;
	}
}

struct follow_room follow_room_at(const struct follow *f, frag_addr_t at)
{
	struct room_walk w = { .at = at };
	struct frag_visitor v = { .ctx = &w, .segment = room_segment, .block = room_block };

	f->run->policy.ops->visit(f->run->policy.self, &v);
	return w.room;
}

static bool grew(const struct follow *f)
{
	for (size_t s = f->r->seen; s < f->td->seen_count; s++) {
		const struct frag_evidence *e = &f->td->seen[s];

		if (e->before != f->r->event)
			return false;
		if (frag_seen_is_segment(e) && !frag_seen_is_release(e))
			return true;
	}
	return false;
}

/* Served from another block. */
static bool addr_is_open(const struct follow *f)
{
	const struct follow_report *r = f->r;

	if (grew(f)) /* although a free block would fit */
		return pools_are_open(f->td) || room_is_open(f);
	if (!follow_room_at(f, r->want).is_free) /* in the middle of free memory, or of a block */
		return size_is_open(f, r->want);
	/* in reservations, blocks are chosen by the size that they could grow to */
	return in_old_range(f, r->want) || in_old_range(f, r->got) || pools_are_open(f->td) ||
	       room_is_open(f);
}

/* Only one of the two returned memory: it found no block where the other found one. */
static bool missed(const struct follow *f)
{
	return f->td->events[f->r->event].kind == FRAG_EV_ALLOC && !grew(f);
}

/* Another segment event, or a missing one. */
static bool segment_is_open(const struct follow *f)
{
	const struct follow_report *r = f->r;
	const struct frag_evidence *e = r->seen < f->td->seen_count ? &f->td->seen[r->seen] : NULL;
	bool recorded = e && e->before == r->event;

	/* both take memory: uncertain if recorded pages are in an initial reservation here */
	if (r->diff == FOLLOW_SEGMENT && recorded && !r->got_release && !frag_seen_is_release(e))
		return e->kind == FRAG_SEEN_SEGMENT_MAP && in_old_range(f, r->got);
	if (r->event < f->td->events_count && missed(f) && size_is_open(f, f->td->addrs[r->event]))
		return true;
	return pools_are_open(f->td);
}

static bool refusal_is_open(const struct follow *f)
{
	if (grew(f)) /* another kind or size, or beyond the limit */
		return false;
	return pools_are_open(f->td) ||
	       (f->r->want != FRAG_NO_ADDR && size_is_open(f, f->r->want)) ||
	       (f->r->diff == FOLLOW_SERVED && f->td->uncertain_blocks);
}

bool follow_is_open(const struct follow *f)
{
	const struct frag_trace_dev *td = f->td;

	if (!began_late(td))
		return false;
	if (!td->initial.segments_count)
		return true; /* only the requests of the initial blocks are known */
	switch (f->r->diff) {
	case FOLLOW_ADDR:
		return addr_is_open(f);
	case FOLLOW_SEGMENT:
	case FOLLOW_MISSING:
		return segment_is_open(f);
	case FOLLOW_REFUSED:
	case FOLLOW_SERVED:
		return refusal_is_open(f);
	case FOLLOW_FINAL:
		return pools_are_open(td) || td->uncertain_blocks;
	default:
		return false;
	}
}
