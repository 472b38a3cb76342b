/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: event -> policy -> metrics.
 *
 * Per event: one call of the policy, one record in the live table, one add to the time series. No
 * allocation, no hash look-up, no clock call (host latency is sampled every SAMPLE_EVERY-th call,
 * and only on request).
 */
#include "run.h"
#include "lib/grow.h"

#include <frag/clock.h>

#define HOT __attribute__((always_inline)) inline

#define SAMPLE_EVERY 61 /* prime, so that sampling does not align with the trace's own rhythm */

/* ---- pending frees ---- */

void frag_run_wait(struct frag_run *run, uint32_t slot)
{
	struct frag_run_slot *s = &run->slots[slot];

	s->state = SLOT_PENDING;
	run->waiting += s->b.granted;
	s->prev = run->pending_last;
	s->next = FRAG_NO_SLOT;
	if (s->prev != FRAG_NO_SLOT)
		run->slots[s->prev].next = slot;
	else
		run->pending_first = slot;
	run->pending_last = slot;
}

static void pending_remove(struct frag_run *run, uint32_t slot)
{
	struct frag_run_slot *s = &run->slots[slot];

	run->waiting -= s->b.granted;
	if (s->prev != FRAG_NO_SLOT)
		run->slots[s->prev].next = s->next;
	else
		run->pending_first = s->next;
	if (s->next != FRAG_NO_SLOT)
		run->slots[s->next].prev = s->prev;
	else
		run->pending_last = s->prev;
}

static HOT int free_block(struct frag_run *run, struct frag_run_slot *s, bool careful)
{
	uint64_t before = run->dev->driver_ns;
	int rc;

	if (careful && run->contents)
		FRAG_TRY(frag_contents_free(run->contents, (uint32_t)(s - run->slots), &s->b,
					    run->events, run->err));
	s->state = SLOT_EMPTY;
	run->frees++;
	if (careful && run->sample == 1) {
		uint64_t t0 = frag_clock_ns();

		rc = run->policy.ops->free(run->policy.self, &s->b, run->err);
		frag_hist_add(&run->r.free_host_ns, frag_clock_ns() - t0);
		run->sample = SAMPLE_EVERY;
	} else {
		rc = run->policy.ops->free(run->policy.self, &s->b, run->err);
		run->sample -= careful && run->sample;
	}
	if (FRAG_LIKELY(run->dev->driver_ns == before))
		run->free_zero++;
	else
		frag_hist_add(&run->r.free_modelled_ns, run->dev->driver_ns - before);
	return rc;
}

static int complete(struct frag_run *run, uint32_t slot)
{
	pending_remove(run, slot);
	return free_block(run, &run->slots[slot], true);
}

static int complete_held(struct frag_run *run)
{
	int rc = 0;

	/* completing may call back into frag_run_sync: take the list first */
	uint32_t n = run->held_count;

	run->held_count = 0;
	for (uint32_t i = 0; i < n; i++)
		if (run->slots[run->held[i]].state == SLOT_HELD && !rc)
			rc = complete(run, run->held[i]);
	return rc;
}

void frag_run_sync(void *ctx)
{
	struct frag_run *run = ctx;
	int rc = complete_held(run);

	run->syncs++;
	while (!rc && run->pending_first != FRAG_NO_SLOT)
		rc = complete(run, run->pending_first);
	if (rc && !run->upcall_rc)
		run->upcall_rc = rc;
}

static HOT void let_go(struct frag_run *run, struct frag_run_slot *s)
{
	run->requested -= s->b.requested;
	run->bound -= frag_round_up(s->b.requested, 512);
	run->allocated -= s->b.granted;
}

/* ---- allocations ---- */

static HOT void note_class(struct frag_run *run, unsigned cls, uint64_t driver_ns)
{
	if (FRAG_LIKELY(!driver_ns))
		run->class_zero[cls]++;
	else
		frag_hist_add(&run->r.alloc_modelled_ns[cls], driver_ns);
}

static HOT int ask(struct frag_run *run, const struct frag_event *e, struct frag_block *b,
		   bool careful)
{
	struct frag_request req = { .bytes = e->bytes, .stream = e->stream, .pool = e->pool };
	uint64_t before = run->dev->driver_ns;
	int rc;

	if (careful && run->sample == 1) {
		uint64_t t0 = frag_clock_ns(), ns;

		rc = run->policy.ops->alloc(run->policy.self, &req, b, run->err);
		ns = frag_clock_ns() - t0;
		frag_hist_add(&run->r.alloc_host_ns[rc ? FRAG_CLASS_REFUSED : b->cls], ns);
		run->sample = SAMPLE_EVERY;
	} else {
		rc = run->policy.ops->alloc(run->policy.self, &req, b, run->err);
		run->sample -= careful && run->sample;
	}
	/* after the call, because a policy may write the whole block */
	b->stream = e->stream;
	b->requested = e->bytes;
	if (FRAG_LIKELY(rc >= 0))
		note_class(run, rc ? FRAG_CLASS_REFUSED : b->cls, run->dev->driver_ns - before);
	return rc;
}

