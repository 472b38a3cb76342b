/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling a recording: see frag_settle. Searches for a limit between the reserved bytes and the
 * smallest refused total. Each attempt starts from the file's events, because an attempt under a
 * wrong limit finds other explanations for the effects of the limit.
 */
#include <frag/replay.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "follow.h"
#include "resolve.h"
#include "trace/build/build.h"
#include "trace/whole.h"

#define TRIES_MAX 64

/* Into *to_ptr, whose memory is used again. */
static bool copy_array(void *to_ptr, const void *from, size_t count, size_t bytes)
{
	void *to;

	memcpy(&to, to_ptr, sizeof(to));
	to = frag_host_realloc(to, count + 1, bytes);
	if (!to)
		return false;
	if (count)
		memcpy(to, from, count * bytes);
	memcpy(to_ptr, &to, sizeof(to));
	return true;
}

/* What resolving edits: each array with its count, so that none is put back without the other. */
#define EDITED(F) \
	F(events, events_count) \
	F(addrs, events_count) \
	F(seen, seen_count) \
	F(pools, pools_count) \
	F(initial_blocks, initial.blocks_count) \
	F(initial_segments, initial.segments_count)

/* From one device to another. */
static int copy(const struct frag_trace_dev *from, struct frag_trace_dev *to, struct frag_err *err)
{
#define COPY(array, count) \
	FRAG_CHECK_ALLOC(copy_array(&to->array, from->array, from->count, sizeof(*to->array)), \
			 "settle: events", err); \
	to->count = from->count;
	EDITED(COPY)
#undef COPY
	to->initial.blocks = to->initial_blocks;
	to->initial.segments = to->initial_segments;
	return 0;
}

struct settle {
	struct frag_trace *trace;
	struct frag_trace_dev *td;
	uint32_t dev;
	const struct frag_sim_config *card;
	struct frag_trace_dev saved; /* as the file has it */
	struct resolve_try t;	     /* the last attempt */
	bool strict;		     /* a limit must explain all releases, as collections show it */
	bool refused, card_full;     /* see least_limit */
};

static int attempt(struct settle *s, uint64_t limit_bytes, struct frag_err *err)
{
	FRAG_TRY(copy(&s->saved, s->td, err));
	s->t.limit_bytes = limit_bytes;
	return resolve_try(s->trace, s->dev, s->card, &s->t, err);
}

/* Identical, without being told when the driver refused memory. */
static bool explained(const struct settle *s)
{
	return s->t.outcome == RESOLVE_SAME && !s->t.refusals;
}

/* ---- the limit ---- */

/*
 * The largest total that the limit allowed: held bytes plus a segment then taken. s->refused: a
 * request was refused that the card has room for. Only that shows a limit, or a garbage collection,
 * which PyTorch does under a limit alone: a release beside a served request may be an empty_cache.
 */
static uint64_t least_limit(struct settle *s)
{
	const struct frag_trace_dev *td = s->td;
	uint64_t held = 0, least = 0, total = resolve_total_bytes(td, s->card);

	for (size_t i = 0; i < td->initial.segments_count; i++)
		held += td->initial.segments[i].bytes;
	least = held;
	for (size_t i = 0; i < td->seen_count; i++) {
		const struct frag_evidence *e = &td->seen[i];
		bool first =
			!i || td->seen[i - 1].before != e->before || frag_seen_is_release(e - 1);

		if (e->kind == FRAG_SEEN_OOM) {
			s->refused |= held + resolve_segment_bytes(&s->trace->settings, e->bytes) <=
				      total;
			s->card_full = e->addr && e->addr < e->bytes;
		}
		if (!frag_seen_is_segment(e))
			continue;
		if (frag_seen_is_release(e)) {
			held -= FRAG_MIN(held, e->bytes);
			continue;
		}
		if (first && e->before < td->events_count)
			least = FRAG_MAX(least,
					 held + resolve_segment_bytes(&s->trace->settings,
								      td->events[e->before].bytes));
		held += e->bytes;
	}
	return least;
}

/* Limits outside cannot be right. */
static void first_interval(struct settle *s)
{
	double gc = s->trace->settings.gc_threshold;
	uint64_t largest = 0;

	for (size_t i = 0; i < s->td->events_count; i++)
		largest = FRAG_MAX(largest, resolve_segment_bytes(&s->trace->settings,
								  s->td->events[i].bytes));
	s->t.low_bytes = least_limit(s);
	s->t.high_bytes = frag_recorded_peak(s->td) + largest;
	if (gc > 1e-6)
		s->t.high_bytes += (uint64_t)((double)s->t.high_bytes / gc);
}

/*
 * Tries no limit first. While something indicates a limit, tries the middle of the interval, until
 * a limit explains everything. *found: the last attempt does.
 */
