/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains the first difference: finds the missing fact that would lead to the recorded event.
 */
#include "resolve.h"

#include <frag/torch.h>

#include "trace/build/build.h"
#include "torch_rule_list.inc"

/* ---- the initial state ------------------------------------------------------------------ */

#define SLACK FRAG_MIB /* most that a block of the large pool may have beyond its rounded request */
#define UNIT 512

/* The initial block that ends where `at` begins and could be longer, or NULL. *whole: it took all
 * free memory there when it was handed out. */
static struct frag_initial_block *block_before(const struct frag_trace_dev *td, frag_addr_t at,
					       bool *whole)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		const struct frag_initial_segment *g = &td->initial_segments[i];

		*whole = follow_never_splits(td, g->pool);
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

/*
 * Does a longer initial block explain the difference (FOLLOW_ADDR)? Then corrects its size. A block
 * of the large pool may have up to 1 MiB beyond its request, and the reader starts with the minimum.
 * If the recording served a request elsewhere, although the replay uses the space after such a
 * block, less of it was free: the block is longer, by just enough that the request does not fit.
 * Example: 3 MiB seem free behind a block, a request of 2.9 MiB went elsewhere: the block has more
 * than 0.1 MiB of them. Never changes a block with a recorded end. O(events).
 */
static bool explain_length(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
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

/* The lowest initial pages above `at` in reservations for such requests, or NULL. */
static struct frag_initial_segment *pages_above(const struct frag_trace_dev *td, frag_addr_t at,
						uint32_t stream, bool small)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		struct frag_initial_segment *g = &td->initial_segments[i];

		if (g->expandable && g->range_addr > at && g->stream == stream && g->small == small)
			return g;
	}
	return NULL;
}

/* Pages were mapped outside of all reservations, although one had room: an initial reservation
 * above begins there, if possible: its first pages may have been returned before. True: a base has
 * been lowered. */
static bool explain_start(struct frag_trace_dev *td, const struct frag_trace_settings *settings,
			  uint64_t range_bytes, const struct follow_report *rep)
{
	struct frag_initial_segment *g;
	uint64_t bytes;

	if (rep->diff != FOLLOW_SEGMENT || rep->seen >= td->seen_count ||
	    td->seen[rep->seen].kind != FRAG_SEEN_SEGMENT_MAP || rep->want == FRAG_NO_ADDR)
		return false;
	bytes = frag_torch_round(td->events[rep->event].bytes, settings->roundup);
	g = pages_above(td, rep->want, td->seen[rep->seen].stream, bytes <= FRAG_MIB);
	if (!g || g->range_addr - rep->want >= range_bytes)
		return false;
	g->range_addr = rep->want;
	return true;
}

/* ---- releases, completions, pools -------------------------------------------------------- */

static bool grew(const struct frag_trace_dev *td, uint64_t event)
{
	for (size_t s = resolve_first_seen(td, event); s < td->seen_count; s++) {
		if (td->seen[s].before != event)
			return false;
		if (td->seen[s].kind == FRAG_SEEN_SEGMENT_ALLOC ||
		    td->seen[s].kind == FRAG_SEEN_SEGMENT_MAP)
			return true;
	}
	return false;
}

/* Frees that completed just before a growing malloc completed inside its synchronisation. */
static bool hold_completions(struct frag_trace_dev *td, uint64_t event)
{
	bool learnt = false;

	for (uint64_t i = event; i-- > 0 && td->events[i].kind == FRAG_EV_FREE_COMPLETED;) {
		learnt |= !(td->events[i].flags & FRAG_EVF_AT_SYNC);
		td->events[i].flags |= FRAG_EVF_AT_SYNC;
	}
	return learnt;
}

/* The run of trims around an event, as evidence [*first, *end). */
static void trim_run(const struct frag_trace_dev *td, uint64_t event, size_t *first, size_t *end)
{
	uint64_t from = event, to = event;

	while (from && td->events[from - 1].kind == FRAG_EV_TRIM)
		from--;
	while (to + 1 < td->events_count && td->events[to + 1].kind == FRAG_EV_TRIM)
		to++;
	*first = resolve_first_seen(td, from);
	*end = resolve_first_seen(td, to + 1);
	while (*first < *end && !frag_seen_is_release(&td->seen[*first]))
		(*first)++;
	while (*end > *first && !frag_seen_is_release(&td->seen[*end - 1]))
		(*end)--;
}

/* With these settings, a malloc never returns only part of its cache in its own order. */
static bool whole_caches_only(const struct frag_trace_settings *s)
{
	return !s->present || (s->max_split_bytes == UINT64_MAX && !(s->gc_threshold > 0));
}

/* Are segments of equal size returned in the order of their addresses? */
static bool by_address(const struct frag_trace_dev *td)
{
	return td->source_release < FRAG_TORCH_SINCE_ORDER_BY_BLOCK;
}

/*
 * Learns at once what all releases show for certain; otherwise each would need a round. Releases of
 * several pools before a malloc were an empty_cache, because a retry returns only the default
 * pools.
 */
