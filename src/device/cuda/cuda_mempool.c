/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMemPool on a real card. A pool's number is its address. Its reserved bytes are the driver's
 * figure (ReservedMemCurrent), read after calls that can change it.
 *
 * Contents: memory of a pool belongs to its stream from the malloc to the free, so work on contents
 * follows the stream, and a free on the stream follows the work.
 */
#include "cuda_internal.h"

#define LLU(x) ((unsigned long long)(x))

static int find_pool(struct cuda *c, const char *call, uint64_t id, struct cuda_mempool **out,
		     struct frag_err *err)
{
	for (struct cuda_mempool *p = c->pools; p; p = p->next) {
		if ((uintptr_t)p->pool == id) {
			*out = p;
			return 0;
		}
	}
	return frag_fail(err, FRAG_EDEVICE, "%s: unknown or destroyed pool 0x%llx", call, LLU(id));
}

static int set_flag(cudaMemPool_t pool, enum cudaMemPoolAttr attr, bool on, struct frag_err *err)
{
	int value = on;

	return RT(err, cudaMemPoolSetAttribute, pool, attr, &value);
}

static int set_attributes(cudaMemPool_t pool, const struct frag_mempool_attr *attr,
			  struct frag_err *err)
{
	uint64_t threshold = attr->release_threshold;

	FRAG_TRY(RT(err, cudaMemPoolSetAttribute, pool, cudaMemPoolAttrReleaseThreshold,
		    &threshold));
	FRAG_TRY(set_flag(pool, cudaMemPoolReuseFollowEventDependencies,
			  attr->reuse_follow_event_dependencies, err));
	FRAG_TRY(set_flag(pool, cudaMemPoolReuseAllowOpportunistic, attr->reuse_allow_opportunistic,
			  err));
	return set_flag(pool, cudaMemPoolReuseAllowInternalDependencies,
			attr->reuse_allow_internal_dependencies, err);
}

int frag_cuda_mempool_create(void *priv, const struct frag_mempool_attr *attr, uint64_t *pool,
			     uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location = { .type = cudaMemLocationTypeDevice, .id = c->cfg.ordinal },
	};
	struct cuda_mempool *p = frag_host_calloc(1, sizeof(*p));
	uint64_t start = frag_clock_ns();
	int rc;

	FRAG_CHECK_ALLOC(p, "pool", err);
	rc = RT(err, cudaMemPoolCreate, &p->pool, &props);
	*ns = frag_clock_ns() - start; /* without the attributes */
	if (!rc) {
		rc = set_attributes(p->pool, attr, err);
		if (rc)
			(void)cudaMemPoolDestroy(p->pool);
	}
	if (rc) {
		frag_host_free(p);
		return rc;
	}
	p->next = c->pools;
	c->pools = p;
	*pool = (uintptr_t)p->pool;
	return 0;
}

int frag_cuda_mempool_destroy(void *priv, uint64_t pool, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_mempool *p = NULL, **link = &c->pools;
	uint64_t start;

	FRAG_TRY(find_pool(c, "cudaMemPoolDestroy", pool, &p, err));
	/* destroying a pool with queued frees crashed a later synchronise inside the driver
	 * (580.159.04), although the documentation allows it */
	FRAG_TRY(RT(err, cudaDeviceSynchronize));
	start = frag_clock_ns();
	FRAG_TRY(RT(err, cudaMemPoolDestroy, p->pool));
	*ns = frag_clock_ns() - start;
	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	frag_host_free(p);
	return 0;
}

