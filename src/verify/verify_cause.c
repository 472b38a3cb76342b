/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses are the cause if nothing else can be. The two simulated replays differ only in the
 * given addresses. With the card's addresses, the simulated card must do in every event what the
 * card did; with the recorded addresses, what was recorded. Recorded refusals that the size of the
 * card does not explain are another cause, because the second replay must be told of them. In
 * doubt, addresses are not the cause: a card larger than the recorded one reserves longer ranges
 * for expandable segments, which may not fit between recorded addresses.
 */
#include "verify_cause.h"

#include <inttypes.h>
#include <stdio.h>

#include "follow.h"
#include "lib/grow.h"

/*
 * Finds where addresses decide. Two replays of the same events with the same settings, the recorded
 * one and one at other addresses, differ only in addresses until a request is served from another
 * block. Segments correspond by order: the n-th taken in one is the n-th taken in the other.
 * Ignores expandable segments.
 */
struct numbered_segment {
	frag_addr_t addr;
	uint64_t bytes;
	uint64_t number; /* in the order in which they were taken */
};

struct numbered_segments {
	struct numbered_segment *items;
	size_t count, cap;
	uint64_t taken;
};

struct tie {
	struct numbered_segments there, here; /* recorded, replayed */
	size_t cursor;			      /* next evidence */
	bool ended;			      /* found, or nothing more can be found: stop */
	bool equal; /* found, and the two blocks had the same size: a tie */
	bool short_of_memory;
	char text[400]; /* the first request served elsewhere; "" = none found */
};

/* ---- segments by address ---- */

static bool seg_take(struct numbered_segments *s, frag_addr_t addr, uint64_t bytes)
{
	if (FRAG_GROW(s->items, s->count, s->cap, "segments", NULL))
		return false;
	s->items[s->count++] =
		(struct numbered_segment){ .addr = addr, .bytes = bytes, .number = s->taken++ };
	return true;
}

static const struct numbered_segment *holder(const struct numbered_segments *s, frag_addr_t addr)
{
	for (size_t i = 0; i < s->count; i++)
		if (addr - s->items[i].addr < s->items[i].bytes)
			return &s->items[i];
	return NULL;
}

static void give_back(struct numbered_segments *s, frag_addr_t addr)
{
	const struct numbered_segment *seg = holder(s, addr);

	if (seg && seg->addr == addr)
		s->items[seg - s->items] = s->items[--s->count];
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
			t->short_of_memory |= !seg_take(&t->there, e->addr, e->bytes);
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
			t->short_of_memory |= !seg_take(&t->here, c->addr, c->bytes);
	}
}

/* After each event of the replay. pre: the trace has evidence. */
static void tie_look(struct tie *t, const struct change_watch *w)
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

static void tie_release(struct tie *t)
{
	FRAG_FREE(t->there.items, t->here.items);
	*t = (struct tie){ 0 };
}

/* ---- the two replays ---- */

/* Compares an event on the simulated card with that on the card; `out`: the difference. */
static bool same_event(const struct card_replay *card, size_t *cursor, const struct change_watch *w,
		       char *out, size_t cap)
{
	const struct change *real = card->changes.items, *sim = w->made.items;
	size_t begin = *cursor, same = 0, count;
	char on_card[80], simulated[80];

	while (*cursor < card->changes.count && real[*cursor].event == w->event)
		++*cursor;
	count = *cursor - begin;
	while (same < count && same < w->made.count &&
	       !change_compare(&real[begin + same], &sim[same]) &&
	       real[begin + same].addr == sim[same].addr)
		same++;
	if (same == count && same == w->made.count)
		return true;
	change_describe(on_card, sizeof(on_card), real, *cursor, begin + same);
	change_describe(simulated, sizeof(simulated), sim, w->made.count, same);
	snprintf(out, cap, "does something else: event %zu: on the card %s, simulated %s", w->event,
		 on_card, simulated);
	return false;
}

