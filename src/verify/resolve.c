/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a recording leaves open by following it: one fact missing from the file explains the
 * first difference; record that fact and follow again.
 *
 *   - releases before a malloc were an empty_cache, not its own retry;
 *   - frees completed in the synchronisation inside a malloc, not before it;
 *   - an initial block is longer;
 *   - an initial reservation begins lower;
 *   - two segments belong to different pools (pools.h).
 *
 * A recording that can be followed without a difference is exactly reproduced, whatever the guesses
 * on the way.
 *
 * Cost. Each round begins at the first event, because the state of a policy cannot be copied, and
 * new knowledge changes events before the difference, too (a segment's pool applies to all its
 * requests). Followed events are counted over all rounds and limits: at most STEPS_PER_EVENT per
 * event of the file, plus STEPS_MIN. Beyond that the recording is undetermined. Facts that show in
 * many places are learnt at once (learn_breaks). docs/architecture.md says what recordings take.
 */
#include <frag/replay.h>

#include <string.h>

#include "resolve.h"
#include "trace/build/build.h"

/* Total steps of all rounds: per event of the recording, plus a constant. */
#define STEPS_PER_EVENT 64
#define STEPS_MIN (8u << 20)

/* ---- in which direction a memory limit is wrong ---- */

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

/* Is the tried limit proven wrong? Then narrows the interval in r->t. */
static bool wrong_limit(struct resolve *r, const struct follow_report *rep)
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
	uint64_t context = r->td->card.context_bytes ?: r->card->context_bytes;
	uint64_t capacity =
		r->total_bytes - (r->t->unlimited && context < r->total_bytes ? context : 0);

	if (f->held_bytes + f->bytes > capacity || !f->synced || !f->served)
		return true;
	if (r->limit_bytes != UINT64_MAX)
		return false; /* the policy would have refused without asking the driver */
	/* unknown limit: forces a retry only above what the recording reached elsewhere */
	return !r->t->unlimited && f->held_bytes + f->bytes > r->peak_seen_bytes;
}

/* Retries that neither limit nor card forced were an empty_cache. True: found some. */
static bool unforced_retries(struct resolve *r, const struct follow_report *rep)
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

/* ---- rounds ---- */

static bool any_trim_before(const struct resolve *r)
{
	for (size_t i = 0; i < r->td->events_count; i++)
		if (r->trim_before[i])
			return true;
	return false;
}

/* Applies what was learnt. Instances keep their numbers, because evidence does not move. */
static int apply(struct resolve *r, struct frag_err *err)
{
	bool trims = any_trim_before(r);

	if (!trims && !r->pools_known)
		return 0;
	FRAG_TRY(resolve_know_pools(r, err));
	FRAG_TRY(pools_colour(&r->pools, err));
	FRAG_TRY(resolve_rebuild(r, err));
	/* events have moved: recompute births and deaths from their evidence */
	for (size_t i = 0; i < r->pools.count; i++)
		r->pools.list[i].died = UINT64_MAX;
	for (size_t s = 0, i; s < r->td->seen_count; s++) {
		if ((i = r->pools.of_seen[s]) == POOLS_NONE)
			continue;
		if (!frag_seen_is_release(&r->td->seen[s])) {
			if (r->td->seen[s].addr == r->pools.list[i].addr)
				r->pools.list[i].born = r->td->seen[s].before;
		} else if (r->td->seen[s].kind == FRAG_SEEN_SEGMENT_FREE) {
			r->pools.list[i].died = r->td->seen[s].before + 1;
		}
	}
	return 0;
}

/* Keeps only the pools of the final snapshot; the rest is found again. */
static int forget_guessed_pools(struct resolve *r, struct frag_err *err)
{
	FRAG_TRY(resolve_know_pools(r, err));
	return apply(r, err);
}

/* *same: nothing differs, and nothing was refused without need. */
static void note_outcome(struct resolve *r, const struct follow_report *rep)
{
	struct resolve_try *t = r->t;

	t->outcome = rep->diff == FOLLOW_SAME ? RESOLVE_SAME : RESOLVE_DIFFERENT;
	t->open = rep->open;
	t->event = rep->event;
	t->refusals = 0;
	for (size_t i = 0; i < rep->refusals_count; i++) {
		if (rep->refusals[i].held_bytes + rep->refusals[i].bytes > r->total_bytes ||
		    (t->unlimited && r->td->events[rep->refusals[i].event].kind == FRAG_EV_REFUSED))
			continue;
		if (!t->refusals++ && rep->diff == FOLLOW_SAME)
			t->event = rep->refusals[i].event;
	}
	t->allocs_same = rep->allocs_same;
	t->segments_same = rep->segments_same;
	t->ooms_same = rep->ooms_same;
	memcpy(t->text, rep->text, sizeof(t->text));
}