static int search(struct settle *s, bool *found, struct frag_err *err)
{
	uint64_t limit = UINT64_MAX;

	first_interval(s);
	s->t.bracket = true;
	for (unsigned n = 0; n < TRIES_MAX; n++) {
		FRAG_TRY(attempt(s, limit, err));
		*found = explained(s);
		if (*found || s->t.outcome < RESOLVE_TOO_SMALL || s->t.low_bytes > s->t.high_bytes)
			break;
		limit = s->t.low_bytes + (s->t.high_bytes - s->t.low_bytes) / 2;
	}
	s->t.bracket = false;
	return 0;
}

/* ---- one device ---- */

static void note(struct settle *s, enum frag_limit_source source)
{
	const struct frag_trace_settings *set = &s->trace->settings;
	struct frag_settled *out = &s->td->settled;
	bool limited = s->t.limit_bytes != UINT64_MAX;
	const char *why = "";

	out->identical = explained(s);
	out->limit_bytes = s->t.limit_bytes;
	out->limit_source = limited ? source : FRAG_LIMIT_NONE;
	if (out->limit_source == FRAG_LIMIT_INFERRED) {
		out->limit_low_bytes = s->t.low_bytes;
		out->limit_high_bytes = s->t.high_bytes;
		if (set->limit_known && set->limit_bytes != UINT64_MAX)
			out->limit_refuted_bytes = set->limit_bytes;
	}
	out->card_full = s->card_full || (set->limit_known && set->limit_bytes == UINT64_MAX);
	out->event = s->t.event;
	out->allocs.same = s->t.allocs_same;
	out->segments.same = s->t.segments_same;
	out->ooms.same = s->t.ooms_same;
	out->undetermined = s->t.outcome != RESOLVE_SAME && (s->t.open || s->t.stopped);
	if (out->undetermined)
		why = s->t.stopped ? "too much is open to try everything ("
				   : "too little of the initial state is known (";
	snprintf(out->difference, sizeof(out->difference), "%s%.300s%s", why,
		 s->t.outcome == RESOLVE_SAME ? "" : s->t.text, *why ? ")" : "");
	out->refusals_only = s->t.outcome == RESOLVE_SAME && s->t.refusals;
	if (out->refusals_only)
		snprintf(out->difference, sizeof(out->difference),
			 "the driver refused memory %" PRIu64 " times, %s", s->t.refusals,
			 s->card_full
				 ? "as the card was full"
				 : "which no limit explains: another process may have held it");
}

static uint64_t unsure_trims(const struct frag_trace_dev *td)
{
	uint64_t n = 0;

	for (size_t i = 0; i < td->events_count; i++)
		n += td->events[i].kind == FRAG_EV_TRIM && td->events[i].flags & FRAG_EVF_UNSURE;
	return n;
}

/* Releases that the limit does not explain were calls of empty_cache, or, if it has to be strict,
 * refute it. */
static int try_limit(struct settle *s, uint64_t limit_bytes, enum frag_limit_source source,
		     bool *done, struct frag_err *err)
{
	if (s->strict)
		first_interval(s);
	s->t.bracket = s->strict;
	FRAG_TRY(attempt(s, limit_bytes, err));
	s->t.bracket = false;
	note(s, source);
	*done = explained(s);
	if (*done && limit_bytes != UINT64_MAX)
		s->td->settled.assumed_trims_count = unsure_trims(s->td);
	return 0;
}

/*
 * Tries the given limit, then the file's, then none; searches for one only where a refusal or a
 * collection shows that there was one.
 */
static int settle_limits(struct settle *s, uint64_t limit_bytes, bool only, struct frag_err *err)
{
	const struct frag_trace_settings *set = &s->trace->settings;
	bool none = set->limit_known && set->limit_bytes == UINT64_MAX, done = false;
	bool collects = set->gc_threshold > 0;

	least_limit(s); /* was a request refused? */
	s->strict = collects && !only;
	if (limit_bytes != UINT64_MAX || only)
		FRAG_TRY(try_limit(s, limit_bytes, FRAG_LIMIT_GIVEN, &done, err));
	if (done || only)
		return 0;
	if (set->limit_known && !none)
		FRAG_TRY(try_limit(s, set->limit_bytes, FRAG_LIMIT_RECORDED, &done, err));
	s->t.unlimited = !done && (none || (!s->refused && !collects));
	if (s->t.unlimited)
		FRAG_TRY(try_limit(s, UINT64_MAX, FRAG_LIMIT_NONE, &done, err));
	s->t.unlimited = false;
	if (done || (none && !collects))
		return 0;
	if (s->refused || collects)
		FRAG_TRY(search(s, &done, err));
	if (!done) /* no limit explains everything: as far as possible with the file's limit */
		FRAG_TRY(attempt(s, set->limit_known ? set->limit_bytes : UINT64_MAX, err));
	note(s, done ? FRAG_LIMIT_INFERRED : FRAG_LIMIT_RECORDED);
	return 0;
}

