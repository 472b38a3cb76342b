/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: if live bytes and the request would have fitted under the limit, it was
 * fragmentation; otherwise the program needs more. No placement is without holes, so "fitted" means
 * with 1 % of the limit to spare, unless the free bytes in segments would have held the request on
 * their own. In a first step, or where the recording ends there with more live than ever, what
 * comes later is unknown: settings that win less than a tenth of the limit are no remedy then.
 */
#include "diagnose.h"

#include <string.h>

#include <frag/opt.h>

#include "recording/recording.h"

#define SPARE_PART 0.01
#define WIN_PART 0.1
#define STEP_ALLOCS 32u /* at least, where no step is marked */
#define GIVEN_BACK 0.1	/* of the peak: after a step, a program has given back more */

bool frag_oom_is_last(const struct frag_case *c, const struct frag_refusal *r)
{
	const struct frag_trace_dev *dev = frag_events_dev(&c->events);
	uint64_t i = r->event + 1;

	while (i < dev->events_count && dev->events[i].kind != FRAG_EV_ALLOC)
		i++;
	return i >= dev->events_count;
}

/* c: NULL: nothing is known of what came before and after. */
bool frag_oom_is_fragmentation(const struct frag_case *c, const struct frag_refused_at *then)
{
	uint64_t live = then->r.live_bytes, reserved = then->reserved_bytes;
	uint64_t request = frag_live_bytes(then->r.bytes), limit = then->limit_bytes;
	uint64_t spare = reserved > live ? reserved - live : 0;

	if (live + request > limit)
		return false;
	if (c && (double)(limit - live) < WIN_PART * (double)limit &&
	    (frag_oom_in_first_step(c, &then->r) ||
	     (frag_oom_is_last(c, &then->r) && live + request > c->history.peak_live)))
		return false;
	return spare >= request || (double)(limit - live - request) >= SPARE_PART * (double)limit;
}

bool frag_growth_is_reason(const struct frag_checkup *c, const struct frag_finding *f,
			   const struct frag_refused_at *then)
{
	double pinned = (double)then->reserved_bytes - (double)then->r.live_bytes;

	return frag_growth_is_held(c, f, then) &&
	       (!frag_oom_is_fragmentation(&c->in, then) ||
		pinned < (double)frag_live_bytes(then->r.bytes) ||
		frag_growth_until(c, f, then->r.event) > FRAG_FAR_LARGER * pinned);
}

struct tally {
	size_t count, worst; /* worst: number of the refusal that the finding describes */
};

int frag_finding_holders(struct frag_checkup *c, uint64_t event, struct frag_finding *f,
			 struct frag_err *err)
{
	size_t n = c->in.history.stacks_count, best = 0;
	FRAG_AUTO_FREE double *live = NULL;
	double *site, total = 0;

	if (!frag_sites_known(&c->in.sites)) {
		if (frag_stacks_hint(c->in.events.trace))
			SAY("; record with stacks to see who holds it (%s)",
			    frag_stacks_hint(c->in.events.trace));
		return 0;
	}
	FRAG_TRY_CALLOC(live, n + c->in.sites.count, "diagnosis", err);
	site = live + n;
	FRAG_TRY(frag_history_live_at(&c->in.events, event, n, live, err));
	for (size_t i = 0; i < n; i++) {
		site[frag_site_of(&c->in.sites, (uint32_t)i)] += live[i];
		total += live[i];
	}
	for (size_t i = 1; i < c->in.sites.count; i++)
		best = site[i] > site[best] || !best ? i : best;
	if (!best || site[best] <= 0)
		return 0;
	SAY("; most is held by %s: %s, %.0f %% of live memory", c->in.sites.names[best],
	    FRAG_BYTES((uint64_t)site[best]), 100 * site[best] / total);
	frag_finding_number(f, "held_bytes", site[best]);
	frag_finding_number(f, "held_ratio", site[best] / total);
	return 0;
}

bool frag_oom_in_first_step(const struct frag_case *c, const struct frag_refusal *r)
{
	const struct frag_history *h = &c->history;

	if (frag_events_dev(&c->events)->initial.blocks_count) /* it began late */
		return false;
	if (h->first_mark != UINT64_MAX)
		return r->event < h->first_mark;
	return h->from != FRAG_STEPS_PERIOD && h->allocs >= STEP_ALLOCS &&
	       (double)h->given_back < GIVEN_BACK * (double)h->peak_live;
}

/* What grew until then and is the reason; NULL: nothing. */
static const struct frag_finding *reason_of(const struct frag_checkup *c,
					    const struct frag_refused_at *then,
					    const struct frag_findings *out)
{
	for (size_t i = 0; i < out->count; i++)
		if ((out->list[i].kind == FRAG_FOUND_LEAK ||
		     out->list[i].kind == FRAG_FOUND_GROWTH) &&
		    !strcmp(out->list[i].about, c->about) &&
		    frag_growth_is_reason(c, &out->list[i], then))
			return &out->list[i];
	return NULL;
}