/* For example, a given address is not free: the simulated card's state differs. */
static int as_answer(int rc, const struct frag_err *err, char *out, size_t cap)
{
	if (rc != FRAG_EDEVICE)
		return rc;
	snprintf(out, cap, "fails: %s", err->msg);
	return 0;
}

static int walk(const struct card_replay *card, struct change_watch *w, struct tie *tie, char *out,
		size_t cap, struct frag_err *err)
{
	size_t cursor = 0;

	for (size_t i = 0; i < card->td->events_count; i++) {
		FRAG_TRY(change_watch_step(w, i, err));
		if (!same_event(card, &cursor, w, out, cap))
			return 0;
		tie_look(tie, w);
		FRAG_CHECK_ALLOC(!tie->short_of_memory, "verify", err);
	}
	return 0;
}

/* Replays at the card's addresses. out: "" or the first difference from the card. */
static int replay_again(struct card_replay *card, struct tie *tie, char *out, size_t cap,
			struct frag_err *err)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(change_watch_close) struct change_watch w = { 0 };
	struct frag_err own = { 0 };
	int rc;

	*out = '\0';
	FRAG_TRY(address_log_play(&card->given, &card->twin, &dev, err));
	rc = change_watch_open(&w, card->spec, dev, card->td, card->limit_bytes, &own);
	if (!rc)
		rc = walk(card, &w, tie, out, cap, &own);
	rc = as_answer(rc, &own, out, cap);
	if (rc && err)
		*err = own;
	return rc;
}

/* Replays at the recorded addresses. out: "" or the remaining difference from the recording. */
static int replay_recorded(const struct card_replay *card, char *out, size_t cap,
			   struct frag_err *err)
{
	struct follow_report f = { 0 };
	struct frag_err own = { 0 };
	int rc = follow_recording(card->td, card->spec, &card->twin, card->limit_bytes, &f, &own);

	*out = '\0';
	if (!rc && f.diff != FOLLOW_SAME)
		snprintf(out, cap, "differs from the recording, too: %s", f.text);
	else if (!rc && f.refusals_count)
		snprintf(out, cap,
			 "must be told that the driver refused memory at event %" PRIu64 "%s",
			 f.refusals[0].event,
			 card->limit_bytes == UINT64_MAX
				 ? "; was there a memory limit? give it with --limit"
				 : "");
	follow_report_release(&f);
	rc = as_answer(rc, &own, out, cap);
	if (rc && err)
		*err = own;
	return rc;
}

static void say(struct frag_verify_result *r, enum frag_verify_cause cause, const char *text,
		const char *detail)
{
	r->cause = cause;
	snprintf(r->cause_text, sizeof(r->cause_text), "%s%s", text, detail);
}

static int find(struct card_replay *card, struct tie *tie, struct frag_verify_result *r,
		struct frag_err *err)
{
	char text[sizeof(r->cause_text) - 100];

	FRAG_TRY(replay_again(card, tie, text, sizeof(text), err));
	if (*text) {
		say(r, FRAG_CAUSE_UNKNOWN,
		    "not addresses alone: a simulated card of this size with the addresses of "
		    "this card ",
		    text);
		return 0;
	}
	FRAG_TRY(replay_recorded(card, text, sizeof(text), err));
	if (*text) {
		say(r, FRAG_CAUSE_INPUT,
		    "not addresses alone: a simulated card of this size with the recorded "
		    "addresses ",
		    text);
		return 0;
	}
	snprintf(text, sizeof(text),
		 "with the addresses of this card a simulated card does the same in every event, "
		 "and with the recorded addresses what was recorded%s%s",
		 *tie->text ? "; " : "", tie->text);
	say(r, FRAG_CAUSE_ADDRESSES,
	    tie->equal ? "a tie that addresses decide: " : "addresses decide it: ", text);
	return 0;
}

int verify_cause_find(struct card_replay *card, struct frag_verify_result *r, struct frag_err *err)
{
	FRAG_AUTO(tie_release) struct tie tie = { 0 };

	return find(card, &tie, r, err);
}