/* The use of memory at a refused request. The largest hole may need a walk (charts, reports). */
static void look_refused(struct frag_run *run, uint64_t time_us, struct frag_loss *out)
{
	if (run->opt.losses)
		frag_run_look(run, time_us, out);
	else
		frag_run_loss(run, run->events, time_us, out);
}

/* An alloc that could not be served: drops its slot, and stops the run if required. */
static void drop(struct frag_run *run, const struct frag_event *e)
{
	run->slots[e->slot].state = SLOT_DROPPED;
	run->stopped = !run->opt.skip_oom;
	run->ooms++;
	if (run->r.oom.happened)
		return;
	run->r.oom = (struct frag_oom){ .happened = true,
					.event = run->events,
					.time_us = e->time_us,
					.bytes = e->bytes,
					.step = run->steps };
	look_refused(run, e->time_us, &run->r.oom.at);
}

/* A block that completes within this call passes on its slot. */
static int ask_held(struct frag_run *run, const struct frag_event *e, struct frag_run_slot *s)
{
	struct frag_block b = { 0 };
	int rc = ask(run, e, &b, true), held;

	if (rc >= 0) {
		held = complete_held(run);
		rc = held ? held : rc;
	}
	s->b = b;
	return rc;
}

static HOT int do_alloc(struct frag_run *run, const struct frag_event *e, bool careful)
{
	struct frag_run_slot *s = &run->slots[e->slot];
	uint64_t bytes = e->bytes;
	int rc;

	if (FRAG_UNLIKELY(run->restored && e->flags & FRAG_EVF_INITIAL))
		return 0;
	if (FRAG_UNLIKELY(s->state == SLOT_HELD)) {
		rc = ask_held(run, e, s);
	} else {
		FRAG_ASSERT(s->state == SLOT_EMPTY || s->state == SLOT_DROPPED);
		rc = ask(run, e, &s->b, careful);
	}
	if (FRAG_UNLIKELY(rc)) {
		if (rc != FRAG_OOM)
			return rc;
		drop(run, e);
		return 0;
	}
	if (careful && run->contents)
		FRAG_TRY(frag_contents_alloc(run->contents, e->slot, &s->b, run->events, run->err));
	s->state = SLOT_LIVE;
	run->allocs++;
	run->requested += bytes;
	run->allocated += s->b.granted;
	run->bound += frag_round_up(bytes, 512);
	if (run->bound > run->peak_bound)
		run->peak_bound = run->bound;
	return 0;
}

static int note_refused(struct frag_run *run, const struct frag_event *e, bool served)
{
	struct frag_refused *list = run->r.refused, *at;

	if (run->r.refused_count == FRAG_REFUSED_KEPT)
		return 0;
	if (!list)
		list = frag_host_calloc(FRAG_REFUSED_KEPT, sizeof(*list));
	FRAG_CHECK_ALLOC(list, "replay: refused requests", run->err);
	run->r.refused = list;
	at = &list[run->r.refused_count++];
	*at = (struct frag_refused){ .event = run->events,
				     .time_us = e->time_us,
				     .bytes = e->bytes,
				     .step = run->steps,
				     .served = served };
	if (!served)
		look_refused(run, e->time_us, &at->at);
	return 0;
}

/* Recorded as refused: also tried here, and freed at once if served. */
static int do_refused(struct frag_run *run, const struct frag_event *e)
{
	struct frag_block b = { 0 };
	int rc = ask(run, e, &b, true);

	if (!rc || rc == FRAG_OOM) {
		int noted = note_refused(run, e, !rc);

		rc = noted ? noted : rc;
	}
	if (rc == FRAG_OOM) {
		run->ooms++;
		run->refused_again++;
	}
	if (rc)
		return rc == FRAG_OOM ? 0 : rc;
	run->granted_refusals++;
	return run->policy.ops->free(run->policy.self, &b, run->err);
}

/* ---- other events ---- */

static int do_free_requested(struct frag_run *run, const struct frag_event *e)
{
	struct frag_run_slot *s = &run->slots[e->slot];

	if (s->state != SLOT_LIVE)
		return 0; /* dropped */
	let_go(run, s);
	if (run->opt.free_at_request)
		return free_block(run, s, true);
	if (run->policy.ops->free_requested)
		run->policy.ops->free_requested(run->policy.self, &s->b);
	frag_run_wait(run, e->slot);
	return 0;
}

