/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays over threads: every worker takes the next task that nobody has. A
 * task has its own device and policy, so nothing is shared and the results are
 * the same for any number of threads. On a real card there is one worker.
 */
#include "session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <frag/base.h>

struct pool {
	struct frag_session *session;
	struct frag_pool_task *tasks;
	size_t count;
	_Atomic size_t next;
	pthread_mutex_t lock; /* of `done` and `live` */
	pthread_cond_t changed;
	size_t done, live;
};

/* On another device than the simulator: one of its own, fed at once. */
static int run_on_device(const struct frag_session *s, struct frag_pool_task *t)
{
	struct frag_device *dev;
	struct frag_run *run;
	int rc;

	FRAG_TRY(frag_cli_open_nth(s->cli, t->dev_index, &dev, &t->err));
	rc = frag_run_create(t->spec, dev, t->dev, &s->run, &run, &t->err);
	if (!rc) {
		rc = frag_run_feed(run, t->dev->events, t->dev->events_count, &t->err);
		if (!rc)
			rc = frag_run_finish(run, &t->result, &t->err);
		frag_run_destroy(run);
	}
	t->result.device_ordinal = t->dev->ordinal;
	frag_dev_close(dev);
	return rc;
}

static void run_task(struct frag_session *s, struct frag_pool_task *t)
{
	if (s->against_sim)
		t->rc = frag_session_against(s, t);
	else if (s->cli->device == FRAG_CLI_DEVICE_SIM)
		t->rc = frag_replay_sim(t->spec, &s->cli->card, t->dev, &s->run, &t->result,
					&t->err);
	else
		t->rc = run_on_device(s, t);
}

static void *work(void *ctx)
{
	struct pool *p = ctx;
	size_t i;

	while ((i = atomic_fetch_add(&p->next, 1)) < p->count) {
		run_task(p->session, &p->tasks[i]);
		pthread_mutex_lock(&p->lock);
		p->done++;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_lock(&p->lock);
	p->live--;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Shows progress until the last worker has ended. */
static void watch(struct pool *p, const char *label)
{
	struct frag_progress progress;

	frag_progress_begin(&progress, label);
	pthread_mutex_lock(&p->lock);
	while (p->live) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&p->changed, &p->lock, &until);
		frag_progress_update(&progress, p->done, p->count);
	}
	pthread_mutex_unlock(&p->lock);
	frag_progress_end(&progress);
}

int frag_pool_run(struct frag_session *s, struct frag_pool_task *tasks, size_t count,
		  const char *label, struct frag_err *err)
{
	struct pool p = { .session = s, .tasks = tasks, .count = count };
	bool alone = s->cli->device == FRAG_CLI_DEVICE_CUDA || s->against_sim;
	size_t wanted = alone ? 1 : FRAG_MIN((size_t)FRAG_MAX(s->cli->threads, 1u), count);
	pthread_t *threads = frag_host_calloc(wanted, sizeof(*threads));
	size_t started = 0;

	if (!threads)
		return frag_fail_nomem(err, "threads");
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.changed, NULL);
	p.live = wanted;
	while (started < wanted && !pthread_create(&threads[started], NULL, work, &p))
		started++;
	pthread_mutex_lock(&p.lock);
	p.live -= wanted - started; /* those that could not be started */
	p.live += started == 0;
	pthread_mutex_unlock(&p.lock);
	if (started == 0)
		work(&p);
	watch(&p, label);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&p.changed);
	pthread_mutex_destroy(&p.lock);
	frag_host_free(threads);
	return 0;
}
