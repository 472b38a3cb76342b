/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling what a recording leaves open, by following it: at the first
 * difference there is one thing the file did not say that explains it; write it
 * down and follow again.
 *
 *   - releases in front of a malloc were an empty_cache, not its own retry;
 *   - frees completed in the synchronisation inside a malloc, not before it;
 *   - a block that was there at the start is longer (ends.h);
 *   - two segments belong to different pools (pools.h).
 *
 * What follows without a difference is exactly what was recorded, whatever
 * the guesses on the way were. The events that may be followed are counted: some for each of
 * the recording, and some to begin with. A file that asks for more is left as far as it came.
 */
#include <frag/replay.h>

#include <stdlib.h>
#include <string.h>

#include "ends.h"
#include "pools.h"
#include "resolve.h"
#include "trace/build/build.h"

/* Steps that all rounds may take together: per event of the recording, and beside. */
#define STEPS_PER_EVENT 64
#define STEPS_MIN (8u << 20)

struct resolve {
	struct frag_trace_dev *td;
	const struct frag_trace_settings *settings;
	const struct frag_policy_spec *spec;
	const struct frag_sim_config *card;
	uint64_t total_bytes, limit_bytes;
	struct resolve_try *t;
	struct pools pools;
	bool pools_known;
	bool *trim_before;	  /* [events_count + 1]: releases of this event become a TRIM */
	uint64_t peak_seen_bytes; /* largest total the recording reached */
	uint64_t steps_left;
	uint64_t *initial_sizes; /* as read; NULL = the sizes stay */
	bool sizes_changed, breaks_learnt;
};

static size_t first_seen_of(const struct frag_trace_dev *td, uint64_t event)
{
	size_t lo = 0, hi = td->seen_count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (td->seen[mid].before < event)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Segment releases that stand first among the evidence of an event: [*first, *end). */
static bool leading_releases(const struct frag_trace_dev *td, uint64_t event, size_t *first,
			     size_t *end)
{
	size_t s = first_seen_of(td, event);

	while (s < td->seen_count && !follow_is_segment(&td->seen[s]))
		s++;
	*first = s;
	while (s < td->seen_count && td->seen[s].before == event && follow_is_release(&td->seen[s]))
		s++;
	*end = s;
	return *end > *first;
}

static bool grew(const struct frag_trace_dev *td, uint64_t event)
{
	for (size_t s = first_seen_of(td, event); s < td->seen_count; s++) {
		if (td->seen[s].before != event)
			return false;
		if (td->seen[s].kind == FRAG_SEEN_SEGMENT_ALLOC ||
		    td->seen[s].kind == FRAG_SEEN_SEGMENT_MAP)
			return true;
	}
	return false;
}

/* ---- rebuilding the events with trims put in ---- */

struct rebuild {
	struct resolve *r;
	struct frag_event *events;
	frag_addr_t *addrs;
	size_t count, cap;
};

static int emit(struct rebuild *b, const struct frag_event *e, frag_addr_t addr,
		struct frag_err *err)
{
	if (b->count == b->cap) {
		size_t cap = b->cap + b->cap / 2 + 16;
		struct frag_event *events = frag_host_realloc(b->events, cap, sizeof(*events));
		frag_addr_t *addrs;

		if (!events)
			return frag_fail_nomem(err, "resolve: events");
		b->events = events;
		addrs = frag_host_realloc(b->addrs, cap, sizeof(*addrs));
		if (!addrs)
			return frag_fail_nomem(err, "resolve: events");
		b->addrs = addrs;
		b->cap = cap;
	}
	b->events[b->count] = *e;
	b->addrs[b->count++] = addr;
	return 0;
}

/* Does the last event go on as a trim of this pool? */
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

	/* the releases that belong to a trim: all of a TRIM's, the leading ones of others */
	while (first < td->seen_count && td->seen[first].before == i &&
	       !follow_is_segment(&td->seen[first]))
		td->seen[first++].before = b->count;
	end = first;
	if (trim || b->r->trim_before[i])
		while (end < td->seen_count && td->seen[end].before == i &&
		       follow_is_release(&td->seen[end]))
			end++;
	if (trim && end == first)
		FRAG_TRY(emit(b, e, FRAG_NO_ADDR, err)); /* gave nothing back: kept as it is */
	else
		FRAG_TRY(emit_trims(b, first, end, e, trim ? e->flags : FRAG_EVF_UNSURE, err));
	for (*s = end; *s < td->seen_count && td->seen[*s].before == i; (*s)++)
		td->seen[*s].before = b->count - (trim ? 1 : 0);
	return trim ? 0 : emit(b, e, td->addrs[i], err);
}

