/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a case refuses; see case.h. */
#include "case.h"

/* Without a limit the card is full: a request of the replay shows its size, a recorded one not. */
static uint64_t limit_then(const struct frag_case *c, const struct frag_cursor *s, bool own)
{
	struct frag_device_info info;

	if (c->limit_bytes != UINT64_MAX)
		return c->limit_bytes;
	frag_dev_info(s->dev, &info);
	return own ? info.total_bytes - info.context_bytes : frag_cursor_reserved(s);
}

/* The event before the cursor was refused. */
static void note(const struct frag_case *c, const struct frag_cursor *s, bool own,
		 struct frag_refusals *out)
{
	const struct frag_event *e = &s->batch.events[s->next - 1 - s->batch.first];

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
	};
}

/* A limit that was only guessed is no reason to refuse what was served when recorded. */
static int walk(const struct frag_case *c, struct frag_refusals *out, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	bool as_recorded =
		c->recorded && !c->other_card && frag_target_limit(&c->target) == UINT64_MAX;
	bool ended = as_recorded && c->limit_guessed;
	size_t next = 0;

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

int frag_refusals_find(const struct frag_case *c, struct frag_refusals *out, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	*out = (struct frag_refusals){ 0 };
	FRAG_TRY(frag_case_replay(c, &s, err));
	FRAG_TRY(frag_cursor_to(&s, UINT64_MAX - 1, err));
	return s.run->ooms || c->history.refusals_count ? walk(c, out, err) : 0;
}
