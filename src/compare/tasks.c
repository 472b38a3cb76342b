/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays over threads: every worker takes the next open task. A
 * task has its own device and policy, so nothing is shared and the results are
 * the same for any number of threads. On a real card there is one worker.
 */
#include "optimum.h"

#include <frag/base.h>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/term.h"
#include "replay/stream.h"

/* ---- one task ----------------------------------------------------------------------- */

struct workers {
	struct frag_session *session;
	struct frag_session_task **order; /* as they begin */
	struct frag_ticks events; /* replayed, of all tasks; those that ended early count whole */
};

/* On another device than the simulator: one of its own, fed at once. A real card runs one replay at
 * a time, so `given_back_bytes` has one writer. */
static int run_on_device(struct frag_session *s, struct frag_session_task *t,
			 const struct frag_run_options *opt)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	int rc;

	FRAG_TRY(s->host.open(s->host.ctx, t->dev_index, &dev, &t->err));
	FRAG_TRY(frag_dev_make_ready(dev, s->given_back_bytes, &t->err));
	rc = frag_run_create(t->spec, dev, t->dev, opt, &run, &t->err)
		     ?: frag_run_feed(run, t->dev->events, t->dev->events_count, &t->err)
		     ?: frag_run_finish(run, &t->result, &t->err);
	t->result.device_ordinal = t->dev->ordinal;
	/* a bound: pools do not tell */
	s->given_back_bytes = dev->stat[FRAG_CALL_FREE].bytes + dev->stat[FRAG_CALL_RELEASE].bytes +
			      dev->reserved_peak_bytes;
	return rc;
}

static int replay(struct frag_session *s, struct frag_session_task *t,
		  const struct frag_run_options *opt)
{
	if (t->streamed) {
		struct frag_stream stream = { .path = t->streamed->path,
					      .source = t->streamed->pipe ? t->streamed->source
									  : NULL,
					      .hdr = t->dev,
					      .dev = t->dev_index,
					      .ahead = t->ahead };
		int rc = frag_replay_stream(t->spec, &s->target.card, &stream, opt, &t->result,
					    &t->err);

		t->last_us = stream.last_us;
		return rc;
	}
	if (s->host.simulated)
		return frag_replay_sim(t->spec, &s->target.card, t->dev, opt, &t->result, &t->err);
	return run_on_device(s, t, opt);
}

/* `planned` with a plan of its own; the result says what it was made of, not where it lay. */
static int replay_planned(struct frag_session *s, struct frag_session_task *t,
			  const struct frag_run_options *opt)
{
	FRAG_AUTO(frag_planned_release) struct frag_planned plan = { 0 };
	int rc = frag_plan_ahead(t->dev, t->spec,
				 s->planned_asked_for || s->optimum == FRAG_OPTIMUM_PLACE, &plan,
				 &t->err);

	t->left_out = rc == FRAG_ENOTSUP;
	FRAG_TRY(rc);
	t->spec = plan.spec;
	rc = replay(s, t, opt);
	t->spec = t->asked_for;
	if (!rc)
		rc = frag_result_name(&t->result, t->spec, &t->err);
	if (!rc) {
		t->result.plan = plan.about;
		plan.about = NULL;
	}
	return rc;
}

/* What one task has counted of its events. */
struct share {
	struct workers *workers;
	uint64_t done;
};

static void count_events(void *ctx, uint64_t events)
{
	struct share *share = ctx;

	share->done += events;
	atomic_fetch_add(&share->workers->events.done, events);
}

static void run_task(void *workers, size_t i)
{
	struct workers *p = workers;
	struct frag_session_task *t = p->order[i];
	struct frag_session *s = p->session;
	struct share share = { .workers = p };
	struct frag_run_options opt = s->run;
	uint64_t all = t->dev->events_count;

	if (t->spec) {
		opt.limit_bytes = t->limit_bytes;
		opt.restore = t->restore;
		opt.limit_changes = !s->target.limit.text && !s->target.card_given;
	}
	opt.progress = count_events;
	opt.progress_ctx = &share;
	t->asked_for = t->spec;
	/* what cannot be done without the trace in memory: a placement has a note in its place */
	t->left_out = t->streamed && t->spec && frag_session_wants_plan(s, t->spec);
	if (t->left_out)
		t->rc = frag_fail(&t->err, FRAG_ENOTSUP,
				  "the trace is streamed, and a plan needs all of it in memory "
				  "(--stream=never)");
	else if (t->streamed && !t->spec)
		snprintf(t->optimum.note, sizeof(t->optimum.note),
			 "the trace is streamed, and a placement needs all of it in memory "
			 "(--stream=never)");
	else if (!t->spec)
		t->rc = frag_session_place(s, t);
	else if (frag_session_wants_plan(s, t->spec))
		t->rc = replay_planned(s, t, &opt);
	else
		t->rc = replay(s, t, &opt);
	count_events(&share, all - FRAG_MIN(all, share.done));
}

int frag_session_run_tasks(struct frag_session *s, struct frag_session_task *tasks, size_t count,
			   const char *label, struct frag_err *err)
{
	unsigned threads = s->host.real ? 1 : s->host.threads;
	struct workers p = { .session = s };
	struct frag_progress progress;
	size_t begun = 0, n = 0;
	int rc;

	FRAG_TRY_CALLOC(p.order, count, "threads", err);
	for (size_t i = 0; i < count; i++)
		p.events.total += tasks[i].dev->events_count;
	/* placements and plans look at the trace more than once: no thread waits for them at the end */
	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < count; i++)
			if (late == (threads < 2 ||
				     (tasks[i].spec && !frag_session_wants_plan(s, tasks[i].spec))))
				p.order[n++] = &tasks[i];
	frag_progress_begin(&progress, label);
	s->run.stop = frag_interrupt_flag;
	rc = frag_parallel(count, threads, run_task, &p, &progress.watch, &p.events, &begun, err);
	frag_progress_end(&progress);
	for (size_t i = begun; !rc && i < count; i++)
		p.order[i]->rc = frag_fail(&p.order[i]->err, FRAG_EINTR, "interrupted");
	frag_host_free(p.order);
	return rc;
}