/* One round. It costs the followed events, plus a pass over everything for learning. */
static int follow(struct resolve *r, struct follow_report *rep, struct frag_err *err)
{
	uint64_t cost = (r->td->events_count + r->td->seen_count) / 4 + 1;

	FRAG_TRY(follow_recording(r->td, r->spec, r->card, r->limit_bytes, rep, err));
	cost += rep->diff == FOLLOW_SAME ? r->td->events_count : rep->event;
	r->steps_left -= FRAG_MIN(cost, r->steps_left);
	note_outcome(r, rep);
	return 0;
}

static int rounds(struct resolve *r, bool *same, struct frag_err *err)
{
	for (*same = false;;) {
		struct follow_report rep;
		bool learnt;
		int rc = 0;

		FRAG_TRY(follow(r, &rep, err));
		if (wrong_limit(r, &rep))
			learnt = false;
		else if (rep.diff == FOLLOW_SAME)
			learnt = unforced_retries(r, &rep);
		else
			rc = resolve_explain(r, &rep, &learnt, err);
		*same = !rc && r->t->outcome == RESOLVE_SAME && !learnt;
		follow_report_release(&rep);
		FRAG_TRY(rc);
		if (!learnt)
			return 0;
		if (!r->steps_left) {
			r->t->stopped = true;
			return 0;
		}
		FRAG_TRY(apply(r, err));
	}
}

/* Starts again from the file's state. */
static int start_over(struct resolve *r, struct frag_err *err)
{
	if (r->pools_known)
		pools_release(&r->pools);
	r->pools_known = r->breaks_learnt = r->sizes_changed = false;
	resolve_undo_guesses(r->td);
	frag_host_free(r->trim_before);
	FRAG_TRY_CALLOC(r->trim_before, r->td->events_count + 1, "resolve", err);
	return r->td->pools_count > 1 ? forget_guessed_pools(r, err) : 0;
}

static int save_initial_sizes(struct resolve *r, struct frag_err *err)
{
	size_t n = r->td->initial.blocks_count;

	if (!r->td->initial.segments_count)
		return 0;
	r->initial_sizes = frag_host_alloc((n + 1) * sizeof(*r->initial_sizes));
	FRAG_CHECK_ALLOC(r->initial_sizes, "resolve", err);
	for (size_t i = 0; i < n; i++)
		r->initial_sizes[i] = r->td->initial_blocks[i].bytes;
	return 0;
}

/* The lengths of initial blocks did not explain it: try again without changing them. */
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

/* A trace that was already settled (a .cft) may need nothing. */
static int settle(struct resolve *r, struct frag_err *err)
{
	bool same;

	if (r->td->pools_count > 1) {
		struct follow_report rep;

		FRAG_TRY(follow(r, &rep, err));
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

	if (td->settled.checked || !td->has_evidence)
		return td->settled.peak_bytes;
	for (size_t i = 0; i < td->initial.segments_count; i++)
		total += td->initial.segments[i].bytes;
	peak = total;
	for (size_t s = 0; s < td->seen_count; s++) {
		if (!frag_seen_is_segment(&td->seen[s]))
			continue;
		if (frag_seen_is_release(&td->seen[s]))
			total -= FRAG_MIN(total, td->seen[s].bytes);
		else
			total += td->seen[s].bytes;
		peak = FRAG_MAX(peak, total);
	}
	return peak;
}

uint64_t resolve_total_bytes(const struct frag_trace_dev *td, const struct frag_sim_config *card)
{
	if (td->card.total_bytes || (card && card->total_bytes))
		return td->card.total_bytes ?: card->total_bytes;
	return frag_gpu_find("h200")->total_bytes;
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
	t->open = t->stopped = false;
	/* nothing to follow without evidence; cannot follow settings of an unknown allocator */
	if (!r.td->has_evidence || follow_spec(trace, NULL, &spec, NULL))
		return 0;
	r.spec = spec;
	r.total_bytes = resolve_total_bytes(r.td, card);
	r.guess = r.settings->limit_known && t->unlimited ? 0 : FRAG_EVF_UNSURE;
	r.peak_seen_bytes = frag_recorded_peak(r.td);
	r.steps_left = t->steps;
	rc = settle(&r, err);
	t->steps = r.steps_left;
	if (r.pools_known)
		pools_release(&r.pools);
	FRAG_FREE(r.trim_before, r.initial_sizes);
	frag_policy_spec_destroy(spec);
	return rc;
}

uint64_t resolve_steps(const struct frag_trace_dev *td)
{
	return STEPS_MIN + STEPS_PER_EVENT * (uint64_t)td->events_count;
}
