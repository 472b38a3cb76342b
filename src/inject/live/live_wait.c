/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for streams. Blocks that other streams used: at the free an event is recorded on each of
 * these streams, and the policy gets the block when the last event is done. Events of one stream
 * finish in order, so only the first is queried.
 *
 * Memory that goes from one stream to another, for policies that have no rule of their own for it:
 * work of the stream that freed it may still run, so the new owner's stream waits for an event
 * recorded there, on the card; the host does not. Which memory it was is not kept: it waits for
 * every stream that freed something since.
 */
#include "live_core.h"

#include <string.h>

static void drop_uses(struct frag_live_dev *d, struct frag_live_block *block)
{
	while (block->uses) {
		struct frag_live_use *u = block->uses;

		block->uses = u->next;
		frag_slab_free(&d->uses, u);
	}
}

static void done(struct frag_live_dev *d, struct frag_live_block *block)
{
	frag_live_note(d, "free_completed", block, 0, NULL, 0);
	d->stats.waiting_blocks--;
	frag_live_complete(d, block);
}

static int room(struct frag_live_dev *d, uint32_t stream)
{
	uint32_t cap = FRAG_MAX(stream + 1, 2 * d->waiting_cap);
	void *more;

	if (stream < d->waiting_cap)
		return 0;
	more = frag_host_realloc(d->waiting, cap, sizeof(*d->waiting));
	if (!more)
		return FRAG_ENOMEM;
	d->waiting = more;
	memset(d->waiting + d->waiting_cap, 0, (cap - d->waiting_cap) * sizeof(*d->waiting));
	d->waiting_cap = cap;
	return 0;
}

/* An event behind the work of this stream. False: there is none to wait for. pre: entered. */
static bool add_wait(struct frag_live_dev *d, struct frag_live_block *block, uint32_t stream)
{
	const struct frag_cu *cu = d->card->cu;
	struct frag_live_wait *w;
	void *event;

	if (room(d, stream) || !(w = frag_slab_alloc(&d->waits))) {
		/* no memory to remember it: wait here */
		cu->cuStreamSynchronize(d->card->streams[stream]);
		return false;
	}
	if (frag_cu_event_take(d->card, &event, NULL)) {
		cu->cuStreamSynchronize(d->card->streams[stream]);
		frag_slab_free(&d->waits, w);
		return false;
	}
	if (cu->cuEventRecord(event, d->card->streams[stream]) != FRAG_CU_OK) {
		/* a stream that was destroyed: the driver has let its work end */
		frag_cu_event_give(d->card, event);
		frag_slab_free(&d->waits, w);
		return false;
	}
	*w = (struct frag_live_wait){ .block = block, .event = event };
	if (d->waiting[stream].last)
		d->waiting[stream].last->next = w;
	else
		d->waiting[stream].first = w;
	d->waiting[stream].last = w;
	d->waiting_count++;
	block->events++;
	return true;
}

/* pre: entered, nothing is captured */
static void record_events(struct frag_live_dev *d, struct frag_live_block *block)
{
	for (const struct frag_live_use *u = block->uses; u; u = u->next)
		add_wait(d, block, u->stream);
	drop_uses(d, block);
	if (!block->events)
		done(d, block);
}

void frag_live_wait_for(struct frag_live_dev *d, struct frag_live_block *block)
{
	d->stats.waiting_blocks++;
	if (d->captures_count) {
		block->next = d->deferred;
		d->deferred = block;
		return;
	}
	FRAG_CU_ENTERED(d->card);
	record_events(d, block);
}

/* Takes the first wait of a stream off; its block may be done with it. */
static void finish(struct frag_live_dev *d, uint32_t stream)
{
	struct frag_live_wait *w = d->waiting[stream].first;
	struct frag_live_block *block = w->block;

	d->waiting[stream].first = w->next;
	if (!w->next)
		d->waiting[stream].last = NULL;
	d->waiting_count--;
	frag_cu_event_give(d->card, w->event);
	frag_slab_free(&d->waits, w);
	if (!--block->events)
		done(d, block);
}

