/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites the events of a recording after a round has learnt what releases were. Evidence moves
 * with its events and never changes its order.
 */
#include "resolve.h"

#include "lib/bisect.h"
#include "lib/grow.h"
#include "trace/build/build.h"

size_t resolve_first_seen(const struct frag_trace_dev *td, uint64_t event)
{
	size_t at;

	FRAG_BISECT(at, 0, td->seen_count, td->seen[at].before < event);
	return at;
}

bool resolve_leading_releases(const struct frag_trace_dev *td, uint64_t event, size_t *first,
			      size_t *end)
{
	size_t s = resolve_first_seen(td, event);

	while (s < td->seen_count && !frag_seen_is_segment(&td->seen[s]))
		s++;
	*first = s;
	while (s < td->seen_count && td->seen[s].before == event &&
	       frag_seen_is_release(&td->seen[s]))
		s++;
	*end = s;
	return *end > *first;
}

uint64_t resolve_segment_bytes(const struct frag_trace_settings *settings, uint64_t bytes)
{
	uint64_t rounded = frag_torch_round(bytes, settings->roundup);

	if (rounded <= FRAG_MIB)
		return FRAG_PAGE;
	return rounded < 10 * FRAG_MIB ? frag_torch_large_segment(settings)
				       : frag_round_up(rounded, FRAG_PAGE);
}

/* ---- rebuilding the events with trims ---- */

struct rebuild {
	struct resolve *r;
	struct frag_event *events;
	frag_addr_t *addrs;
	size_t count, cap, addrs_cap;
};

static int emit(struct rebuild *b, const struct frag_event *e, frag_addr_t addr,
		struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(b->events, b->count, b->cap, "resolve: events", err));
	FRAG_TRY(FRAG_GROW(b->addrs, b->count, b->addrs_cap, "resolve: events", err));
	b->events[b->count] = *e;
	b->addrs[b->count++] = addr;
	return 0;
}

/* Does the last event continue as a trim of this pool? */
static bool trim_goes_on(const struct rebuild *b, const struct frag_event *e)
{
	const struct frag_event *last = b->count ? &b->events[b->count - 1] : NULL;

	return last && last->kind == FRAG_EV_TRIM && last->pool == e->pool &&
	       last->flags == e->flags;
}

/* TRIM events for the releases [first, end): one for each stretch of one pool. */
static int emit_trims(struct rebuild *b, size_t first, size_t end, const struct frag_event *like,
		      uint8_t flags, struct frag_err *err)
{
	struct resolve *r = b->r;

	for (size_t s = first; s < end;) {
		uint16_t pool = pools_of(&r->pools, r->pools.of_seen[s]);
		struct frag_event e = {
			.kind = FRAG_EV_TRIM, .pool = pool, .time_us = like->time_us, .flags = flags
		};

		if (!trim_goes_on(b, &e))
			FRAG_TRY(emit(b, &e, FRAG_NO_ADDR, err));
		for (; s < end; s++) {
			if (pools_of(&r->pools, r->pools.of_seen[s]) != pool)
				break;
			r->td->seen[s].before = b->count - 1;
		}
	}
	return 0;
}

static int rebuild_event(struct rebuild *b, size_t i, size_t *s, struct frag_err *err)
{
	struct frag_trace_dev *td = b->r->td;
	const struct frag_event *e = &td->events[i];
	size_t first = *s, end;
	bool trim = e->kind == FRAG_EV_TRIM;

	/* the releases that belong to a trim: all of a TRIM, the leading ones of other events */
	while (first < td->seen_count && td->seen[first].before == i &&
	       !frag_seen_is_segment(&td->seen[first]))
		td->seen[first++].before = b->count;
	end = first;
	if (trim || b->r->trim_before[i])
		while (end < td->seen_count && td->seen[end].before == i &&
		       frag_seen_is_release(&td->seen[end]))
			end++;
	if (trim && end == first)
		FRAG_TRY(emit(b, e, FRAG_NO_ADDR, err)); /* returned nothing: unchanged */
	else
		FRAG_TRY(emit_trims(b, first, end, e, trim ? e->flags : b->r->guess, err));
	for (*s = end; *s < td->seen_count && td->seen[*s].before == i; (*s)++)
		td->seen[*s].before = b->count - (trim ? 1 : 0);
	return trim ? 0 : emit(b, e, td->addrs[i], err);
}

int resolve_rebuild(struct resolve *r, struct frag_err *err)
{
	struct frag_trace_dev *td = r->td;
	struct rebuild b = { .r = r };
	bool *marks;
	size_t s = 0;
	int rc = 0;

	for (size_t i = 0; i < td->events_count && !rc; i++)
		rc = rebuild_event(&b, i, &s, err);
	for (; s < td->seen_count && !rc; s++)
		td->seen[s].before = b.count;
	marks = rc ? NULL : frag_host_calloc(b.count + 1, sizeof(*marks));
	if (!rc && !marks)
		rc = frag_fail_nomem(err, "resolve: marks");
	if (rc) {
		FRAG_FREE(b.events, b.addrs);
		return rc;
	}
	frag_host_free(r->trim_before);
	r->trim_before = marks;
	FRAG_FREE(td->events, td->addrs);
	td->events = b.events;
	td->addrs = b.addrs;
	td->events_count = b.count;
	return 0;
}

void resolve_undo_guesses(struct frag_trace_dev *td)
{
	size_t to = 0, s = 0;

	for (size_t i = 0; i < td->events_count; i++) {
		bool drop =
			td->events[i].kind == FRAG_EV_TRIM && td->events[i].flags & FRAG_EVF_UNSURE;

		for (; s < td->seen_count && td->seen[s].before == i; s++)
			td->seen[s].before = to;
		if (drop)
			continue;
		td->events[to] = td->events[i];
		td->addrs[to++] = td->addrs[i];
	}
	for (; s < td->seen_count; s++)
		td->seen[s].before = to;
	td->events_count = to;
}
