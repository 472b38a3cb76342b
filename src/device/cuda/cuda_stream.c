/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and fences on a real card. Stream 0 of a trace is the default stream of CUDA, the others
 * are created at first use, and do not synchronise with the default stream (like PyTorch's).
 *
 * A fence is an event from a growing ring, reused when it is known to be done. Its number has 20
 * bits of place and 44 of serial number, so a fence is done if its event has a newer serial number.
 */
#include "cuda_internal.h"

#include <string.h>

#define PLACE_BITS 20
#define FENCES_MAX (1u << PLACE_BITS)
#define STREAMS_MAX 65536u

static int grow_streams(struct cuda *c, uint32_t stream, struct frag_err *err)
{
	uint32_t count = FRAG_MAX(stream + 1, 2 * c->streams_count);
	cudaStream_t *streams;

	if (stream >= STREAMS_MAX)
		return frag_fail(err, FRAG_EDEVICE, "cudaStreamCreate: stream %u is beyond %u",
				 stream, STREAMS_MAX);
	streams = frag_host_realloc(c->streams, count, sizeof(*streams));
	FRAG_CHECK_ALLOC(streams, "streams", err);
	memset(streams + c->streams_count, 0, (count - c->streams_count) * sizeof(*streams));
	c->streams = streams;
	c->streams_count = count;
	return 0;
}

int frag_cuda_stream(struct cuda *c, uint32_t stream, cudaStream_t *out, struct frag_err *err)
{
	*out = NULL;
	if (!stream)
		return 0;
	if (stream >= c->streams_count)
		FRAG_TRY(grow_streams(c, stream, err));
	if (!c->streams[stream])
		FRAG_TRY(RT(err, cudaStreamCreateWithFlags, &c->streams[stream],
			    cudaStreamNonBlocking));
	*out = c->streams[stream];
	return 0;
}

/* ---- fences ------------------------------------------------------------------------ */

static int more_fences(struct cuda *c, struct frag_err *err)
{
	uint32_t count = c->fences_count ? 2 * c->fences_count : 64;
	struct cuda_fence *fences;

	if (count > FENCES_MAX)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaEventCreate: %u fences wait for work that "
				 "does not end",
				 FENCES_MAX);
	fences = frag_host_realloc(c->fences, count, sizeof(*fences));
	FRAG_CHECK_ALLOC(fences, "fences", err);
	c->fences = fences;
	memset(fences + c->fences_count, 0, (count - c->fences_count) * sizeof(*fences));
	c->fence_next = c->fences_count;
	c->fences_count = count;
	return 0;
}

/* A fence with finished work is free even if it was never queried. */
static bool in_use(struct cuda_fence *f)
{
	if (f->open && cudaEventQuery(f->event) == cudaSuccess)
		f->open = false;
	return f->open;
}

/* Finds an unused event: checks a few places, then grows the ring. */
static int free_fence(struct cuda *c, struct cuda_fence **out, struct frag_err *err)
{
	uint32_t tries = FRAG_MIN(c->fences_count, 64u), i = 0;

	while (i < tries && in_use(&c->fences[c->fence_next])) {
		c->fence_next = (c->fence_next + 1) % c->fences_count;
		i++;
	}
	if (i == tries)
		FRAG_TRY(more_fences(c, err));
	*out = &c->fences[c->fence_next];
	c->fence_next = (c->fence_next + 1) % c->fences_count;
	if ((*out)->event)
		return 0;
	return RT(err, cudaEventCreateWithFlags, &(*out)->event, cudaEventDisableTiming);
}

int frag_cuda_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			   struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_fence *f;
	cudaStream_t s;
	uint64_t start;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	FRAG_TRY(free_fence(c, &f, err));
	start = frag_clock_ns();
	FRAG_TRY(RT(err, cudaEventRecord, f->event, s));
	*ns = frag_clock_ns() - start;
	f->serial = ++c->fence_serial;
	f->open = true;
	*fence = f->serial << PLACE_BITS | (uint64_t)(f - c->fences);
	return 0;
}

int frag_cuda_fence_done(void *priv, uint64_t fence, uint64_t lag_ns, bool *done, uint64_t *ns,
			 struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t place = fence % FENCES_MAX;
	struct cuda_fence *f = &c->fences[place];
	cudaError_t rc;

	(void)lag_ns, (void)ns;
	if (place >= c->fences_count)
		return frag_fail(err, FRAG_EDEVICE, "cudaEventQuery: unknown fence");
	*done = true;
	if (!f->open || f->serial != fence >> PLACE_BITS)
		return 0;
	rc = cudaEventQuery(f->event);
	*done = rc == cudaSuccess;
	if (rc != cudaErrorNotReady)
		FRAG_TRY(frag_cuda_rt_check(rc, "cudaEventQuery", err));
	f->open = !*done;
	return 0;
}

int frag_cuda_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		   struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s;
	uint64_t since;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(whole_device ? RT(err, cudaDeviceSynchronize) : RT(err, cudaStreamSynchronize, s));
	frag_cuda_took(since, ns);
	frag_cuda_mempools_stale(c); /* pools return memory at a synchronise */
	return 0;
}

void frag_cuda_streams_release(struct cuda *c)
{
	for (uint32_t i = 0; i < c->fences_count; i++) {
		if (c->fences[i].event)
			(void)cudaEventDestroy(c->fences[i].event);
	}
	for (uint32_t i = 0; i < c->streams_count; i++) {
		if (c->streams[i])
			(void)cudaStreamDestroy(c->streams[i]);
	}
	FRAG_FREE(c->fences, c->streams);
}