static HOT int do_free(struct frag_run *run, const struct frag_event *e, bool careful)
{
	struct frag_run_slot *s = &run->slots[e->slot];

	if (FRAG_UNLIKELY(s->state != SLOT_LIVE)) {
		if (s->state == SLOT_PENDING || s->state == SLOT_HELD)
			return complete(run, e->slot); /* waiting, by the initial state alone */
		s->state = SLOT_EMPTY;		       /* dropped */
		return 0;
	}
	let_go(run, s);
	return free_block(run, s, careful);
}

static int do_free_completed(struct frag_run *run, const struct frag_event *e)
{
	struct frag_run_slot *s = &run->slots[e->slot];

	if (s->state == SLOT_DROPPED)
		s->state = SLOT_EMPTY;
	if (s->state == SLOT_LIVE) /* it waited before the first event */
		return do_free(run, e, true);
	if (s->state != SLOT_PENDING)
		return 0; /* already completed, by a synchronisation of this policy */
	if (!(e->flags & FRAG_EVF_AT_SYNC))
		return complete(run, e->slot);
	s->state = SLOT_HELD;
	FRAG_TRY(FRAG_GROW(run->held, run->held_count, run->held_cap, "replay: held frees",
			   run->err));
	run->held[run->held_count++] = e->slot;
	return 0;
}

static int do_trim(struct frag_run *run, const struct frag_event *e)
{
	if (!run->policy.ops->trim)
		return 0;
	return run->policy.ops->trim(run->policy.self, e->pool, run->err);
}

static int do_mark(struct frag_run *run, const struct frag_event *e)
{
	bool end = e->flags & FRAG_EVF_END;

	if (e->flags & FRAG_EVF_LIMIT) {
		run->dev->limit_bytes = run->opt.limit_changes ? e->bytes : 0;
		return 0;
	}
	run->steps += end && e->flags & FRAG_EVF_STEP;
	if (run->policy.ops->mark)
		run->policy.ops->mark(run->policy.self, !end);
	return 0;
}

/* The other kinds of event. */
static int dispatch(struct frag_run *run, const struct frag_event *e)
{
	switch (e->kind) {
	case FRAG_EV_FREE_REQUESTED:
		return do_free_requested(run, e);
	case FRAG_EV_FREE_COMPLETED:
		return do_free_completed(run, e);
	case FRAG_EV_TRIM:
		return do_trim(run, e);
	case FRAG_EV_REFUSED:
		return do_refused(run, e);
	default:
		return do_mark(run, e);
	}
}

/* ---- metrics after an event ---- */

void frag_run_loss(struct frag_run *run, uint64_t event, uint64_t time_us, struct frag_loss *out)
{
	struct frag_usage u = { 0 };
	uint64_t held;

	if (run->policy.ops->usage)
		run->policy.ops->usage(run->policy.self, &u);
	else
		frag_policy_usage_walk(&run->policy, &u);
	run->walk_cost += run->policy.ops->usage ? 1 : u.blocks_count + u.segments_count;
	held = u.allocated_bytes + u.waiting_bytes + u.non_releasable_bytes + u.releasable_bytes;
	*out = (struct frag_loss){
		.event = event,
		.time_us = time_us,
		.requested_bytes = run->requested,
		.rounding_bytes = run->allocated - run->requested,
		.waiting_bytes = run->waiting,
		.non_releasable_bytes = u.non_releasable_bytes,
		.releasable_bytes = u.releasable_bytes,
		.reserved_bytes = run->dev->reserved_bytes - run->start_reserved,
		.largest_free_bytes = u.largest_free_bytes,
	};
	if (out->reserved_bytes > held)
		out->other_bytes = out->reserved_bytes - held;
}

/*
 * A new peak of reserved bytes. Policies without counters must be walked, which may cost more than
 * the replay; then a second pass that stops at the final peak does it.
 */
static void note_peak(struct frag_run *run, uint64_t time_us)
{
	run->peak_reserved = run->dev->reserved_bytes - run->start_reserved;
	run->peak.event = run->events;
	run->peak.reserved_bytes = run->peak_reserved;
	if (run->opt.only_peaks)
		return;
	run->peak_stale = !run->policy.ops->usage && run->walk_cost > 4 * run->events + 4096;
	if (!run->peak_stale)
		frag_run_loss(run, run->events, time_us, &run->peak);
	/* a policy that needs a walk to find its largest free block */
	if (!run->peak.largest_free_bytes &&
	    run->peak.non_releasable_bytes + run->peak.releasable_bytes)
		run->peak_stale = true;
}

