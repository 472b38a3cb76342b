/* SPDX-License-Identifier: Apache-2.0 */
/* One device of a recording and how it is replayed; see case.h. */
#include "case.h"

#include <stdio.h>

#include "recording/recording.h"

/* An unknown limit is at least what was reserved, and not much more if requests were refused. */
bool frag_case_guess_limit(struct frag_case *c)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->events);
	uint64_t peak = td->has_evidence ? frag_recorded_peak(td) : 0;

	if (!peak)
		return false;
	c->limit_bytes = peak;
	c->limit_guessed = true;
	c->restores = false;
	return true;
}

/* Without a GPU the pretended card refused: its size was the limit, without what other processes
 * held of it. Another card has its own. */
static bool find_card(struct frag_case *c)
{
	struct frag_sim_config *card = &c->target.card, own = *card;

	if (!frag_estimate_card(c->events.trace, &own))
		return false;
	c->other_card = c->target.card_given;
	*card = c->other_card ? *card : own;
	c->limit_bytes = card->total_bytes - card->context_bytes;
	c->neighbours = frag_estimate_neighbours(c->events.trace, c->events.dev);
	c->limit_bytes -= FRAG_MIN(c->limit_bytes, c->neighbours.bytes);
	c->card_full |= c->neighbours.count != 0;
	return true;
}

/* A log tells no limit. Its pool held what was live at most, or as much as its own allocator takes
 * for what came before the first refused request. */
static int guess_by_replay(struct frag_case *c, struct frag_err *err)
{
	uint64_t tries[] = { c->history.peak_live, UINT64_MAX };
	bool served = false;

	if (!frag_own_allocators(c->events.trace->format, NULL) || !c->history.refusals[0].event)
		return 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(tries) && !served; i++) {
		FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

		c->limit_bytes = tries[i];
		FRAG_TRY(frag_case_replay(c, &s, err));
		FRAG_TRY(frag_cursor_to(&s, c->history.refusals[0].event - 1, err));
		served = !s.run->ooms;
		c->limit_bytes = i ? frag_cursor_reserved(&s) : tries[i];
	}
	c->limit_guessed = true;
	return 0;
}

static int find_limit(struct frag_case *c, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->events);

	c->card_full = !c->target.limit.text && td->settled.card_full;
	c->limit_bytes = frag_target_limit(&c->target);
	if (c->limit_bytes == UINT64_MAX) {
		c->limit_bytes = frag_settled_limit(c->events.trace, c->events.dev);
		if (td->settled.identical && td->settled.limit_source == FRAG_LIMIT_INFERRED) {
			c->limit_low_bytes = td->settled.limit_low_bytes;
			c->limit_high_bytes = td->settled.limit_high_bytes;
		}
	}
	if (c->limit_bytes == UINT64_MAX && c->history.refusals_count && find_card(c))
		return 0;
	c->restores = c->recorded && frag_settled_restores(td, &c->target.card, c->limit_bytes);
	if (c->limit_bytes == UINT64_MAX && c->history.refusals_count && !frag_case_guess_limit(c))
		return guess_by_replay(c, err);
	return 0;
}

int frag_case_open(struct frag_case *c, enum frag_site_by by, const char *frame,
		   struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->events);

	FRAG_TRY(frag_history_make(&c->events, &c->history, err));
	FRAG_TRY(frag_sites_init(&c->sites, c->events.trace, by, frame, err));
	c->recorded &= !c->target.torch || c->target.torch == td->source_release;
	if (c->recorded)
		c->recorded_peak_bytes = frag_target_recorded_peak(&c->target, td);
	return find_limit(c, err);
}

void frag_case_close(struct frag_case *c)
{
	frag_sites_release(&c->sites);
	frag_history_release(&c->history);
}

void frag_case_run_options(const struct frag_case *c, struct frag_run_options *run)
{
	frag_target_run_options(&c->target, run);
	run->limit_bytes = c->limit_bytes;
	run->limit_changes = !c->target.limit.text && !c->target.card_given;
	run->skip_oom = true;
	run->restore = c->restores;
}