/*
 * Writes the events anew: trims of several pools are cut into one each, and
 * releases marked in trim_before become trims.
 */
static int rebuild(struct resolve *r, struct frag_err *err)
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
		frag_host_free(b.events);
		frag_host_free(b.addrs);
		return rc;
	}
	frag_host_free(r->trim_before);
	r->trim_before = marks;
	frag_host_free(td->events);
	frag_host_free(td->addrs);
	td->events = b.events;
	td->addrs = b.addrs;
	td->events_count = b.count;
	return 0;
}

/* Trims that an earlier resolve guessed go back to where they were. */
static void undo_guesses(struct frag_trace_dev *td)
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

/* ---- explaining a difference ---- */

static int know_pools(struct resolve *r, struct frag_err *err)
{
	/* instances are counted in event numbers: anew after each rebuild */
	if (r->pools_known)
		return 0;
	FRAG_TRY(pools_init(&r->pools, r->td, r->total_bytes, err));
	r->pools_known = true;
	return 0;
}

/* Frees that completed right before a malloc that grew: inside its synchronisation. */
static bool hold_completions(struct frag_trace_dev *td, uint64_t event)
{
	bool news = false;

	for (uint64_t i = event; i-- > 0 && td->events[i].kind == FRAG_EV_FREE_COMPLETED;) {
		news |= !(td->events[i].flags & FRAG_EVF_AT_SYNC);
		td->events[i].flags |= FRAG_EVF_AT_SYNC;
	}
	return news;
}

/* The run of trims around an event, as evidence [*first, *end). */
static void trim_run(const struct frag_trace_dev *td, uint64_t event, size_t *first, size_t *end)
{
	uint64_t from = event, to = event;

	while (from && td->events[from - 1].kind == FRAG_EV_TRIM)
		from--;
	while (to + 1 < td->events_count && td->events[to + 1].kind == FRAG_EV_TRIM)
		to++;
	*first = first_seen_of(td, from);
	*end = first_seen_of(td, to + 1);
	while (*first < *end && !follow_is_release(&td->seen[*first]))
		(*first)++;
	while (*end > *first && !follow_is_release(&td->seen[*end - 1]))
		(*end)--;
}

/* With these settings no malloc gives back only some of its cache, in an order of its own. */
static bool whole_caches_only(const struct frag_trace_settings *s)
{
	return !s->present || (s->max_split_bytes == UINT64_MAX && !(s->gc_threshold > 0));
}

/* What all trims show for certain, at once: there may be many, and each is a round otherwise. */
static int learn_breaks(struct resolve *r, bool *news, struct frag_err *err)
{
	size_t first, end;

	for (uint64_t i = 0; i < r->td->events_count; i++) {
		if (r->td->events[i].kind != FRAG_EV_TRIM)
			continue;
		trim_run(r->td, i, &first, &end);
		FRAG_TRY(pools_learn_breaks(&r->pools, first, end, news, err));
		while (i + 1 < r->td->events_count && r->td->events[i + 1].kind == FRAG_EV_TRIM)
			i++;
	}
	r->breaks_learnt = true;
	return 0;
}

static int explain_trim(struct resolve *r, const struct follow_report *rep, bool *news,
			struct frag_err *err)
{
	size_t first, end;
	uint32_t got;

	FRAG_TRY(know_pools(r, err));
	if (!r->breaks_learnt && whole_caches_only(r->settings))
		FRAG_TRY(learn_breaks(r, news, err));
	if (*news)
		return 0;
	trim_run(r->td, rep->event, &first, &end);
	*news = pools_learn_run(&r->pools, first, end);
	if (*news || rep->got == FRAG_NO_ADDR)
		return 0;
	/* given back here, kept in reality: it is not in the pool that was emptied */
	got = pools_at(&r->pools, rep->got, rep->event);
	if (r->td->events[rep->event].pool == 0) {
		*news = pools_pin(&r->pools, got, false);
		return 0;
	}
	first = first_seen_of(r->td, rep->event);
	while (first < end && !follow_is_release(&r->td->seen[first]))
		first++;
	if (first == end)
		return 0;
	return pools_differ(&r->pools, r->pools.of_seen[first], got, news, err);
}

