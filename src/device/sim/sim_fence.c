/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences on the simulated card. Nothing runs here, so a fence is a stamp of recorded time. It is
 * done when the lag of work has passed (the card's, else the caller's), or when its stream (or the
 * device) was synchronised after it. On an idle card it is done at once.
 *
 * Stamps are recorded times, raised by a nanosecond where needed to distinguish "before" and
 * "after" a synchronise at the same time; so there is no table of fences. A fence packs stamp and
 * stream: 52 bits of nanoseconds (52 days) and 12 bits of stream. Further streams share the last
 * number, and only a device-wide synchronise counts for them. Later times count as the last stamp,
 * which errs towards "not done".
 */
#include "sim.h"

#include <string.h>

#define STREAM_BITS 12
#define STREAM_SHARED ((1u << STREAM_BITS) - 1)
#define STAMP_MAX ((1ull << (64 - STREAM_BITS)) - 1)

void frag_sim_fence_release(struct sim *sim)
{
	frag_host_free(sim->fence.synced);
}

static uint64_t stamp_now(const struct sim *sim)
{
	/* stamps start at 1, so "never synchronised" is below all of them */
	return FRAG_MIN(sim->dev->now_ns, STAMP_MAX - 1) + 1;
}

static uint64_t synced_until(const struct sim_fence *f, uint32_t stream)
{
	uint64_t own = stream < f->streams_count ? f->synced[stream] : 0;

	return FRAG_MAX(own, f->synced_all);
}

int frag_sim_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			  struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_fence *f = &sim->fence;
	uint64_t stamp = stamp_now(sim);

	(void)err;
	stream = FRAG_MIN(stream, STREAM_SHARED);
	stamp = FRAG_MAX(stamp, synced_until(f, stream) + 1);
	stamp = FRAG_MIN(stamp, STAMP_MAX);
	f->newest = FRAG_MAX(f->newest, stamp);
	*fence = stamp << STREAM_BITS | stream;
	*ns = frag_sim_cost(sim, FRAG_CALL_FENCE, 0);
	return 0;
}

int frag_sim_fence_done(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			struct frag_err *err)
{
	struct sim *sim = priv;
	uint64_t stamp = fence >> STREAM_BITS, now = stamp_now(sim);

	(void)err;
	*ns = frag_sim_cost(sim, FRAG_CALL_QUERY, 0);
	lag_ns = frag_sim_lag(sim, lag_ns);
	*done = !lag_ns || stamp <= synced_until(&sim->fence, fence & STREAM_SHARED) ||
		(now >= stamp && now - stamp >= lag_ns);
	return 0;
}

/* Makes room for the stamps of `stream`. */
static int grow(struct sim_fence *f, uint32_t stream, struct frag_err *err)
{
	uint32_t count = FRAG_MIN(FRAG_MAX(stream + 1, 2 * f->streams_count), STREAM_SHARED);
	uint64_t *synced;

	if (stream < f->streams_count)
		return 0;
	synced = frag_host_realloc(f->synced, count, sizeof(*synced));
	FRAG_CHECK_ALLOC(synced, "streams of the simulated card", err);
	memset(synced + f->streams_count, 0, (count - f->streams_count) * sizeof(*synced));
	f->synced = synced;
	f->streams_count = count;
	return 0;
}

int frag_sim_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		  struct frag_err *err)
{
	struct sim *sim = priv;
	struct sim_fence *f = &sim->fence;
	uint64_t stamp = FRAG_MAX(stamp_now(sim), f->newest);

	*ns = frag_sim_cost(sim, whole_device ? FRAG_CALL_DEVICE_SYNC : FRAG_CALL_SYNC, 0);
	if (whole_device) {
		f->synced_all = stamp;
	} else if (stream < STREAM_SHARED) {
		FRAG_TRY(grow(f, stream, err));
		f->synced[stream] = stamp;
	}
	frag_sim_mempools_sync(sim, stream, whole_device, ns);
	return 0;
}
