/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of batches between the reading thread and the user. The user holds, or waits for, batch
 * `taken - 1`. The thread fills batch `read` only while read < taken - 1 + DEPTH, so the two never
 * use the same one. */
#include "ahead.h"

#include <pthread.h>

#include "source.h"

#define DEPTH 4u /* one in use, one being filled, two that wait: 6 MiB */

struct slot {
	struct frag_event *room; /* [FRAG_SOURCE_BATCH] */
	struct frag_batch batch;
	struct frag_err err;
	int rc; /* of frag_source_next */
};

struct frag_ahead {
	struct frag_source *src;
	struct slot ring[DEPTH];
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t filled, emptied;
	uint64_t read, taken; /* batches so far */
	bool quit;
};

static void fill(struct frag_ahead *a, struct slot *s)
{
	frag_source_into(a->src, s->room);
	s->rc = frag_source_next(a->src, &s->batch, &s->err);
}

static void *work(void *ctx)
{
	struct frag_ahead *a = ctx;
	bool more = true;

	pthread_mutex_lock(&a->lock);
	while (more && !a->quit) {
		struct slot *s = &a->ring[a->read % DEPTH];

		if (a->read + 1 >= a->taken + DEPTH) {
			pthread_cond_wait(&a->emptied, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		fill(a, s);
		more = s->rc == 1;
		pthread_mutex_lock(&a->lock);
		a->read++;
		pthread_cond_signal(&a->filled);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int frag_ahead_open(struct frag_source *src, struct frag_ahead **out, struct frag_err *err)
{
	struct frag_ahead *a = frag_host_calloc(1, sizeof(*a));
	bool room = a != NULL;

	for (unsigned i = 0; room && i < DEPTH; i++) {
		a->ring[i].room = frag_host_alloc(FRAG_SOURCE_BATCH * sizeof(struct frag_event));
		room = a->ring[i].room != NULL;
	}
	if (!room) {
		for (unsigned i = 0; a && i < DEPTH; i++)
			frag_host_free(a->ring[i].room);
		frag_host_free(a);
		return frag_fail_nomem(err, "trace batches");
	}
	a->src = src;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->filled, NULL);
	pthread_cond_init(&a->emptied, NULL);
	a->threaded = !pthread_create(&a->thread, NULL, work, a);
	*out = a;
	return 0;
}

int frag_ahead_next(struct frag_ahead *a, struct frag_batch *out, struct frag_err *err)
{
	struct slot *s;

	pthread_mutex_lock(&a->lock);
	/* the end and errors stay where they are */
	if (a->taken && a->ring[(a->taken - 1) % DEPTH].rc != 1) {
		s = &a->ring[(a->taken - 1) % DEPTH];
	} else {
		a->taken++;
		pthread_cond_signal(&a->emptied);
		while (a->threaded && a->read < a->taken)
			pthread_cond_wait(&a->filled, &a->lock);
		s = &a->ring[(a->taken - 1) % DEPTH];
		if (!a->threaded)
			fill(a, s);
	}
	pthread_mutex_unlock(&a->lock);
	*out = s->batch;
	if (s->rc < 0 && err)
		*err = s->err;
	return s->rc;
}

void frag_ahead_close(struct frag_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_signal(&a->emptied);
	pthread_mutex_unlock(&a->lock);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	frag_source_into(a->src, NULL);
	pthread_cond_destroy(&a->filled);
	pthread_cond_destroy(&a->emptied);
	pthread_mutex_destroy(&a->lock);
	for (unsigned i = 0; i < DEPTH; i++)
		frag_host_free(a->ring[i].room);
	frag_host_free(a);
}
