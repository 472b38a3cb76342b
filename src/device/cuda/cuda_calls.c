/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's operations (device/driver) as measurements want them: within the part of the card
 * that is used, on streams that are made at first use.
 *
 * Streams. Stream 0 of a trace is the default stream of CUDA; the others do not synchronise with it
 * (like PyTorch's).
 *
 * Contents: memory of a pool belongs to its stream from the malloc to the free, so work on contents
 * follows the stream, and a free on the stream follows the work.
 */
#include "cuda_internal.h"

#define STREAMS_MAX 65536u

int frag_cuda_rt_check(cudaError_t rc, const char *call, struct frag_err *err)
{
	if (FRAG_LIKELY(rc == cudaSuccess))
		return 0;
	(void)cudaGetLastError(); /* reported here, so clear it for the next call */
	frag_fail(err, FRAG_EDEVICE, "%s: %s (%s)", call, cudaGetErrorName(rc),
		  cudaGetErrorString(rc));
	if (err)
		err->cuda_code = (int)rc;
	return FRAG_EDEVICE;
}

int frag_cuda_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	struct cuda *c = priv;

	if (bytes > SIZE_MAX / 2 || !frag_cuda_room(c, frag_cuda_held(c), bytes))
		return FRAG_OOM;
	FRAG_TRY(frag_cu_card_alloc(&c->card, bytes, out, ns, err));
	if (frag_cuda_room(c, frag_cuda_held(c), 0))
		return 0;
	/* the request fits, its pages do not */
	FRAG_TRY(frag_cu_card_free(&c->card, *out, ns, err));
	return FRAG_OOM;
}

int frag_cuda_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		     struct frag_err *err)
{
	struct cuda *c = priv;

	return frag_cuda_room(c, frag_cuda_held(c), bytes)
		       ? frag_cu_card_create(&c->card, bytes, handle, ns, err)
		       : FRAG_OOM;
}

/* ---- streams ----------------------------------------------------------------------- */

int frag_cuda_stream(struct cuda *c, uint32_t stream, cudaStream_t *out, struct frag_err *err)
{
	struct frag_cu_card *card = &c->card;

	if (stream >= STREAMS_MAX)
		return frag_fail(err, FRAG_EDEVICE, "cudaStreamCreate: stream %u is beyond %u",
				 stream, STREAMS_MAX);
	FRAG_TRY(frag_cu_streams_room(card, stream + 1, err));
	card->streams_count = FRAG_MAX(card->streams_count, stream + 1);
	if (stream && !card->streams[stream])
		FRAG_TRY(RT(err, cudaStreamCreateWithFlags, (cudaStream_t *)&card->streams[stream],
			    cudaStreamNonBlocking));
	*out = card->streams[stream];
	return 0;
}

int frag_cuda_fence_record(void *priv, uint32_t stream, uint64_t *fence, uint64_t *ns,
			   struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	return frag_cu_card_fence_record(&c->card, stream, fence, ns, err);
}

int frag_cuda_sync(void *priv, uint32_t stream, bool whole_device, uint64_t *ns,
		   struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	return frag_cu_card_sync(&c->card, stream, whole_device, ns, err);
}

/* ---- pools ------------------------------------------------------------------------- */

int frag_cuda_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			    frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s;
	uint64_t start;
	int rc;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	if (bytes > SIZE_MAX / 2 || bytes > c->limit_bytes)
		return FRAG_OOM;
	start = frag_clock_ns();
	rc = frag_cu_card_mempool_alloc(&c->card, pool, bytes, stream, out, ns, err);
	*ns = frag_clock_ns() - start;
	if (rc || c->limit_bytes == UINT64_MAX || frag_cuda_room(c, frag_cuda_held(c), 0))
		return rc;
	/* the pool grew beyond the usable part of the card */
	FRAG_TRY(frag_cu_card_mempool_free(&c->card, pool, *out, stream, &start, err));
	FRAG_TRY(frag_cu_card_sync(&c->card, stream, false, &start, err));
	FRAG_TRY(frag_cu_card_mempool_trim(&c->card, pool, 0, &start, err));
	return FRAG_OOM;
}

int frag_cuda_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			   uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s = NULL;
	uint64_t start;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	FRAG_TRY(frag_cuda_content_precedes(c, s, err));
	start = frag_clock_ns();
	FRAG_TRY(frag_cu_card_mempool_free(&c->card, pool, addr, stream, ns, err));
	*ns = frag_clock_ns() - start;
	return 0;
}
