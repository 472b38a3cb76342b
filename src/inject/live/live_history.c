/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history in PyTorch's snapshots: the last entries of a device, a ring that grows as asked for.
 * Where an entry came from (a number that the caller gives) is asked before any lock is taken.
 */
#include <frag/clock.h>

#include <string.h>
#include <time.h>

#include "live_core.h"

#define FIRST_ROOM 1024u

atomic_bool frag_live_history_on;

static struct frag_live_history wanted; /* of devices to come; opening is locked */
uint32_t (*frag_live_on_alloc)(void), (*frag_live_on_free)(void);

static const struct {
	const char *note;
	uint32_t first, second;
} notes[] = {
	{ "alloc", FRAG_LIVE_DID_ALLOC, UINT32_MAX },
	{ "free", FRAG_LIVE_DID_REQUEST, FRAG_LIVE_DID_COMPLETE },
	{ "free_requested", FRAG_LIVE_DID_REQUEST, UINT32_MAX },
	{ "free_completed", FRAG_LIVE_DID_COMPLETE, UINT32_MAX },
	{ "refused", FRAG_LIVE_DID_OOM, UINT32_MAX },
};

/* ---- entries ------------------------------------------------------------------------------ */

/* The place of the next entry; NULL: none is kept, or host memory is out. */
static struct frag_live_event *next_entry(struct frag_live_history *h)
{
	if (h->count == h->cap && h->cap < h->max) {
		uint64_t cap = FRAG_MIN(FRAG_MAX(2 * h->cap, FIRST_ROOM), h->max);
		struct frag_live_event *more =
			h->first ? NULL : frag_host_realloc(h->ring, cap, sizeof(*more));

		if (more) {
			h->ring = more;
			h->cap = cap;
		}
	}
	if (!h->cap)
		return NULL;
	if (h->count < h->cap)
		return &h->ring[(h->first + h->count++) % h->cap];
	h->first = (h->first + 1) % h->cap;
	return &h->ring[(h->first + h->count - 1) % h->cap];
}

static void add(struct frag_live_dev *d, uint32_t action, struct frag_live_event e)
{
	struct frag_live_history *h = &d->history;
	struct frag_live_event *at;

	if (!(h->actions >> action & 1) || !(at = next_entry(h)))
		return;
	e.action = action;
	e.time_us = (uint64_t)(h->epoch_ns + (int64_t)(d->start_ns + d->dev->now_ns)) / 1000;
	*at = e;
}

void frag_live_history_note(struct frag_live_dev *d, const struct frag_live_line *l,
			    const struct frag_live_block *block)
{
	struct frag_live_event e = { .addr = l->addr,
				     .bytes = l->bytes,
				     .stream = (uintptr_t)l->stream,
				     .context = d->context };
	uint64_t total, ns;

	/* what is completed later is so in the course of another request */
	if (block && (!e.context || !strcmp(l->action, "free_completed")))
		e.context = block->context;
	if (!block && d->dev->ops->mem_info(d->dev->priv, &e.addr, &total, &ns, NULL))
		e.addr = 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(notes); i++) {
		if (strcmp(notes[i].note, l->action) != 0)
			continue;
		add(d, notes[i].first, e);
		if (notes[i].second != UINT32_MAX)
			add(d, notes[i].second, e);
	}
}

void frag_live_history_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct frag_live_dev *d = ctx;

	/* mappings are no segments: a policy may map memory twice */
	if (FRAG_LIKELY(!frag_live_in_history()) || result ||
	    (call != FRAG_CALL_MALLOC && call != FRAG_CALL_FREE))
		return;
	add(d, call == FRAG_CALL_MALLOC ? FRAG_LIVE_DID_SEGMENT_ALLOC : FRAG_LIVE_DID_SEGMENT_FREE,
	    (struct frag_live_event){
		    .addr = d->dev->logged_addr, .bytes = bytes, .context = d->context });
}

/* ---- what Python asks ----------------------------------------------------------------------- */

void frag_live_on_context(uint32_t (*alloc)(void), uint32_t (*free)(void))
{
	__atomic_store_n(&frag_live_on_alloc, alloc, __ATOMIC_RELEASE);
	__atomic_store_n(&frag_live_on_free, free, __ATOMIC_RELEASE);
}

void frag_live_history_begin(struct frag_live_dev *d)
{
	d->history = wanted;
}

/* Keeps the entries that fit. pre: the device is locked */
static void change(struct frag_live_history *h, bool clear)
{
	struct frag_live_history old = *h;

	*h = wanted;
	if (!clear && (old.max == h->max || (!old.first && old.count <= h->max))) {
		h->ring = old.ring;
		h->first = old.first;
		h->count = old.count;
		h->cap = FRAG_MIN(old.cap, h->max);
	} else {
		frag_host_free(old.ring);
	}
}

void frag_live_history(uint64_t max_entries, uint32_t actions, int clear)
{
	struct timespec wall;

	frag_live_history_on = false;
	if (!actions)
		return;
	clock_gettime(CLOCK_REALTIME, &wall);
	pthread_mutex_lock(&frag_live.opening);
	wanted.max = max_entries;
	wanted.actions = actions;
	wanted.epoch_ns = wall.tv_sec * 1000000000ll + wall.tv_nsec - (int64_t)frag_clock_ns();
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++) {
		FRAG_LIVE_WITH (d, frag_live.devs[i])
			change(&d->history, clear);
	}
	pthread_mutex_unlock(&frag_live.opening);
	frag_live_history_on = max_entries != 0;
}

size_t frag_live_history_read(int device, struct frag_live_event *out, size_t cap)
{
	size_t count = 0;

	FRAG_LIVE_WITH (d, frag_live_used(device)) {
		count = d->history.count;
		for (size_t i = 0; i < count && i < cap; i++)
			out[i] = d->history.ring[(d->history.first + i) % d->history.cap];
	}
	return count;
}
