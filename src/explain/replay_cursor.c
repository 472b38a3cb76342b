/* SPDX-License-Identifier: Apache-2.0 */
/* A replay that can be stopped anywhere; see replay_cursor.h. */
#include "replay_cursor.h"

#include "trace/source.h"

/* ---- events ------------------------------------------------------------------------- */

static int more_evidence(void *ctx, const struct frag_evidence **seen, size_t *count)
{
	struct frag_cursor *s = ctx;
	int rc = s->evidence_rc;

	if (!rc && !s->evidence)
		rc = frag_source_open(s->ev.path, &s->evidence, &s->evidence_err);
	if (!rc)
		rc = frag_source_seen(s->evidence, s->ev.dev, seen, count, &s->evidence_err);
	s->evidence_rc = FRAG_MIN(rc, 0);
	return rc;
}

static int open_events(struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&s->ev);

	s->hints.trace = td;
	if (!s->ev.path) {
		s->batch = (struct frag_batch){ s->ev.dev, td->events, td->events_count, 0 };
		return 0;
	}
	s->hints.more = more_evidence;
	s->hints.ctx = s;
	FRAG_TRY(frag_source_open(s->ev.path, &s->source, err));
	return frag_source_pass(s->source, s->ev.dev, err);
}

/* Makes the batch hold event `next`; 1, or 0 after the last event. */
static int reach(struct frag_cursor *s, struct frag_err *err)
{
	int rc;

	while (s->next >= s->batch.first + s->batch.count) {
		if (!s->source)
			return 0;
		rc = frag_source_next(s->source, &s->batch, err);
		if (rc != 1)
			return rc;
		if (s->batch.dev != s->ev.dev)
			return 0;
	}
	return 1;
}

static int note_births(struct frag_cursor *s, const struct frag_event *e, size_t n,
		       struct frag_err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (e[i].kind >= FRAG_EV_TRIM)
			continue;
		if (e[i].slot >= s->births_count)
			return frag_fail(err, FRAG_EINPUT, "event %llu names a slot out of range",
					 (unsigned long long)(s->next + i));
		if (e[i].kind == FRAG_EV_ALLOC)
			s->births[e[i].slot] =
				(struct frag_birth){ s->next + i, e[i].time_us, e[i].stack };
	}
	return 0;
}

int frag_cursor_to(struct frag_cursor *s, uint64_t event, struct frag_err *err)
{
	while (s->next <= event && !frag_run_stopped(s->run)) {
		const struct frag_event *e;
		size_t n;
		int rc = reach(s, err);

		if (rc != 1)
			return rc;
		e = s->batch.events + (s->next - s->batch.first);
		n = s->batch.count - (size_t)(s->next - s->batch.first);
		n = (size_t)FRAG_MIN((uint64_t)n, event - s->next + 1);
		FRAG_TRY(note_births(s, e, n, err));
		FRAG_TRY(frag_run_feed(s->run, e, n, err));
		s->next += n;
		s->now_us = e[n - 1].time_us;
		if (s->evidence_rc) {
			if (err)
				*err = s->evidence_err;
			return s->evidence_rc;
		}
	}
	return 0;
}

int frag_cursor_open(struct frag_cursor *s, const struct frag_events *ev,
		     const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		     const struct frag_run_options *opt, struct frag_err *err)
{
	struct frag_run_options o = *opt;

	*s = (struct frag_cursor){ .ev = *ev, .births_count = frag_events_dev(ev)->slots_count };
	o.skip_oom = true;
	o.windows_max = 2;
	s->hints.restore = o.restore && frag_policy_spec_ops(spec)->restore;
	FRAG_TRY_CALLOC(s->births, s->births_count + 1, "replay", err);
	FRAG_TRY(open_events(s, err));
	FRAG_TRY(frag_hints_open(&s->hints, card, &s->dev, err));
	return frag_run_create(spec, s->dev, frag_events_dev(ev), &o, &s->run, err);
}

void frag_cursor_close(struct frag_cursor *s)
{
	s->hints.lost = true; /* what frees at the end asks for no segment */
	frag_run_destroy(s->run);
	if (s->dev)
		frag_dev_close(s->dev);
	frag_source_close(s->source);
	frag_source_close(s->evidence);
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