static int learn_breaks(struct resolve *r, bool *learnt, struct frag_err *err)
{
	const struct frag_trace_dev *td = r->td;

	if (r->breaks_learnt || !whole_caches_only(r->settings) || !by_address(td))
		return 0;
	for (size_t s = 0, end; s < td->seen_count; s = end) {
		uint64_t event = td->seen[s].before;
		bool one = false;

		for (end = s; end < td->seen_count && td->seen[end].before == event &&
			      frag_seen_is_release(&td->seen[end]);)
			end++;
		if (end == s) {
			end++;
			continue;
		}
		FRAG_TRY(pools_learn_breaks(&r->pools, s, end, &one, err));
		if (one && event < td->events_count && td->events[event].kind != FRAG_EV_TRIM)
			r->trim_before[event] = true;
		*learnt |= one;
	}
	r->breaks_learnt = true;
	return 0;
}

static int explain_trim(struct resolve *r, const struct follow_report *rep, bool *learnt,
			struct frag_err *err)
{
	size_t first, end;
	uint32_t got;

	FRAG_TRY(resolve_know_pools(r, err));
	FRAG_TRY(learn_breaks(r, learnt, err));
	if (*learnt)
		return 0;
	trim_run(r->td, rep->event, &first, &end);
	*learnt = pools_learn_run(&r->pools, first, end);
	if (*learnt || rep->got == FRAG_NO_ADDR)
		return 0;
	/* returned here but kept in reality: it is not in the emptied pool */
	got = pools_at(&r->pools, rep->got, rep->event);
	if (r->td->events[rep->event].pool == 0) {
		*learnt = pools_pin(&r->pools, got, false);
		return 0;
	}
	first = resolve_first_seen(r->td, rep->event);
	while (first < end && !frag_seen_is_release(&r->td->seen[first]))
		first++;
	if (first == end)
		return 0;
	return pools_differ(&r->pools, r->pools.of_seen[first], got, learnt, err);
}

static int explain_pools(struct resolve *r, const struct follow_report *rep, bool *learnt,
			 struct frag_err *err)
{
	FRAG_TRY(resolve_know_pools(r, err));
	FRAG_TRY(learn_breaks(r, learnt, err));
	if (*learnt || rep->want == FRAG_NO_ADDR || rep->got == FRAG_NO_ADDR)
		return 0;
	return pools_differ(&r->pools, pools_at(&r->pools, rep->want, rep->event),
			    pools_at(&r->pools, rep->got, rep->event), learnt, err);
}

/*
 * A malloc returned a segment here that it kept in reality. Garbage collection and the retry affect
 * only the default pools. So the segment is private, unless all releases of the malloc were an
 * earlier empty_cache.
 */
static int explain_release(struct resolve *r, const struct follow_report *rep, bool *learnt,
			   struct frag_err *err)
{
	size_t first, end;

	if (resolve_leading_releases(r->td, rep->event, &first, &end) &&
	    !r->trim_before[rep->event] && !r->pools_known) {
		r->trim_before[rep->event] = *learnt = true;
		return 0;
	}
	FRAG_TRY(resolve_know_pools(r, err));
	*learnt = pools_pin(&r->pools, pools_at(&r->pools, rep->got, rep->event), false);
	if (!*learnt && end > first && !r->trim_before[rep->event])
		r->trim_before[rep->event] = *learnt = true;
	return 0;
}

int resolve_explain(struct resolve *r, const struct follow_report *rep, bool *learnt,
		    struct frag_err *err)
{
	uint8_t kind =
		rep->event < r->td->events_count ? r->td->events[rep->event].kind : FRAG_EV_COUNT;
	size_t first, end;

	*learnt = false;
	if (rep->diff == FOLLOW_SAME || kind == FRAG_EV_COUNT)
		return 0;
	if (kind == FRAG_EV_TRIM)
		return explain_trim(r, rep, learnt, err);
	if (kind != FRAG_EV_ALLOC && kind != FRAG_EV_REFUSED)
		return 0;
	if (rep->diff == FOLLOW_SEGMENT && rep->got_release)
		return explain_release(r, rep, learnt, err);
	if (resolve_leading_releases(r->td, rep->event, &first, &end) &&
	    !r->trim_before[rep->event]) {
		r->trim_before[rep->event] = *learnt = true;
		return 0;
	}
	if (r->initial_sizes && explain_length(r->td, r->settings, rep)) {
		r->sizes_changed = *learnt = true;
		return 0;
	}
	if (explain_start(r->td, r->settings, r->total_bytes + r->total_bytes / 8, rep)) {
		*learnt = true;
		return 0;
	}
	if (grew(r->td, rep->event) || kind == FRAG_EV_REFUSED)
		*learnt = hold_completions(r->td, rep->event);
	/* served from (or mapped into) another segment, which is in another pool */
	if (!*learnt && (rep->diff == FOLLOW_ADDR || rep->diff == FOLLOW_SEGMENT))
		return explain_pools(r, rep, learnt, err);
	return 0;
}

int resolve_know_pools(struct resolve *r, struct frag_err *err)
{
	if (r->pools_known)
		return 0;
	FRAG_TRY(pools_init(&r->pools, r->td, r->total_bytes, err));
	r->pools_known = true;
	return 0;
}
