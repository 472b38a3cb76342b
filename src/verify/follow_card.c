/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card that a followed recording runs on: a segment gets the recorded address, and a request
 * for memory that the recording does not show next is refused.
 */
#include "follow.h"

#include "lib/grow.h"

static void note_refusal(struct follow *f, uint64_t bytes)
{
	struct follow_report *r = f->r;

	if (r->refusals_count && r->refusals[r->refusals_count - 1].event == f->event)
		return; /* the retry of the same request */
	if (FRAG_GROW(r->refusals, r->refusals_count, r->refusals_cap, "refusals", NULL)) {
		f->short_of_memory = true;
		return;
	}
	r->refusals[r->refusals_count++] =
		(struct follow_refusal){ .event = f->event,
					 .bytes = bytes,
					 .held_bytes = f->dev->reserved_bytes,
					 .begin_bytes = f->begin_bytes };
}

static int place_segment(struct follow *f, uint64_t bytes, frag_addr_t *addr)
{
	const struct frag_evidence *e;

	if (f->restoring) {
		const struct frag_initial_state *initial = &f->td->initial;

		while (f->restored < initial->segments_count &&
		       initial->segments[f->restored].expandable)
			f->restored++;
		if (f->restored == initial->segments_count)
			return -1;
		*addr = initial->segments[f->restored++].addr;
		return 0;
	}
	e = expected(f);
	if (!e || e->kind != FRAG_SEEN_SEGMENT_ALLOC || e->bytes != bytes) {
		note_refusal(f, bytes);
		return FRAG_OOM;
	}
	*addr = e->addr;
	return 0;
}

size_t follow_range_at(const struct follow *f, frag_addr_t addr)
{
	size_t i = 0;

	while (i < f->ranges_count &&
	       !(addr >= f->ranges[i].base && addr - f->ranges[i].base < f->ranges[i].bytes))
		i++;
	return i;
}

/* A reservation ends with its last page; the next one may reuse its place. */
void follow_note_pages(struct follow *f, enum frag_segment_event kind, frag_addr_t addr,
		       uint64_t bytes)
{
	size_t i = follow_range_at(f, addr);

	if (i == f->ranges_count)
		return;
	if (kind == FRAG_SEGMENT_MAP)
		f->ranges[i].mapped += bytes;
	else if (kind == FRAG_SEGMENT_UNMAP && !(f->ranges[i].mapped -= bytes))
		f->ranges[i] = f->ranges[--f->ranges_count];
}

static int add_range(struct follow *f, frag_addr_t base, uint64_t bytes)
{
	if (FRAG_GROW(f->ranges, f->ranges_count, f->ranges_cap, "ranges", NULL)) {
		f->short_of_memory = true;
		return -1;
	}
	f->ranges[f->ranges_count].base = base;
	f->ranges[f->ranges_count].mapped = 0;
	f->ranges[f->ranges_count++].bytes = bytes;
	return 0;
}

/* A new reservation begins where its event maps pages; if that failed, at the next pages of its
 * stream outside the other reservations. */
static int place_range(struct follow *f, uint64_t bytes, frag_addr_t *addr)
{
	const struct frag_evidence *now;
	uint16_t stream;

	if (f->restoring)
		return -1;
	now = expected(f);
	stream = f->td->events[f->event].stream;
	if (now && now->kind == FRAG_SEEN_SEGMENT_MAP &&
	    follow_range_at(f, now->addr) == f->ranges_count) {
		*addr = now->addr;
		return add_range(f, now->addr, bytes) ? -1 : FRAG_PLACE_WISH;
	}
	for (size_t i = f->cursor; i < f->td->seen_count; i++) {
		const struct frag_evidence *e = &f->td->seen[i];

		if (e->kind != FRAG_SEEN_SEGMENT_MAP || e->stream != stream ||
		    follow_range_at(f, e->addr) != f->ranges_count)
			continue;
		*addr = e->addr;
		return add_range(f, e->addr, bytes) ? -1 : FRAG_PLACE_WISH;
	}
	return -1;
}

static int place_page(struct follow *f, uint64_t bytes)
{
	const struct frag_evidence *e;

	if (f->restoring)
		return -1;
	e = expected(f);
	if (e && e->kind == FRAG_SEEN_SEGMENT_MAP)
		return -1;
	note_refusal(f, bytes);
	return FRAG_OOM;
}

int follow_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct follow *f = ctx;

	switch (kind) {
	case FRAG_CALL_MALLOC:
		return place_segment(f, bytes, addr);
	case FRAG_CALL_RESERVE:
		return place_range(f, bytes, addr);
	case FRAG_CALL_CREATE:
		return place_page(f, bytes);
	default:
		return -1;
	}
}