void frag_live_settle(struct frag_live_dev *d, bool all)
{
	const struct frag_cu *cu = d->card->cu;

	if (d->captures_count || d->card->dead || (!d->waiting_count && !d->deferred))
		return;
	FRAG_CU_ENTERED(d->card);
	while (d->deferred) {
		struct frag_live_block *block = d->deferred;

		d->deferred = block->next;
		record_events(d, block);
	}
	for (uint32_t i = 0; i < d->waiting_cap && d->waiting_count; i++) {
		while (d->waiting[i].first) {
			void *event = d->waiting[i].first->event;
			int rc = all ? cu->cuEventSynchronize(event) : cu->cuEventQuery(event);

			/* after an error of the context nothing runs any more */
			if (rc == FRAG_CU_NOT_READY)
				break;
			finish(d, i);
		}
	}
}

/* ---- memory that changes streams --------------------------------------------------------------- */

/* A new stream has waited for none, and whatever was freed so far counts as freed by each. */
static int more_streams(struct frag_live_dev *d, struct frag_err *err)
{
	uint32_t cap = d->waited_cap, more = FRAG_MAX(8u, 2 * d->card->streams_count);
	uint64_t *waited, *freed;

	if (d->card->streams_count <= cap)
		return 0;
	FRAG_TRY_CALLOC(waited, (size_t)more * more, "streams", err);
	freed = frag_host_realloc(d->freed, more, sizeof(*freed));
	if (!freed) {
		frag_host_free(waited);
		return frag_fail_nomem(err, "streams");
	}
	for (uint32_t i = 0; i < cap; i++)
		memcpy(waited + (size_t)i * more, d->waited + (size_t)i * cap,
		       cap * sizeof(*waited));
	d->serial++;
	for (uint32_t i = cap; i < more; i++)
		freed[i] = d->serial;
	frag_host_free(d->waited);
	d->freed = freed;
	d->waited = waited;
	d->waited_cap = more;
	return 0;
}

/* `stream` waits for everything that `other` was given so far. */
static int wait_for(struct frag_live_dev *d, uint32_t stream, uint32_t other, struct frag_err *err)
{
	const struct frag_cu_card *c = d->card;
	FRAG_CU_ENTERED(c);
	void *event;
	int rc = 0;

	FRAG_TRY(frag_cu_event_take(d->card, &event, err));
	/* a stream that was destroyed: the driver has let its work end */
	if (c->cu->cuEventRecord(event, c->streams[other]) == FRAG_CU_OK)
		rc = FRAG_CU(c->cu, err, cuStreamWaitEvent, c->streams[stream], event, 0);
	/* the wait has its own copy of what the event stood for */
	frag_cu_event_give(d->card, event);
	FRAG_TRY(rc);
	d->waited[(size_t)stream * d->waited_cap + other] = d->serial;
	d->stats.stream_waits++;
	return 0;
}

int frag_live_hand_over(struct frag_live_dev *d, const struct frag_block *b, struct frag_err *err)
{
	if (FRAG_LIKELY(d->card->streams_count == 1))
		return 0;
	FRAG_TRY(more_streams(d, err));
	for (uint32_t i = 0; i < d->card->streams_count; i++)
		if (i != b->stream &&
		    d->freed[i] > d->waited[(size_t)b->stream * d->waited_cap + i])
			FRAG_TRY(wait_for(d, b->stream, i, err));
	return 0;
}

void frag_live_left_by(struct frag_live_dev *d, const struct frag_block *b)
{
	if (b->stream < d->waited_cap)
		d->freed[b->stream] = ++d->serial;
}

void frag_live_left_forget(struct frag_live_dev *d)
{
	for (size_t i = 0; i < (size_t)d->waited_cap * d->waited_cap; i++)
		d->waited[i] = d->serial;
}
