/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks over threads; see parallel.h. The calling thread watches and reports. */
#include "parallel.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define WATCH_EVERY_NS 50000000

struct crew {
	void (*task)(void *ctx, size_t i);
	void *ctx;
	size_t count;
	const struct frag_watch *watch;
	struct frag_ticks *ticks;
	bool own_ticks;
	_Atomic size_t next;
};

static void *work(void *arg)
{
	struct crew *c = arg;

	while (!frag_watch_stopped(c->watch)) {
		size_t i = atomic_fetch_add(&c->next, 1);

		if (i >= c->count)
			break;
		c->task(c->ctx, i);
		if (c->own_ticks)
			atomic_fetch_add(&c->ticks->done, 1);
	}
	return NULL;
}

static void report(const struct crew *c)
{
	uint64_t done = atomic_load(&c->ticks->done);

	if (c->watch && c->watch->progress)
		c->watch->progress(c->watch->ctx, FRAG_MIN(done, c->ticks->total), c->ticks->total);
}

static void join(const struct crew *c, pthread_t thread)
{
	struct timespec until;

	do {
		report(c);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_EVERY_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
}

int frag_parallel(size_t count, unsigned threads, void (*task)(void *ctx, size_t i), void *ctx,
		  const struct frag_watch *watch, struct frag_ticks *ticks, size_t *begun,
		  struct frag_err *err)
{
	struct frag_ticks own = { .total = count };
	struct crew c = { .task = task,
			  .ctx = ctx,
			  .count = count,
			  .watch = watch,
			  .ticks = ticks ? ticks : &own,
			  .own_ticks = !ticks };
	size_t wanted = FRAG_MIN((size_t)FRAG_MAX(threads, 1u), FRAG_MAX(count, (size_t)1));
	pthread_t *crew;
	size_t started = 0;

	FRAG_TRY_CALLOC(crew, wanted, "threads", err);
	while (started < wanted && !pthread_create(&crew[started], NULL, work, &c))
		started++;
	if (!started)
		work(&c);
	for (size_t i = 0; i < started; i++)
		join(&c, crew[i]);
	report(&c);
	frag_host_free(crew);
	if (begun)
		*begun = FRAG_MIN(atomic_load(&c.next), count);
	return 0;
}