/* Bytes live at a refusal that were already so at the one before, by the same outermost line. */
static int held_over(const struct frag_checkup *c, const struct frag_refused_at *then,
		     uint64_t *bytes, struct frag_err *err)
{
	const struct frag_trace *trace = c->in.events.trace;
	const struct frag_trace_dev *td = frag_events_dev(&c->in.events);
	FRAG_AUTO_FREE uint64_t *held = NULL;
	size_t n, m;
	const uint32_t *outer = frag_stack_frames(trace, then[-1].r.stack, &n);

	*bytes = 0;
	FRAG_TRY_CALLOC(held, td->slots_count + 1, "diagnosis", err);
	for (uint64_t i = 0; n && i < then->r.event; i++) {
		const struct frag_event *e = &td->events[i];
		const uint32_t *frames;

		if (e->kind >= FRAG_EV_TRIM)
			continue;
		*bytes -= held[e->slot];
		held[e->slot] = 0;
		if (i >= then[-1].r.event || e->kind != FRAG_EV_ALLOC)
			continue;
		frames = frag_stack_frames(trace, e->stack, &m);
		held[e->slot] = m && frames[m - 1] == outer[n - 1] ? frag_live_bytes(e->bytes) : 0;
		*bytes += held[e->slot];
	}
	return 0;
}

static int tell(struct frag_checkup *c, const struct tally *t, enum frag_finding_kind kind,
		struct frag_findings *out, struct frag_err *err)
{
	const struct frag_refused_at *then = &c->refused.list[t->worst];
	const struct frag_refusal *r = &then->r;
	uint64_t limit = then->limit_changed ? then->limit_bytes : c->in.limit_bytes;
	uint64_t reserved = then->reserved_bytes, live = r->live_bytes;
	uint64_t request = frag_live_bytes(r->bytes), held = 0;
	struct frag_finding *f = frag_findings_add(out, kind, c->about);
	const struct frag_finding *reason = reason_of(c, then, out);

	frag_finding_line(f, frag_sites_line(&c->in.sites, r->stack));
	SAY("a request for %s%s%s was refused while %s was live", FRAG_BYTES(r->bytes),
	    f->line ? " at " : "", f->line ? f->line : "", FRAG_BYTES(live));
	if (limit != UINT64_MAX)
		SAY("; together they %s the %s %s",
		    live + request > limit		   ? "exceed"
		    : kind == FRAG_FOUND_OOM_FRAGMENTATION ? "fit under"
							   : "nearly fill",
		    c->in.neighbours.count		      ? "rest of the card,"
		    : c->in.card_full && !then->limit_changed ? "card's"
		    : c->in.limit_guessed		      ? "assumed limit of"
							      : "limit of",
		    FRAG_BYTES(limit));
	if (kind == FRAG_FOUND_OOM_FRAGMENTATION && reserved > live)
		SAY(", but %s is free in segments that live blocks pin",
		    FRAG_BYTES(reserved - live));
	else if (limit != UINT64_MAX && live + request <= limit)
		SAY("; live memory fills %.0f %% of it, settings win at most %s",
		    100 * (double)live / (double)limit, FRAG_BYTES(limit - live - request));
	if (c->in.neighbours.count)
		SAY("; %s",
		    frag_neighbours_text(out->texts, c->in.events.trace, &c->in.neighbours));
	if (reason)
		SAY("; what grows until then is the reason (%s)", reason->verdict);
	else if (frag_oom_in_first_step(&c->in, r))
		SAY("; it ran out in its first step");
	if (!reason && t->worst)
		FRAG_TRY(held_over(c, then, &held, err));
	if (2 * held > live)
		SAY("; %s of that was allocated by the attempt that was refused at event %llu: the "
		    "traceback of its exception may hold it; try again only after the except "
		    "block, without a reference to it",
		    FRAG_BYTES(held), (unsigned long long)then[-1].r.event);
	FRAG_TRY(frag_finding_holders(c, r->event, f, err));
	if (t->count > 1)
		SAY("; %zu requests were refused for this reason", t->count);
	frag_finding_number(f, "event", (double)r->event);
	frag_finding_number(f, "request_bytes", (double)r->bytes);
	frag_finding_number(f, "live_bytes", (double)live);
	frag_finding_number(f, "reserved_bytes", (double)reserved);
	if (reserved > live)
		frag_finding_number(f, "pinned_bytes", (double)(reserved - live));
	if (limit != UINT64_MAX)
		frag_finding_number(f, "limit_bytes", (double)limit);
	frag_finding_number(f, "refused_count", (double)t->count);
	return 0;
}

int frag_find_oom(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	size_t n = c->refused.count;
	struct tally tally[2] = { { 0 } }; /* fragmentation, needed */

	for (size_t i = 0; i < n; i++) {
		const struct frag_refused_at *then = &c->refused.list[i];
		bool frag = frag_oom_is_fragmentation(&c->in, then) && !reason_of(c, then, out);

		tally[!frag].count++;
		tally[!frag].worst = i; /* the last: what a program dies of */
	}
	/* the kind of the last refusal decides; the other is a finding, too, unless it is rare */
	if (tally[0].count && (tally[0].worst + 1 == n || tally[0].count * 2 > tally[1].count))
		FRAG_TRY(tell(c, &tally[0], FRAG_FOUND_OOM_FRAGMENTATION, out, err));
	if (tally[1].count && (tally[1].worst + 1 == n || tally[1].count * 2 > tally[0].count))
		FRAG_TRY(tell(c, &tally[1], FRAG_FOUND_OOM_NEEDED, out, err));
	return 0;
}
