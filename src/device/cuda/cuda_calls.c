/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's operations (device/driver) as measurements want them: within the part of the card that is used, behind
 * work on contents, on streams that are made at first use.
 *
 * Streams. Stream 0 of a trace is the default stream of CUDA; the others do not synchronise with it (like PyTorch's).
 *
 * Contents: memory of a pool belongs to its stream from the malloc to the free, so work on contents follows the
 * stream, and a free on the stream follows the work.
 */
#include "cuda_internal.h"

#include <string.h>

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
	FRAG_TRY(frag_cuda_free(c, *out, ns, err));
	return FRAG_OOM;
}

int frag_cuda_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t since = frag_cuda_quiesce(c);

	FRAG_TRY(frag_cu_card_free(&c->card, addr, ns, err));
	frag_cuda_took(since, ns);
	return 0;
}

int frag_cuda_create(void *priv, uint64_t bytes, uint64_t *handle, uint64_t *ns,
		     struct frag_err *err)
{
	struct cuda *c = priv;

	return frag_cuda_room(c, frag_cuda_held(c), bytes)
		       ? frag_cu_card_create(&c->card, bytes, handle, ns, err)
		       : FRAG_OOM;
}

/* The driver refuses ranges that are not whole mappings, and then does nothing. */
int frag_cuda_unmap(void *priv, frag_addr_t addr, uint64_t bytes, uint64_t *ns,
		    struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t since = frag_cuda_quiesce(c);

	FRAG_TRY(frag_cu_card_unmap(&c->card, addr, bytes, ns, err));
	frag_cuda_took(since, ns);
	return 0;
}

/* ---- streams ----------------------------------------------------------------------- */

static int grow_streams(struct frag_cu_card *c, uint32_t stream, struct frag_err *err)
{
	uint32_t count = FRAG_MAX(stream + 1, 2 * c->streams_count);
	void **streams;

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
	if (stream >= c->card.streams_count)
		FRAG_TRY(grow_streams(&c->card, stream, err));
	if (stream && !c->card.streams[stream])
		FRAG_TRY(RT(err, cudaStreamCreateWithFlags,
			    (cudaStream_t *)&c->card.streams[stream], cudaStreamNonBlocking));
	*out = c->card.streams[stream];
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
	uint64_t since;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(frag_cu_card_sync(&c->card, stream, whole_device, ns, err));
	frag_cuda_took(since, ns);
	return 0;
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
	cudaStream_t s;
	uint64_t start;

	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	FRAG_TRY(frag_cuda_content_precedes(c, s, err));
	start = frag_clock_ns();
	FRAG_TRY(frag_cu_card_mempool_free(&c->card, pool, addr, stream, ns, err));
	*ns = frag_clock_ns() - start;
	return 0;
}

int frag_cuda_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			   struct frag_err *err)
{
	struct cuda *c = priv;
	uint64_t since = frag_cuda_quiesce(c);

	FRAG_TRY(frag_cu_card_mempool_trim(&c->card, pool, keep_bytes, ns, err));
	frag_cuda_took(since, ns);
	return 0;
}

/* ---- what a policy left behind; the front reports the leak ---------------------------- */

void frag_cuda_free_all(const struct frag_addr_map *map)
{
	for (size_t i = 0; map->mask && i <= map->mask; i++) {
		if (map->cells[i].value)
			(void)cudaFree((void *)(uintptr_t)map->cells[i].addr);
	}
}

static void unmap_all(const struct frag_cu_card *c)
{
	const struct frag_addr_map *mappings = &c->memory.mappings, *handles = &c->memory.handles;
	const struct frag_drvmem_handle *h;

	for (size_t i = 0; mappings->mask && i <= mappings->mask; i++) {
		h = (void *)(uintptr_t)mappings->cells[i].value;
		if (h)
			(void)c->cu->cuMemUnmap(mappings->cells[i].addr, h->bytes);
	}
	for (size_t i = 0; handles->mask && i <= handles->mask; i++) {
		h = (void *)(uintptr_t)handles->cells[i].value;
		if (h)
			(void)c->cu->cuMemRelease(h->raw);
	}
}

void frag_cuda_calls_release(struct cuda *c)
{
	struct frag_cu_card *card = &c->card;
	uint64_t ns;

	unmap_all(card);
	frag_cuda_free_all(&card->memory.segments);
	while (card->pools &&
	       !frag_cu_card_mempool_destroy(card, (uintptr_t)card->pools->pool, &ns, NULL))
		;
	/* fences before their streams */
	for (uint32_t i = 0; i < card->fences_count; i++) {
		if (card->fences[i].event)
			(void)cudaEventDestroy(card->fences[i].event);
	}
	for (uint32_t i = 0; i < card->streams_count; i++) {
		if (card->streams[i])
			(void)cudaStreamDestroy(card->streams[i]);
	}
	frag_cu_card_forget(card);
}
