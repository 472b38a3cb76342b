/* SPDX-License-Identifier: Apache-2.0 */
/* A replay that can be stopped anywhere; see replay_cursor.h. */
#include "replay_cursor.h"

static int note_births(struct frag_cursor *s, const struct frag_event *e, size_t n,
		       struct frag_err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind >= FRAG_EV_TRIM)
			continue;
		if (e[i].slot >= s->births_count)
			return FRAG_INPUT(err, "event %llu names a slot out of range",
					  (unsigned long long)(s->next + i));
		if (e[i].kind == FRAG_EV_ALLOC)
			s->births[e[i].slot] =
				(struct frag_birth){ s->next + i, e[i].time_us, e[i].stack };
	}
	return 0;
}

int frag_cursor_to(struct frag_cursor *s, uint64_t event, struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(&s->ev);
	const uint64_t end = FRAG_MIN(event, (uint64_t)dev->events_count - 1) + 1;
	const struct frag_event *e;

	if (s->next >= end || !dev->events_count || frag_run_stopped(s->run))
		return 0;
	e = dev->events + s->next;
	FRAG_TRY(note_births(s, e, end - s->next, err));
	FRAG_TRY(frag_run_feed(s->run, e, end - s->next, err));
	s->next = end;
	s->now_us = dev->events[end - 1].time_us;
	return 0;
}

int frag_cursor_open(struct frag_cursor *s, const struct frag_events *ev,
		     const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		     const struct frag_run_options *opt, struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(ev);
	struct frag_run_options o = *opt;

	*s = (struct frag_cursor){ .ev = *ev, .births_count = dev->slots_count };
	o.skip_oom = true;
	o.windows_max = 2;
	s->hints.trace = dev;
	s->hints.restore = o.restore && frag_policy_spec_ops(spec)->restore;
	FRAG_TRY_CALLOC(s->births, s->births_count + 1, "replay", err);
	for (size_t i = 0; s->hints.restore && i < dev->initial.blocks_count; i++)
		if (i < dev->events_count && dev->events[i].slot < s->births_count)
			s->births[dev->events[i].slot].stack = dev->events[i].stack;
	FRAG_TRY(frag_hints_open(&s->hints, card, &s->dev, err));
	return frag_run_create(spec, s->dev, dev, &o, &s->run, err);
}

void frag_cursor_close(struct frag_cursor *s)
{
	s->hints.lost = true; /* what frees at the end asks for no segment */
	frag_run_destroy(s->run);
	if (s->dev)
		frag_dev_close(s->dev);
	frag_host_free(s->births);
	*s = (struct frag_cursor){ 0 };
}

int frag_cursor_trim(struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_policy_ops *ops = s->run->policy.ops;
	uint32_t pools = FRAG_MAX(frag_events_dev(&s->ev)->pools_count, 1u);

	s->run->err = err;
	for (uint32_t p = 0; ops->trim && p < pools; p++)
		FRAG_TRY(ops->trim(s->run->policy.self, (uint16_t)p, err));
	return 0;
}

uint64_t frag_cursor_reserved(const struct frag_cursor *s)
{
	return s->dev->reserved_bytes - s->run->start_reserved;
}
