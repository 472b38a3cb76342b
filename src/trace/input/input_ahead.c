/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of blocks. The user holds the last two blocks (`taken` - 1 and - 2): it still copies the
 * unread rest of the older one. The thread fills block `filled` while filled < taken - 2 + BLOCKS,
 * so the two never use the same one. */
#include "input_ahead.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <frag/base.h>

#define BLOCKS 5u
#define BLOCK_BYTES (256u * 1024u) /* fits the second-level cache while it is parsed */

struct block {
	size_t got;
	int rc;
	struct frag_err err;
	unsigned char bytes[FRAG_INPUT_PEEK_MAX + BLOCK_BYTES + FRAG_INPUT_MARGIN];
};

struct frag_input_ahead {
	frag_input_read_fn read;
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock; /* of the four below */
	pthread_cond_t filled_one, freed_one;
	uint64_t filled, taken; /* blocks so far */
	bool quit;
	struct block ring[BLOCKS];
};

static void *work(void *ctx)
{
	struct frag_input_ahead *a = ctx;
	bool over = false;

	pthread_mutex_lock(&a->lock);
	while (!over && !a->quit) {
		struct block *b = &a->ring[a->filled % BLOCKS];

		if (a->filled + 2 >= a->taken + BLOCKS) {
			pthread_cond_wait(&a->freed_one, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		b->rc = a->read(a->ctx, b->bytes + FRAG_INPUT_PEEK_MAX, BLOCK_BYTES, &b->got,
				&b->err);
		over = b->rc || !b->got;
		pthread_mutex_lock(&a->lock);
		a->filled++;
		pthread_cond_signal(&a->filled_one);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static bool has_processors(unsigned n)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && (unsigned)CPU_COUNT(&set) >= n;
}

struct frag_input_ahead *frag_input_ahead_start(frag_input_read_fn read, void *ctx,
						unsigned processors)
{
	struct frag_input_ahead *a =
		has_processors(processors) ? frag_host_alloc(sizeof(*a)) : NULL;

	if (!a)
		return NULL;
	a->read = read;
	a->ctx = ctx;
	a->filled = a->taken = 0;
	a->quit = false;
	for (unsigned i = 0; i < BLOCKS; i++) /* readable from the start: see input.h */
		memset(a->ring[i].bytes + FRAG_INPUT_PEEK_MAX + BLOCK_BYTES, 0, FRAG_INPUT_MARGIN);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->filled_one, NULL);
	pthread_cond_init(&a->freed_one, NULL);
	if (!pthread_create(&a->thread, NULL, work, a))
		return a;
	pthread_cond_destroy(&a->freed_one);
	pthread_cond_destroy(&a->filled_one);
	pthread_mutex_destroy(&a->lock);
	frag_host_free(a);
	return NULL;
}

int frag_input_ahead_next(struct frag_input_ahead *a, unsigned char **data, size_t *got,
			  struct frag_err *err)
{
	struct block *b;

	pthread_mutex_lock(&a->lock);
	while (a->taken == a->filled)
		pthread_cond_wait(&a->filled_one, &a->lock);
	b = &a->ring[a->taken % BLOCKS];
	if (!b->rc && b->got) { /* the last one is given again and again */
		a->taken++;
		pthread_cond_signal(&a->freed_one);
	}
	pthread_mutex_unlock(&a->lock);
	*data = b->bytes + FRAG_INPUT_PEEK_MAX;
	*got = b->got;
	if (b->rc && err)
		*err = b->err;
	return b->rc;
}

void frag_input_ahead_stop(struct frag_input_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_signal(&a->freed_one);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->freed_one);
	pthread_cond_destroy(&a->filled_one);
	pthread_mutex_destroy(&a->lock);
	frag_host_free(a);
}