void frag_run_look(struct frag_run *run, uint64_t time_us, struct frag_loss *out)
{
	struct frag_usage u = { 0 };

	frag_run_loss(run, run->events, time_us, out);
	if (out->largest_free_bytes || !(out->non_releasable_bytes + out->releasable_bytes))
		return;
	frag_policy_usage_walk(&run->policy, &u);
	out->largest_free_bytes = u.largest_free_bytes;
}

/* Samples the use of the bytes: event e was the last of a window. */
static void sample_loss(struct frag_run *run, const struct frag_event *e)
{
	struct frag_loss loss;

	if (!run->opt.losses)
		return;
	frag_run_loss(run, run->rec.now.last_event, e->time_us, &loss);
	frag_series_add_loss(&run->rec, &loss);
}

static HOT void after(struct frag_run *run, const struct frag_event *e)
{
	uint64_t reserved = run->dev->reserved_bytes - run->start_reserved;
	uint64_t active = run->allocated + run->waiting;
	uint64_t us = e->time_us;

	if (us != run->last_us) {
		/* the previous state lasted until now; accurate enough at us resolution */
		if (us > run->last_us) {
			double dt = (double)(int64_t)(us - run->last_us);

			run->active_time += dt * (double)(int64_t)active;
			run->reserved_time += dt * (double)(int64_t)reserved;
		}
		run->last_us = us;
	}
	if (FRAG_UNLIKELY(reserved > run->peak_reserved))
		note_peak(run, us);
	frag_series_add(&run->rec, run->events, us, run->requested, run->allocated, active,
			reserved);
	if (FRAG_UNLIKELY(frag_series_want_loss(&run->rec)))
		sample_loss(run, e);
}

/* Events that complete what is held: the others are frees and marks. */
static bool is_request(const struct frag_event *e)
{
	return e->kind == FRAG_EV_ALLOC || e->kind == FRAG_EV_TRIM || e->kind == FRAG_EV_REFUSED;
}

static int synchronise(struct frag_run *run)
{
	FRAG_TRY(frag_dev_sync_all(run->dev, run->err));
	frag_run_sync(run);
	FRAG_TRY(run->upcall_rc);
	if (run->policy.ops->synced)
		FRAG_TRY(run->policy.ops->synced(run->policy.self, run->err));
	return 0;
}

/* One event of any kind. careful: with what is rarely asked for; false, a constant, leaves it out. */
static HOT int step(struct frag_run *run, const struct frag_event *e, bool careful)
{
	uint64_t sync_every = run->opt.sync_every, ops = run->allocs + run->frees;
	int rc;

	FRAG_ASSERT(e->slot < run->slots_count || e->kind >= FRAG_EV_TRIM);
	run->dev->now_ns = (uint64_t)e->time_us * 1000; /* else 40 bits wide */
	if (careful && run->contents)
		frag_contents_pace(run->contents, e->time_us);
	rc = e->kind == FRAG_EV_ALLOC  ? do_alloc(run, e, careful)
	     : e->kind == FRAG_EV_FREE ? do_free(run, e, careful)
				       : dispatch(run, e);
	/* this policy did not synchronise where the recorded one did, so complete it now */
	if (FRAG_UNLIKELY(run->held_count) && !rc && is_request(e))
		rc = complete_held(run);
	if (FRAG_UNLIKELY(rc || run->upcall_rc))
		return rc ? rc : run->upcall_rc;
	if (careful && sync_every && ops / sync_every != (run->allocs + run->frees) / sync_every)
		FRAG_TRY(synchronise(run));
	after(run, e);
	if (careful && run->opt.check && run->policy.ops->check)
		FRAG_TRY(run->policy.ops->check(run->policy.self, run->err));
	if (careful && run->events == run->stop_at) {
		frag_run_look(run, e->time_us, &run->peak);
		run->stopped = true;
	}
	run->events++;
	return 0;
}

static int feed(struct frag_run *run, const struct frag_event *e, const struct frag_event *end)
{
	if (run->contents || run->opt.check || run->opt.sync_every || run->sample ||
	    run->stop_at != UINT64_MAX) {
		for (; e != end && !run->stopped; e++)
			FRAG_TRY(step(run, e, true));
		return 0;
	}
	for (; e != end && !run->stopped; e++)
		FRAG_TRY(step(run, e, false));
	return 0;
}

int frag_run_feed(struct frag_run *run, const struct frag_event *events, size_t count,
		  struct frag_err *err)
{
	uint64_t t0 = frag_clock_ns();
	struct frag_err local;
	int rc;

	run->err = err ? err : &local;
	rc = feed(run, events, events + count);
	run->host_ns += frag_clock_ns() - t0;
	if (rc < 0 && err)
		frag_err_prefix(err, "policy '%s', event %llu", run->policy.ops->name,
				(unsigned long long)run->events);
	return rc;
}

bool frag_run_stopped(const struct frag_run *run)
{
	return run->stopped;
}
