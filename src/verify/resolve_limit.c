/* SPDX-License-Identifier: Apache-2.0 */
/* In which direction a memory limit is wrong, and retries that no limit explains. */
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

#include "trace/build/build.h"

uint64_t resolve_segment_bytes(const struct frag_trace_settings *settings, uint64_t bytes)
{
	uint64_t rounded = frag_torch_round(bytes, settings->roundup);

	if (rounded <= FRAG_MIB)
		return FRAG_PAGE;
	return rounded < 10 * FRAG_MIB ? frag_torch_large_segment(settings)
				       : frag_round_up(rounded, FRAG_PAGE);
}

/* Garbage collection with `held` bytes requires a limit below this; UINT64_MAX: any limit. */
static uint64_t collection_edge(const struct resolve *r, uint64_t held)
{
	double edge = (double)held / r->settings->gc_threshold;

	return r->settings->gc_threshold > 0 && edge < 1e18 ? (uint64_t)edge : UINT64_MAX;
}

/* Bytes that an event's request tests against the limit: the segment that it would take. */
static uint64_t tested_bytes(const struct resolve *r, uint64_t event)
{
	return resolve_segment_bytes(r->settings, r->td->events[event].bytes);
}

/*
 * The recorded allocator stopped here, by its limit or to collect garbage, so the tried limit is
 * too large. Unless no limit could do this: then it was an empty_cache.
 */
static bool stopped_before(struct resolve *r, const struct follow_refusal *f)
{
	uint64_t refused = f->begin_bytes + tested_bytes(r, f->event) - 1;
	uint64_t collected = collection_edge(r, f->begin_bytes), high = 0;

	if (refused >= r->t->low_bytes)
		high = FRAG_MIN(refused, r->limit_bytes - 1);
	if (collected != UINT64_MAX && collected >= r->t->low_bytes)
		high = FRAG_MAX(high, FRAG_MIN(collected, r->limit_bytes - 1));
	if (!high || f->held_bytes + f->bytes > r->total_bytes)
		return false;
	r->t->outcome = RESOLVE_TOO_LARGE;
	r->t->high_bytes = FRAG_MIN(r->t->high_bytes, high);
	return true;
}

/* The replay returns or refuses memory, the recording did not: the tried limit is too small. */
static bool stops_early(struct resolve *r, const struct follow_report *rep)
{
	bool early =
		(rep->diff == FOLLOW_SEGMENT && rep->got_release) || rep->diff == FOLLOW_REFUSED;
	uint64_t refused, edge, low = UINT64_MAX;

	if (!early || rep->event >= r->td->events_count || r->limit_bytes == UINT64_MAX ||
	    (r->td->events[rep->event].kind != FRAG_EV_ALLOC &&
	     r->td->events[rep->event].kind != FRAG_EV_REFUSED))
		return false;
	refused = rep->begin_bytes + tested_bytes(r, rep->event);
	edge = collection_edge(r, rep->begin_bytes);
	if (refused > r->limit_bytes)
		low = refused;
	if (edge != UINT64_MAX && edge >= r->limit_bytes)
		low = FRAG_MIN(low, FRAG_MAX(edge, r->limit_bytes + 1));
	if (low == UINT64_MAX)
		return false;
	r->t->outcome = RESOLVE_TOO_SMALL;
	r->t->low_bytes = FRAG_MAX(r->t->low_bytes, low);
	return true;
}

bool resolve_wrong_limit(struct resolve *r, const struct follow_report *rep)
{
	if (!r->t->bracket)
		return false;
	for (size_t i = 0; i < rep->refusals_count; i++)
		if (stopped_before(r, &rep->refusals[i]))
			return true;
	return stops_early(r, rep);
}

/* ---- retries that nothing forced ---- */

static bool forced(const struct resolve *r, const struct follow_refusal *f)
{
	uint64_t capacity = r->total_bytes;

	if (f->held_bytes + f->bytes > capacity || !f->synced || !f->served)
		return true;
	if (r->limit_bytes != UINT64_MAX)
		return false; /* the policy would have refused without asking the driver */
	/* unknown limit: forces a retry only above what the recording reached elsewhere */
	return f->held_bytes + f->bytes > r->peak_seen_bytes;
}

bool resolve_unforced_retries(struct resolve *r, const struct follow_report *rep)
{
	bool learnt = false;
	size_t first, end;

	for (size_t i = 0; i < rep->refusals_count; i++) {
		const struct follow_refusal *f = &rep->refusals[i];

		if (forced(r, f) || !resolve_leading_releases(r->td, f->event, &first, &end))
			continue;
		r->trim_before[f->event] = learnt = true;
	}
	return learnt;
}