static int settle_device(struct settle *s, uint64_t limit_bytes, bool only, struct frag_err *err)
{
	struct frag_settled *out = &s->td->settled;
	struct frag_policy_spec *spec;
	struct frag_err unknown = { 0 };
	int rc;

	*out = (struct frag_settled){ .checked = true,
				      .limit_bytes = UINT64_MAX,
				      .peak_bytes = frag_recorded_peak(s->td) };
	out->refused_count = follow_events(s->td, FRAG_EV_REFUSED);
	for (size_t i = 0; i < s->td->events_count; i++)
		out->limits_count += (s->td->events[i].flags & FRAG_EVF_LIMIT) != 0;
	rc = follow_spec(s->trace, NULL, &spec, &unknown);
	if (rc == FRAG_ENOMEM)
		return frag_fail_nomem(err, "recorded settings");
	if (rc) {
		/* unknown allocator: cannot be followed */
		snprintf(out->difference, sizeof(out->difference), "%s", unknown.msg);
		return 0;
	}
	frag_policy_spec_destroy(spec);
	out->followed = true;
	s->t.steps = resolve_steps(s->td);
	rc = copy(s->td, &s->saved, err) ?: settle_limits(s, limit_bytes, only, err);
	frag_trace_dev_release(&s->saved);
	out->allocs.all = follow_events(s->td, FRAG_EV_ALLOC);
	out->segments.all = follow_segments(s->td);
	out->ooms.all = out->refused_count;
	return rc;
}

int frag_settle(struct frag_trace *trace, const struct frag_sim_config *card, uint64_t limit_bytes,
		bool only, struct frag_err *err)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct settle s = { .trace = trace, .td = &trace->devs[d], .dev = d, .card = card };

		if (trace->devs[d].has_evidence)
			FRAG_TRY(settle_device(&s, limit_bytes, only, err));
	}
	return 0;
}

int frag_settings_use(struct frag_trace *trace, const char *conf, struct frag_err *err)
{
	struct frag_policy_spec *spec;

	FRAG_TRY(follow_spec(trace, conf, &spec, err));
	frag_policy_spec_destroy(spec);
	return frag_trace_take_conf(trace, conf, err);
}

char *frag_settled_text(const struct frag_settled *s, char *buf, size_t size)
{
	char at[32];
	int n = 0;

	*buf = '\0';
	if (!s->checked)
		return buf;
	frag_format_bytes(s->limit_bytes, at, sizeof(at));
	if (!s->identical && s->refusals_only)
		snprintf(buf, size, "identical, but %s", s->difference);
	else if (!s->identical)
		snprintf(buf, size, "%s from event %" PRIu64 " on: %s",
			 s->undetermined ? "undetermined" : "not identical,", s->event,
			 s->difference);
	else if (s->limit_source == FRAG_LIMIT_INFERRED)
		snprintf(buf, size, "%s %s, inferred: between %s and %s; verified identical%s%s",
			 s->card_full ? "room on a full card" : "limit", at,
			 FRAG_BYTES(s->limit_low_bytes), FRAG_BYTES(s->limit_high_bytes),
			 s->limit_refuted_bytes ? "; the file says " : "",
			 s->limit_refuted_bytes ? FRAG_BYTES(s->limit_refuted_bytes) : "");
	else if (s->limit_source == FRAG_LIMIT_NONE)
		snprintf(buf, size, "verified identical");
	else
		n = snprintf(buf, size, "limit %s, as %s; verified identical", at,
			     s->limit_source == FRAG_LIMIT_GIVEN ? "given" : "recorded");
	if (n && s->assumed_trims_count)
		snprintf(buf + n, size - (size_t)n,
			 " only if %" PRIu64
			 " releases were calls of empty_cache; another limit would explain them",
			 s->assumed_trims_count);
	return buf;
}

uint64_t frag_settled_limit(const struct frag_trace *trace, uint32_t dev)
{
	const struct frag_settled *s = &trace->devs[dev].settled;

	if (s->identical)
		return s->limit_bytes;
	return trace->settings.limit_known ? trace->settings.limit_bytes : UINT64_MAX;
}

bool frag_settled_restores(const struct frag_trace_dev *td, const struct frag_sim_config *card,
			   uint64_t limit_bytes)
{
	const struct frag_settled *s = &td->settled;

	return s->identical && limit_bytes == s->limit_bytes &&
	       s->peak_bytes <= card->total_bytes - card->context_bytes;
}