int frag_cuda_mempool_alloc(void *priv, uint64_t pool, uint64_t bytes, uint32_t stream,
			    frag_addr_t *out, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_mempool *p = NULL;
	cudaStream_t s;
	void *ptr = NULL;
	cudaError_t rc;
	uint64_t start;

	FRAG_TRY(find_pool(c, "cudaMallocAsync", pool, &p, err));
	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	if (bytes > SIZE_MAX / 2 || bytes > c->limit_bytes)
		return FRAG_OOM;
	start = frag_clock_ns();
	rc = cudaMallocFromPoolAsync(&ptr, bytes, p->pool, s);
	*ns = frag_clock_ns() - start;
	p->stale = true;
	if (rc == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError();
		return FRAG_OOM;
	}
	FRAG_TRY(frag_cuda_rt_check(rc, "cudaMallocAsync", err));
	*out = (uintptr_t)ptr;
	if (c->limit_bytes == UINT64_MAX || frag_cuda_room(c, frag_cuda_held(c), 0))
		return 0;
	/* the pool grew beyond the usable part of the card */
	FRAG_TRY(RT(err, cudaFreeAsync, ptr, s));
	FRAG_TRY(RT(err, cudaStreamSynchronize, s));
	FRAG_TRY(RT(err, cudaMemPoolTrimTo, p->pool, 0));
	p->stale = true;
	return FRAG_OOM;
}

int frag_cuda_mempool_free(void *priv, uint64_t pool, frag_addr_t addr, uint32_t stream,
			   uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_mempool *p = NULL;
	cudaStream_t s;
	uint64_t start;

	FRAG_TRY(find_pool(c, "cudaFreeAsync", pool, &p, err));
	FRAG_TRY(frag_cuda_stream(c, stream, &s, err));
	FRAG_TRY(frag_cuda_content_precedes(c, s, err));
	start = frag_clock_ns();
	FRAG_TRY(RT(err, cudaFreeAsync, (void *)(uintptr_t)addr, s));
	*ns = frag_clock_ns() - start;
	p->stale = true;
	return 0;
}

int frag_cuda_mempool_trim(void *priv, uint64_t pool, uint64_t keep_bytes, uint64_t *ns,
			   struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_mempool *p = NULL;
	uint64_t since;

	FRAG_TRY(find_pool(c, "cudaMemPoolTrimTo", pool, &p, err));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(RT(err, cudaMemPoolTrimTo, p->pool, keep_bytes));
	frag_cuda_took(since, ns);
	p->stale = true;
	return 0;
}

static uint64_t attribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr)
{
	uint64_t value = 0;

	if (frag_cuda_rt_check(cudaMemPoolGetAttribute(pool, attr, &value), "", NULL))
		return 0;
	return value;
}

void frag_cuda_mempool_usage(void *priv, uint64_t pool, struct frag_mempool_usage *out)
{
	struct cuda_mempool *p = NULL;

	if (find_pool(priv, "", pool, &p, NULL))
		return;
	*out = (struct frag_mempool_usage){
		.reserved_bytes = attribute(p->pool, cudaMemPoolAttrReservedMemCurrent),
		.reserved_peak_bytes = attribute(p->pool, cudaMemPoolAttrReservedMemHigh),
		.used_bytes = attribute(p->pool, cudaMemPoolAttrUsedMemCurrent),
		.used_peak_bytes = attribute(p->pool, cudaMemPoolAttrUsedMemHigh),
	};
}

uint64_t frag_cuda_mempools_bytes(struct cuda *c)
{
	uint64_t sum = 0;

	for (struct cuda_mempool *p = c->pools; p; p = p->next) {
		if (p->stale)
			p->reserved_bytes = attribute(p->pool, cudaMemPoolAttrReservedMemCurrent);
		p->stale = false;
		sum += p->reserved_bytes;
	}
	return sum;
}

void frag_cuda_mempools_stale(struct cuda *c)
{
	for (struct cuda_mempool *p = c->pools; p; p = p->next)
		p->stale = true;
}

void frag_cuda_mempools_release(struct cuda *c)
{
	while (c->pools) {
		struct cuda_mempool *p = c->pools;

		c->pools = p->next;
		(void)cudaMemPoolDestroy(p->pool);
		frag_host_free(p);
	}
}