static int explain_pools(struct resolve *r, const struct follow_report *rep, bool *news,
			 struct frag_err *err)
{
	FRAG_TRY(know_pools(r, err));
	if (rep->want == FRAG_NO_ADDR || rep->got == FRAG_NO_ADDR)
		return 0;
	return pools_differ(&r->pools, pools_at(&r->pools, rep->want, rep->event),
			    pools_at(&r->pools, rep->got, rep->event), news, err);
}

/*
 * A malloc gave back here what it kept in reality. Garbage collection and the
 * retry touch the default pools only: unless all its releases were an
 * empty_cache before it, the segment is private.
 */
static int explain_release(struct resolve *r, const struct follow_report *rep, bool *news,
			   struct frag_err *err)
{
	size_t first, end;

	if (leading_releases(r->td, rep->event, &first, &end) && !r->trim_before[rep->event] &&
	    !r->pools_known) {
		r->trim_before[rep->event] = *news = true;
		return 0;
	}
	FRAG_TRY(know_pools(r, err));
	*news = pools_pin(&r->pools, pools_at(&r->pools, rep->got, rep->event), false);
	if (!*news && end > first && !r->trim_before[rep->event])
		r->trim_before[rep->event] = *news = true;
	return 0;
}

static int explain(struct resolve *r, const struct follow_report *rep, bool *news,
		   struct frag_err *err)
{
	uint8_t kind =
		rep->event < r->td->events_count ? r->td->events[rep->event].kind : FRAG_EV_COUNT;
	size_t first, end;

	*news = false;
	if (rep->diff == FOLLOW_SAME || kind == FRAG_EV_COUNT)
		return 0;
	if (kind == FRAG_EV_TRIM)
		return explain_trim(r, rep, news, err);
	if (kind != FRAG_EV_ALLOC && kind != FRAG_EV_REFUSED)
		return 0;
	if (rep->diff == FOLLOW_SEGMENT && rep->got_release)
		return explain_release(r, rep, news, err);
	if (leading_releases(r->td, rep->event, &first, &end) && !r->trim_before[rep->event]) {
		r->trim_before[rep->event] = *news = true;
		return 0;
	}
	if (r->initial_sizes && ends_explain(r->td, r->settings, rep)) {
		r->sizes_changed = *news = true;
		return 0;
	}
	if (grew(r->td, rep->event) || kind == FRAG_EV_REFUSED)
		*news = hold_completions(r->td, rep->event);
	/* served from (or mapped into) another segment: that one is in another pool */
	if (!*news && (rep->diff == FOLLOW_ADDR || rep->diff == FOLLOW_SEGMENT))
		return explain_pools(r, rep, news, err);
	return 0;
}

/* ---- retries that nothing forced ---- */

static bool forced(const struct resolve *r, const struct follow_refusal *f)
{
	uint64_t capacity = r->total_bytes;

	if (f->held_bytes + f->bytes > capacity || !f->synced || !f->served)
		return true;
	if (r->limit_bytes != UINT64_MAX)
		return false; /* the policy would have refused by itself, without asking */
	/* no limit known: believable only where the recording never went */
	return f->held_bytes + f->bytes > r->peak_seen_bytes;
}

static bool unforced_retries(struct resolve *r, const struct follow_report *rep)
{
	bool news = false;
	size_t first, end;

	for (size_t i = 0; i < rep->refusals_count; i++) {
		const struct follow_refusal *f = &rep->refusals[i];

		if (forced(r, f) || !leading_releases(r->td, f->event, &first, &end))
			continue;
		r->trim_before[f->event] = news = true;
	}
	return news;
}

static bool any_trim_before(const struct resolve *r)
{
	for (size_t i = 0; i < r->td->events_count; i++)
		if (r->trim_before[i])
			return true;
	return false;
}

/* Writes down what has been learnt. Instances keep their numbers: evidence does not move. */
static int apply(struct resolve *r, struct frag_err *err)
{
	bool trims = any_trim_before(r);

	if (!trims && !r->pools_known)
		return 0;
	FRAG_TRY(know_pools(r, err));
	FRAG_TRY(pools_colour(&r->pools, err));
	FRAG_TRY(rebuild(r, err));
	/* events have moved: births and deaths by their evidence */
	for (size_t i = 0; i < r->pools.count; i++)
		r->pools.list[i].died = UINT64_MAX;
	for (size_t s = 0, i; s < r->td->seen_count; s++) {
		if ((i = r->pools.of_seen[s]) == POOLS_NONE)
			continue;
		if (!follow_is_release(&r->td->seen[s])) {
			if (r->td->seen[s].addr == r->pools.list[i].addr)
				r->pools.list[i].born = r->td->seen[s].before;
		} else if (r->td->seen[s].kind == FRAG_SEEN_SEGMENT_FREE) {
			r->pools.list[i].died = r->td->seen[s].before + 1;
		}
	}
	return 0;
}