int frag_case_replay(const struct frag_case *c, struct frag_cursor *s, struct frag_err *err)
{
	struct frag_run_options run;

	frag_case_run_options(c, &run);
	return frag_cursor_open(s, &c->events, c->spec, &c->target.card, &run, err);
}

const char *frag_case_step_text(const struct frag_case *c, size_t step, bool in, char *buf,
				size_t size)
{
	const struct frag_history *h = &c->history;
	const char *before = in ? "in " : "";

	if (h->from == FRAG_STEPS_NONE)
		snprintf(buf, size, "%sthe recording", before);
	else if (step >= h->count)
		snprintf(buf, size, "%safter the last step", in ? "" : "the part ");
	else if (h->from == FRAG_STEPS_WINDOWS)
		snprintf(buf, size, "%spart %zu of %zu", before, step + 1, h->count);
	else
		snprintf(buf, size, "%sstep %zu", before, step * h->stride + 1);
	return buf;
}

uint64_t frag_case_step_number(const struct frag_case *c, size_t step)
{
	const struct frag_history *h = &c->history;

	return !frag_steps_known(h) || step >= h->count ? UINT64_MAX : step * h->stride + 1;
}

/* ---- which requests it refuses ---------------------------------------------------------- */

/* Without a limit the card is full: a request of the replay shows its size, a recorded one not. */
static uint64_t limit_then(const struct frag_case *c, const struct frag_cursor *s, bool own)
{
	uint64_t set = s->dev->limit_bytes;
	struct frag_device_info info;

	if (set || c->limit_bytes != UINT64_MAX)
		return FRAG_MIN(c->limit_bytes, set ?: UINT64_MAX);
	frag_dev_info(s->dev, &info);
	return own ? info.total_bytes - info.context_bytes : frag_cursor_reserved(s);
}

/* The event before the cursor was refused. */
static void note(const struct frag_case *c, const struct frag_cursor *s, bool own,
		 struct frag_refusals *out)
{
	const struct frag_event *e = &frag_events_dev(&c->events)->events[s->next - 1];

	if (out->count == FRAG_REFUSALS_KEPT)
		return;
	out->list[out->count++] = (struct frag_refused_at){
		.r = { .event = s->next - 1,
		       .time_us = e->time_us,
		       .bytes = e->bytes,
		       .step = frag_history_step(&c->history, s->next - 1),
		       .live_bytes = s->run->allocated + s->run->waiting,
		       .stack = e->stack,
		       .stream = e->stream,
		       .pool = e->pool },
		.reserved_bytes = frag_cursor_reserved(s),
		.limit_bytes = limit_then(c, s, own),
		.limit_changed = s->dev->limit_bytes && s->dev->limit_bytes < c->limit_bytes,
	};
}

/* A limit that was only guessed is no reason to refuse what was served when recorded. */
int frag_refusals_find(const struct frag_case *c, struct frag_refusals *out, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	bool as_recorded =
		c->recorded && !c->other_card && frag_target_limit(&c->target) == UINT64_MAX;
	bool ended = as_recorded && c->limit_guessed;
	size_t next = 0;

	*out = (struct frag_refusals){ 0 };
	FRAG_TRY(frag_case_replay(c, &s, err));
	for (uint64_t i = 0; i < c->history.events; i++) {
		uint64_t ooms = s.run->ooms, again = s.run->refused_again;
		bool recorded;

		FRAG_TRY(frag_cursor_to(&s, i, err));
		recorded =
			next < FRAG_MIN(c->history.refusals_count, (uint64_t)FRAG_REFUSALS_KEPT) &&
			c->history.refusals[next].event == i;
		next += recorded;
		if (recorded ? as_recorded || s.run->refused_again != again
			     : s.run->ooms != ooms && !ended)
			note(c, &s, !recorded, out);
		ended |= !recorded && s.run->ooms != ooms;
		if (ended && !as_recorded)
			return 0;
	}
	return 0;
}
