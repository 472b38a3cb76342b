/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains the first difference: finds the missing fact that would lead to the recorded event.
 */
#include "resolve_internal.h"

#include <frag/torch.h>

#include "reservation_starts.h"
#include "initial_lengths.h"
#include "torch_rule_list.inc"

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
	while (*first < *end && !follow_is_release(&td->seen[*first]))
		(*first)++;
	while (*end > *first && !follow_is_release(&td->seen[*end - 1]))
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
			      follow_is_release(&td->seen[end]);)
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
	while (first < end && !follow_is_release(&r->td->seen[first]))
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
	if (r->initial_sizes && initial_lengths_explain(r->td, r->settings, rep)) {
		r->sizes_changed = *learnt = true;
		return 0;
	}
	if (reservation_starts_explain(r->td, r->settings, r->total_bytes + r->total_bytes / 8,
				       rep)) {
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
