/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which task begins first. With the longest first no thread waits long for another at the
 * end; which one is longest shows in the first events of the trace, replayed once before
 * (about a percent of the work).
 */
#include <time.h>

#include "base/parallel.h"
#include "optimum.h"
#include "order.h"

#define SAMPLE 512u /* events */
/* Below this many, a sample costs more than it can save. */
#define WORTH (128u * SAMPLE)

struct estimate {
	const struct frag_session *session;
	struct frag_session_task *tasks;
	uint64_t *ns;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What the first events cost, times how many there are. Without a sample: as if all were alike. */
static void estimate(void *ctx, size_t i)
{
	struct estimate *e = ctx;
	const struct frag_session_task *t = &e->tasks[i];
	struct frag_run_options opt = e->session->run;
	struct frag_trace_dev first = *t->dev;
	struct frag_result result = { 0 };
	uint64_t begin = cpu_ns();

	if (t->streamed || first.events_count < WORTH) {
		e->ns[i] = t->dev->events_count;
		return;
	}
	/* placements and plans look at the whole trace, more than once */
	if (!t->spec || frag_session_wants_plan(e->session, t->spec)) {
		e->ns[i] = UINT64_MAX;
		return;
	}
	opt.losses = opt.latency = opt.check = false;
	opt.progress = NULL;
	first.events_count = SAMPLE;
	if (!frag_replay_sim(t->spec, &e->session->target.card, &first, &opt, &result, NULL))
		frag_result_release(&result);
	e->ns[i] = (cpu_ns() - begin) * (t->dev->events_count / SAMPLE);
}

int frag_session_order(const struct frag_session *s, struct frag_session_task *tasks, size_t count,
		       unsigned threads, struct frag_session_task **order, struct frag_err *err)
{
	struct estimate e = { .session = s, .tasks = tasks };
	FRAG_AUTO_FREE uint64_t *ns = NULL;

	FRAG_TRY_CALLOC(ns, count, "threads", err);
	e.ns = ns;
	if (threads > 1 && count > threads)
		FRAG_TRY(frag_parallel(count, threads, estimate, &e, NULL, NULL, NULL, err));
	for (size_t i = 0; i < count; i++) {
		size_t at = i;

		for (; at && e.ns[order[at - 1] - tasks] < e.ns[i]; at--)
			order[at] = order[at - 1];
		order[at] = &tasks[i];
	}
	return 0;
}