/* Only what the final snapshot says of pools is known; the rest is found again. */
static int forget_guessed_pools(struct resolve *r, struct frag_err *err)
{
	FRAG_TRY(know_pools(r, err));
	return apply(r, err);
}

/* ---- which way the limit is wrong ---- */

/* A limit that garbage collection at `held` bytes shows not to be reached, or to be. */
static uint64_t collection_edge(const struct resolve *r, uint64_t held)
{
	double edge = (double)held / r->settings->gc_threshold;

	return r->settings->gc_threshold > 0 && edge < 1e18 ? (uint64_t)edge : UINT64_MAX;
}

/* What the request of an event is tested for against the limit: the segment it would take. */
static uint64_t tested_bytes(const struct resolve *r, uint64_t event)
{
	return resolve_segment_bytes(r->settings, r->td->events[event].bytes);
}

/*
 * The recorded allocator stopped here: by its limit, or to collect garbage. The one tried is too
 * large. Not where no limit could have done it: that was an empty_cache.
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

/* The allocator tried gives back or refuses, the recorded one did not: too small. */
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

static bool wrong_limit(struct resolve *r, const struct follow_report *rep)
{
	if (!r->t->bracket)
		return false;
	for (size_t i = 0; i < rep->refusals_count; i++)
		if (stopped_before(r, &rep->refusals[i]))
			return true;
	return stops_early(r, rep);
}

/* A round costs what it follows, and a look at everything where something was learnt. */
static bool affordable(struct resolve *r, uint64_t followed)
{
	uint64_t cost = followed + (r->td->events_count + r->td->seen_count) / 4 + 1;

	if (cost > r->steps_left)
		return false;
	r->steps_left -= cost;
	return true;
}

/* *same: nothing differs, and nothing was refused that need not be. */
static void note_outcome(struct resolve *r, const struct follow_report *rep)
{
	struct resolve_try *t = r->t;

	t->outcome = rep->diff == FOLLOW_SAME ? RESOLVE_SAME : RESOLVE_DIFFERENT;
	t->event = rep->event;
	t->refusals = 0;
	for (size_t i = 0; i < rep->refusals_count; i++) {
		if (rep->refusals[i].held_bytes + rep->refusals[i].bytes > r->total_bytes)
			continue;
		if (!t->refusals++ && rep->diff == FOLLOW_SAME)
			t->event = rep->refusals[i].event;
	}
	memcpy(t->text, rep->text, sizeof(t->text));
}

static int rounds(struct resolve *r, bool *same, struct frag_err *err)
{
	for (*same = false;;) {
		struct follow_report rep;
		uint64_t followed;
		bool news;
		int rc = 0;

		FRAG_TRY(follow_recording(r->td, r->spec, r->card, r->limit_bytes, &rep, err));
		followed = rep.diff == FOLLOW_SAME ? r->td->events_count : rep.event;
		note_outcome(r, &rep);
		if (wrong_limit(r, &rep))
			news = false;
		else if (rep.diff == FOLLOW_SAME)
			news = unforced_retries(r, &rep);
		else
			rc = explain(r, &rep, &news, err);
		*same = !rc && r->t->outcome == RESOLVE_SAME && !news;
		follow_report_release(&rep);
		FRAG_TRY(rc);
		if (!news || !affordable(r, followed))
			return 0;
		FRAG_TRY(apply(r, err));
	}
}

/* Begins again with what the file says. */
static int start_over(struct resolve *r, struct frag_err *err)
{
	if (r->pools_known)
		pools_release(&r->pools);
	r->pools_known = r->breaks_learnt = r->sizes_changed = false;
	undo_guesses(r->td);
	frag_host_free(r->trim_before);
	r->trim_before = frag_host_calloc(r->td->events_count + 1, sizeof(*r->trim_before));
	if (!r->trim_before)
		return frag_fail_nomem(err, "resolve");
	return r->td->pools_count > 1 ? forget_guessed_pools(r, err) : 0;
}

