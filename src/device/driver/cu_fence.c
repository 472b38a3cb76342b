/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the program by index, events, and fences of policies.
 *
 * A fence is a place in a ring that grows: 20 bits of place and 44 of serial number, so one whose
 * place was used again is known to be done. One of a stream that is being captured must not be
 * recorded there (it would become part of the graph): it is `late`, and recorded when somebody asks
 * for it after the capture.
 */
#include "cu_card.h"

#include <string.h>

#include <frag/clock.h>

#include "lib/grow.h"

#define PLACE_BITS 20
#define FENCES_MAX (1u << PLACE_BITS)
#define TRIES 16u

/* ---- streams ------------------------------------------------------------------------------ */

int frag_cu_streams_room(struct frag_cu_card *c, uint32_t count, struct frag_err *err)
{
	uint32_t cap = FRAG_MAX(FRAG_MAX(count, 2 * c->streams_cap), 8u);
	void **more;

	if (count <= c->streams_cap)
		return 0;
	more = frag_host_realloc(c->streams, cap, sizeof(*more));
	FRAG_CHECK_ALLOC(more, "streams", err);
	memset(more + c->streams_cap, 0, (cap - c->streams_cap) * sizeof(*more));
	c->streams = more;
	c->streams_cap = cap;
	return 0;
}

int frag_cu_stream_index(struct frag_cu_card *c, void *stream, uint32_t *index,
			 struct frag_err *err)
{
	/* cudaStreamLegacy is the default stream by another name */
	if (stream == (void *)1)
		stream = NULL;
	if (FRAG_LIKELY(c->last_stream < c->streams_count &&
			c->streams[c->last_stream] == stream)) {
		*index = c->last_stream;
		return 0;
	}
	FRAG_TRY(frag_cu_streams_room(c, c->streams_count + 2, err));
	if (!c->streams_count)
		c->streams_count = 1; /* the default stream, used or not */
	for (uint32_t i = 0; i < c->streams_count; i++) {
		if (c->streams[i] == stream) {
			*index = c->last_stream = i;
			return 0;
		}
	}
	if (c->streams_count == UINT16_MAX)
		return frag_fail(err, FRAG_EDEVICE, "more than %u streams", UINT16_MAX);
	c->streams[c->streams_count] = stream;
	*index = c->last_stream = c->streams_count++;
	return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

int frag_cu_event_take(struct frag_cu_card *c, void **out, struct frag_err *err)
{
	if (c->events_count) {
		*out = c->events[--c->events_count];
		return 0;
	}
	return FRAG_CU(c->cu, err, cuEventCreate, out, FRAG_CU_EVENT_DISABLE_TIMING);
}

void frag_cu_event_give(struct frag_cu_card *c, void *event)
{
	/* if the list cannot grow, the event leaks: only the driver has it */
	if (!FRAG_GROW(c->events, c->events_count, c->events_cap, "events", NULL))
		c->events[c->events_count++] = event;
}

/* ---- fences ----------------------------------------------------------------------------- */

static bool in_use(const struct frag_cu_card *c, struct frag_cu_fence *f)
{
	if (f->late)
		return true;
	if (f->open && !c->captures && c->cu->cuEventQuery(f->event) == FRAG_CU_OK)
		f->open = false;
	return f->open;
}

static int more_fences(struct frag_cu_card *c, struct frag_err *err)
{
	uint32_t count = c->fences_count ? 2 * c->fences_count : 64;
	struct frag_cu_fence *fences;

	if (count > FENCES_MAX)
		return frag_fail(err, FRAG_EDEVICE, "%u fences wait for work that never ends",
				 FENCES_MAX);
	fences = frag_host_realloc(c->fences, count, sizeof(*fences));
	FRAG_CHECK_ALLOC(fences, "fences", err);
	memset(fences + c->fences_count, 0, (count - c->fences_count) * sizeof(*fences));
	c->fences = fences;
	c->fence_next = c->fences_count;
	c->fences_count = count;
	return 0;
}

/* pre: entered */
static int free_place(struct frag_cu_card *c, struct frag_cu_fence **out, struct frag_err *err)
{
	uint32_t tries = FRAG_MIN(c->fences_count, TRIES), i = 0;

	while (i < tries && in_use(c, &c->fences[c->fence_next])) {
		c->fence_next = (c->fence_next + 1) % c->fences_count;
		i++;
	}
	if (i == tries)
		FRAG_TRY(more_fences(c, err));
	*out = &c->fences[c->fence_next];
	c->fence_next = (c->fence_next + 1) % c->fences_count;
	return (*out)->event ? 0 : frag_cu_event_take(c, &(*out)->event, err);
}

static bool is_capturing(const struct frag_cu_card *c, uint32_t stream)
{
	int status = 0;

	return c->captures && stream &&
	       (c->cu->cuStreamIsCapturing(c->streams[stream], &status) != FRAG_CU_OK || status);
}

static int record(struct frag_cu_card *c, uint32_t stream, uint64_t *fence, uint64_t *ns,
		  struct frag_err *err)
{
	struct frag_cu_fence *f;
	uint64_t start;

	FRAG_TRY(free_place(c, &f, err));
	f->late = is_capturing(c, stream);
	start = frag_clock_ns();
	if (!f->late)
		FRAG_TRY(FRAG_CU(c->cu, err, cuEventRecord, f->event, c->streams[stream]));
	*ns = frag_clock_ns() - start;
	f->stream = stream;
	f->serial = ++c->fence_serial;
	f->open = true;
	*fence = f->serial << PLACE_BITS | (uint64_t)(f - c->fences);
	return 0;
}

int frag_cu_card_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			      struct frag_err *err)
{
	struct frag_cu_card *c = priv;

	if (stream >= c->streams_count)
		return frag_fail(err, FRAG_EDEVICE, "cuEventRecord: unknown stream %u", stream);
	FRAG_CU_ENTERED(c);
	return record(c, stream, fence, ns, err);
}

static int query(struct frag_cu_card *c, struct frag_cu_fence *f, bool *done, struct frag_err *err)
{
	int rc;

	if (f->late) {
		FRAG_TRY(FRAG_CU(c->cu, err, cuEventRecord, f->event, c->streams[f->stream]));
		f->late = false;
	}
	rc = c->cu->cuEventQuery(f->event);
	*done = rc == FRAG_CU_OK;
	f->open = !*done;
	return rc == FRAG_CU_NOT_READY ? 0 : frag_cu_check(c->cu, rc, "cuEventQuery", err);
}

int frag_cu_card_fence_done(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			    struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	uint64_t place = fence % FENCES_MAX;

	if (place >= c->fences_count)
		return frag_fail(err, FRAG_EDEVICE, "cuEventQuery: unknown fence");
	*done = !c->fences[place].open || c->fences[place].serial != fence >> PLACE_BITS;
	if (*done || c->captures)
		return 0;
	FRAG_CU_ENTERED(c);
	return query(c, &c->fences[place], done, err);
}

int frag_cu_card_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		      struct frag_err *err)
{
	struct frag_cu_card *c = priv;
	int rc;

	if (c->dead)
		return 0;
	if (c->captures)
		return frag_fail(err, FRAG_EDEVICE,
				 "cannot wait for the card while a CUDA graph is being captured");
	rc = whole_device ? FRAG_CARD_CALL(c, err, cuCtxSynchronize)
			  : FRAG_CARD_CALL(c, err, cuStreamSynchronize, c->streams[stream]);
	c->idle = whole_device && !rc;
	return rc;
}
