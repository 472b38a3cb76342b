/* SPDX-License-Identifier: Apache-2.0 */
/* The first request served elsewhere because of addresses; see address_choice.h. */
#include "address_choice.h"
#include "lib/grow.h"
#include "lib/bisect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- segments by address ---- */

/* Index of the first segment that begins above addr. */
static size_t above(const struct numbered_segments *s, frag_addr_t addr)
{
	size_t at;

	FRAG_BISECT(at, 0, s->count, s->items[at].addr <= addr);
	return at;
}

static bool take(struct numbered_segments *s, frag_addr_t addr, uint64_t bytes)
{
	size_t at = above(s, addr);

	if (FRAG_GROW(s->items, s->count, s->cap, "segments", NULL))
		return false;
	memmove(s->items + at + 1, s->items + at, (s->count - at) * sizeof(*s->items));
	s->items[at] =
		(struct numbered_segment){ .addr = addr, .bytes = bytes, .number = s->taken++ };
	s->count++;
	return true;
}

static void give_back(struct numbered_segments *s, frag_addr_t addr)
{
	size_t at = above(s, addr);

	if (!at || s->items[at - 1].addr != addr)
		return;
	memmove(s->items + at - 1, s->items + at, (s->count - at) * sizeof(*s->items));
	s->count--;
}

static const struct numbered_segment *holder(const struct numbered_segments *s, frag_addr_t addr)
{
	size_t at = above(s, addr);

	return at && addr - s->items[at - 1].addr < s->items[at - 1].bytes ? &s->items[at - 1]
									   : NULL;
}

/* The address in `other` that corresponds to `addr` in `s`; FRAG_NO_ADDR: none. */
static frag_addr_t translate(const struct numbered_segments *s, frag_addr_t addr,
			     const struct numbered_segments *other)
{
	const struct numbered_segment *from = holder(s, addr);

	for (size_t i = 0; from && i < other->count; i++)
		if (other->items[i].number == from->number && other->items[i].bytes == from->bytes)
			return other->items[i].addr + (addr - from->addr);
	return FRAG_NO_ADDR;
}

/* ---- the two blocks ---- */

/* Sizes of the chosen block, before the choice, and of the other one. */
struct candidates {
	frag_addr_t chosen, other;
	frag_addr_t chosen_end; /* known part of the chosen block */
	frag_addr_t segment_end;
	uint64_t chosen_bytes, other_bytes; /* 0 = unknown */
};

/* Free neighbours are merged, so a free block directly after the chosen one was cut from it. */
static void see_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		      uint64_t releasable)
{
	struct candidates *c = ctx;

	(void)releasable;
	if (addr == c->chosen) {
		c->chosen_bytes = bytes;
		c->chosen_end = addr + bytes;
	} else if (state == FRAG_STATE_FREE && c->chosen_bytes && addr == c->chosen_end &&
		   addr < c->segment_end) {
		c->chosen_bytes += bytes;
	}
	if (addr == c->other && state == FRAG_STATE_FREE)
		c->other_bytes = bytes;
}

/* there, here: addresses of the chosen block; other_…: of the other replay's block. */
static void tell(struct tie *t, const struct change_watch *w, frag_addr_t there, frag_addr_t here)
{
	frag_addr_t other_there = translate(&t->here, here, &t->there);
	frag_addr_t other_here = translate(&t->there, there, &t->here);
	const struct numbered_segment *seg = holder(&t->here, here);
	struct candidates c = { .chosen = here,
				.other = other_here,
				.segment_end = seg->addr + seg->bytes };
	struct frag_visitor v = { .ctx = &c, .block = see_block };
	bool lower;
	size_t n;

	w->run->policy.ops->visit(w->run->policy.self, &v);
	n = (size_t)snprintf(t->text, sizeof(t->text),
			     "event %zu is the first request served elsewhere: ", w->event);
	t->equal = c.chosen_bytes && c.chosen_bytes == c.other_bytes && other_there != FRAG_NO_ADDR;
	lower = there < other_there && here < other_here;
	if (t->equal)
		snprintf(t->text + n, sizeof(t->text) - n,
			 "of two free blocks of %" PRIu64 " bytes the recording took the one at "
			 "0x%" PRIx64 ", not 0x%" PRIx64 "; here they are at 0x%" PRIx64
			 " and 0x%" PRIx64 ", and the replay takes the other one%s",
			 c.chosen_bytes, there, other_there, other_here, here,
			 lower ? ": both times the lower address" : "");
	else
		snprintf(t->text + n, sizeof(t->text) - n,
			 "recorded at 0x%" PRIx64 ", here at 0x%" PRIx64, there, here);
}

/* ---- event by event ---- */

static void see_recorded(struct tie *t, const struct change_watch *w)
{
	const struct frag_trace_dev *td = w->td;

	for (; t->cursor < td->seen_count && td->seen[t->cursor].before <= w->event; t->cursor++) {
		const struct frag_evidence *e = &td->seen[t->cursor];

		if (e->kind == FRAG_SEEN_SEGMENT_FREE)
			give_back(&t->there, e->addr);
		if (e->kind == FRAG_SEEN_SEGMENT_ALLOC)
			t->short_of_memory |= !take(&t->there, e->addr, e->bytes);
	}
}

/* Backwards, because an event may return memory and take it again at the same address. */
static void see_replayed(struct tie *t, const struct change_watch *w)
{
	for (size_t i = w->made.count; i-- > 0;) {
		const struct change *c = &w->made.items[i];

		if (c->kind == FRAG_SEGMENT_FREE)
			give_back(&t->here, c->addr);
		if (c->kind == FRAG_SEGMENT_ALLOC)
			t->short_of_memory |= !take(&t->here, c->addr, c->bytes);
	}
}

void tie_look(struct tie *t, const struct change_watch *w)
{
	const struct frag_event *e = &w->td->events[w->event];
	frag_addr_t there = w->td->addrs[w->event], here;
	const struct numbered_segment *seg_there, *seg_here;

	if (t->ended)
		return;
	see_recorded(t, w);
	see_replayed(t, w);
	if (e->kind != FRAG_EV_ALLOC || w->run->slots[e->slot].state != SLOT_LIVE)
		return;
	here = w->run->slots[e->slot].b.addr;
	seg_there = holder(&t->there, there);
	seg_here = holder(&t->here, here);
	if (!seg_there || !seg_here)
		return; /* expandable */
	if (seg_there->number == seg_here->number &&
	    there - seg_there->addr == here - seg_here->addr)
		return;
	tell(t, w, there, here);
	t->ended = true;
}

void tie_release(struct tie *t)
{
	FRAG_FREE(t->there.items, t->here.items);
	*t = (struct tie){ 0 };
}