static int save_initial_sizes(struct resolve *r, struct frag_err *err)
{
	size_t n = r->td->initial.blocks_count;

	if (!r->td->initial.segments_count)
		return 0;
	r->initial_sizes = frag_host_alloc((n + 1) * sizeof(*r->initial_sizes));
	if (!r->initial_sizes)
		return frag_fail_nomem(err, "resolve");
	for (size_t i = 0; i < n; i++)
		r->initial_sizes[i] = r->td->initial_blocks[i].bytes;
	return 0;
}

/* The sizes of initial blocks did not explain it: once more without touching them. */
static int retry_without_sizes(struct resolve *r, struct frag_err *err)
{
	bool same;

	for (size_t i = 0; i < r->td->initial.blocks_count; i++)
		r->td->initial_blocks[i].bytes = r->initial_sizes[i];
	frag_host_free(r->initial_sizes);
	r->initial_sizes = NULL;
	FRAG_TRY(start_over(r, err));
	return rounds(r, &same, err);
}

/* A trace that was settled before (a .cft) may need nothing. */
static int settle(struct resolve *r, struct frag_err *err)
{
	bool same;

	if (r->td->pools_count > 1) {
		struct follow_report rep;

		FRAG_TRY(follow_recording(r->td, r->spec, r->card, r->limit_bytes, &rep, err));
		note_outcome(r, &rep);
		same = rep.diff == FOLLOW_SAME && !wrong_limit(r, &rep);
		follow_report_release(&rep);
		if (same)
			return 0;
	}
	FRAG_TRY(start_over(r, err));
	FRAG_TRY(save_initial_sizes(r, err));
	FRAG_TRY(rounds(r, &same, err));
	return same || !r->sizes_changed || r->t->outcome > RESOLVE_DIFFERENT
		       ? 0
		       : retry_without_sizes(r, err);
}

uint64_t frag_recorded_peak(const struct frag_trace_dev *td)
{
	uint64_t total = 0, peak;

	for (size_t i = 0; i < td->initial.segments_count; i++)
		total += td->initial.segments[i].bytes;
	peak = total;
	for (size_t s = 0; s < td->seen_count; s++) {
		if (!follow_is_segment(&td->seen[s]))
			continue;
		if (follow_is_release(&td->seen[s]))
			total -= FRAG_MIN(total, td->seen[s].bytes);
		else
			total += td->seen[s].bytes;
		peak = FRAG_MAX(peak, total);
	}
	return peak;
}

int resolve_try(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		struct resolve_try *t, struct frag_err *err)
{
	struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	struct resolve r = { .td = &trace->devs[dev],
			     .settings = &trace->settings,
			     .card = card ? card : &h200,
			     .limit_bytes = t->limit_bytes,
			     .t = t };
	struct frag_policy_spec *spec;
	int rc;

	t->outcome = RESOLVE_DIFFERENT;
	/* without evidence there is nothing to follow; with settings of an allocator that is
	 * not known here, nothing can be */
	if (!r.td->has_evidence || follow_spec(trace, NULL, &spec, NULL))
		return 0;
	r.spec = spec;
	r.total_bytes =
		r.card->total_bytes ? r.card->total_bytes : frag_gpu_find("h200")->total_bytes;
	r.peak_seen_bytes = frag_recorded_peak(r.td);
	r.steps_left = t->steps;
	rc = settle(&r, err);
	t->steps = r.steps_left;
	if (r.pools_known)
		pools_release(&r.pools);
	frag_host_free(r.trim_before);
	frag_host_free(r.initial_sizes);
	frag_policy_spec_destroy(spec);
	return rc;
}

uint64_t resolve_segment_bytes(const struct frag_trace_settings *settings, uint64_t bytes)
{
	const char *key = "large_segment_size_mb:";
	const char *at = settings->conf ? strstr(settings->conf, key) : NULL;
	uint64_t large = at ? strtoull(at + strlen(key), NULL, 10) : 20;
	uint64_t rounded = frag_torch_round(bytes, settings->roundup);

	if (rounded <= FRAG_MIB)
		return FRAG_PAGE;
	return rounded < 10 * FRAG_MIB ? FRAG_MIN(large, 1u << 20) * FRAG_MIB
				       : frag_round_up(rounded, FRAG_PAGE);
}

uint64_t resolve_steps(const struct frag_trace_dev *td)
{
	return STEPS_MIN + STEPS_PER_EVENT * (uint64_t)td->events_count;
}

int frag_resolve(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		 uint64_t limit_bytes, struct frag_err *err)
{
	struct resolve_try t = { .limit_bytes = limit_bytes,
				 .steps = resolve_steps(&trace->devs[dev]) };

	return resolve_try(trace, dev, card, &t, err);
}
