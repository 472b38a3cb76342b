/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of slots between the thread and the user. The user waits for slot `taken` - 1 or holds it,
 * and the one before. The thread fills slot `made` only while made < taken - HELD + SLOTS, so the
 * two never use the same one. */
#include "ahead.h"

#include <pthread.h>

#define HELD 2u
#define SLOTS (3u + HELD) /* one that is filled, two that wait */

struct slot {
	void *room;
	int rc; /* of make */
	struct frag_err err;
};

struct frag_ahead {
	frag_ahead_fn make;
	void *ctx;
	struct slot ring[SLOTS];
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t filled, emptied;
	uint64_t made, taken; /* slots so far */
	bool quit;
};

static void *work(void *ctx)
{
	struct frag_ahead *a = ctx;
	bool more = true;

	pthread_mutex_lock(&a->lock);
	while (more && !a->quit) {
		struct slot *s = &a->ring[a->made % SLOTS];

		if (a->made + HELD >= a->taken + SLOTS) {
			pthread_cond_wait(&a->emptied, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		s->rc = a->make(a->ctx, s->room, &s->err);
		more = s->rc == 1;
		pthread_mutex_lock(&a->lock);
		a->made++;
		pthread_cond_signal(&a->filled);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void release(struct frag_ahead *a)
{
	for (unsigned i = 0; i < SLOTS; i++)
		frag_host_free(a->ring[i].room);
	frag_host_free(a);
}

struct frag_ahead *frag_ahead_start(frag_ahead_fn make, void *ctx, size_t bytes)
{
	struct frag_ahead *a = frag_host_calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->make = make;
	a->ctx = ctx;
	for (unsigned i = 0; i < SLOTS; i++) {
		a->ring[i].room = frag_host_alloc(bytes);
		if (!a->ring[i].room) {
			release(a);
			return NULL;
		}
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->filled, NULL);
	pthread_cond_init(&a->emptied, NULL);
	a->threaded = !pthread_create(&a->thread, NULL, work, a);
	return a;
}

int frag_ahead_next(struct frag_ahead *a, void **slot, struct frag_err *err)
{
	struct slot *s = a->taken ? &a->ring[(a->taken - 1) % SLOTS] : NULL;

	if (!s || s->rc == 1) {
		pthread_mutex_lock(&a->lock);
		s = &a->ring[a->taken++ % SLOTS];
		pthread_cond_signal(&a->emptied);
		while (a->threaded && a->made < a->taken)
			pthread_cond_wait(&a->filled, &a->lock);
		pthread_mutex_unlock(&a->lock);
		if (!a->threaded)
			s->rc = a->make(a->ctx, s->room, &s->err);
	}
	*slot = s->room;
	if (s->rc < 0 && err)
		*err = s->err;
	return s->rc;
}

void frag_ahead_stop(struct frag_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_signal(&a->emptied);
	pthread_mutex_unlock(&a->lock);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->filled);
	pthread_cond_destroy(&a->emptied);
	pthread_mutex_destroy(&a->lock);
	release(a);
}
