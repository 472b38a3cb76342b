/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real card: opens, describes itself, closes, and counts the memory taken.
 *
 * The program starts without a driver or a card; frag_cuda_open reports both as ordinary errors. It
 * queries the card's abilities and assumes none.
 *
 * Observed. Whenever reserved memory reaches a new maximum, cudaMemGetInfo says how much less is
 * free than at opening. The difference from the back end's own count shows what that count misses,
 * including other programs on the card. Once there was managed memory, for which the driver takes
 * more than becomes resident, it is not asked.
 */
#include <frag/device.h>

#include "cuda_internal.h"

#include <stdio.h>
#include <string.h>

bool frag_cuda_built(void)
{
	return true;
}

int frag_cuda_count(void)
{
	int count = 0;

	return frag_cuda_rt_check(cudaGetDeviceCount(&count), "", NULL) ? 0 : count;
}

uint64_t frag_cuda_held(struct cuda *c)
{
	return c->card.memory.bytes + c->managed.resident_bytes + frag_cu_mempool_bytes(&c->card);
}

/* ---- observed -------------------------------------------------------------------- */

static void observe(struct cuda *c, uint64_t held)
{
	size_t left = 0, total = 0;

	c->observed_bytes = held;
	if (c->managed_ready || frag_cuda_rt_check(cudaMemGetInfo(&left, &total), "", NULL))
		return;
	c->observed.reserved_bytes = held;
	c->observed.mem_info_bytes =
		c->free_at_start_bytes > left ? c->free_at_start_bytes - left : 0;
}

uint64_t frag_cuda_reserved(void *priv)
{
	struct cuda *c = priv;
	uint64_t held = frag_cuda_held(c);

	if (FRAG_UNLIKELY(held > c->observed_bytes))
		observe(c, held);
	return held;
}

static void cuda_observed(void *priv, struct frag_dev_observed *out)
{
	struct cuda *c = priv;

	*out = c->observed;
	out->pair_ns = c->core.pair_ns;
	out->pair_after_ns = frag_cuda_core_pair(c);
}

/* ---- description ----------------------------------------------------------------- */

void frag_cuda_info(void *priv, struct frag_device_info *out)
{
	const struct cuda *c = priv;

	frag_cu_card_info(priv, out);
	memcpy(out->driver, c->driver, sizeof(out->driver));
}

int frag_cuda_mem_info(void *priv, uint64_t *free_bytes, uint64_t *total_bytes, uint64_t *ns,
		       struct frag_err *err)
{
	struct cuda *c = priv;

	FRAG_TRY(frag_cu_card_mem_info(&c->card, free_bytes, total_bytes, ns, err));
	if (c->limit_bytes == UINT64_MAX)
		return 0;
	*total_bytes = c->card.total_bytes;
	*free_bytes =
		FRAG_MIN(*free_bytes, c->limit_bytes - FRAG_MIN(c->limit_bytes, frag_cuda_held(c)));
	return 0;
}

/* ---- opening --------------------------------------------------------------------- */

static int attribute(const struct cuda *c, enum cudaDeviceAttr attr, int *out, struct frag_err *err)
{
	return RT(err, cudaDeviceGetAttribute, out, attr, c->cfg.ordinal);
}

/* Reports "no driver" and "no card" without the name of a call. */
static int find_card(int ordinal, struct frag_err *err)
{
	int count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	if (rc == cudaErrorInsufficientDriver || rc == cudaErrorNoDevice) {
		(void)cudaGetLastError();
		frag_fail(err, FRAG_EDEVICE, "cannot open cuda:%d: %s; use --device sim", ordinal,
			  rc == cudaErrorNoDevice
				  ? "no CUDA card found"
				  : "no NVIDIA driver, or it is too old for this program");
		if (err)
			err->cuda_code = (int)rc;
		return FRAG_EDEVICE;
	}
	FRAG_TRY(frag_cuda_rt_check(rc, "cudaGetDeviceCount", err));
	if (ordinal >= 0 && ordinal < count)
		return 0;
	return frag_fail(err, FRAG_EDEVICE, "cannot open cuda:%d: there %s %d CUDA card%s", ordinal,
			 count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
}

static int describe(struct cuda *c, struct frag_err *err)
{
	int major = 0, minor = 0, runtime = 0, concurrent = 0, driver = c->card.driver_version;
	const char *version = "of unknown version";
	const struct frag_nvml *nvml;

	FRAG_TRY(attribute(c, cudaDevAttrComputeCapabilityMajor, &major, err));
	FRAG_TRY(attribute(c, cudaDevAttrComputeCapabilityMinor, &minor, err));
	FRAG_TRY(attribute(c, cudaDevAttrConcurrentManagedAccess, &concurrent, err));
	FRAG_TRY(attribute(c, cudaDevAttrMultiProcessorCount, &c->processors, err));
	FRAG_TRY(RT(err, cudaRuntimeGetVersion, &runtime));
	c->concurrent_managed = concurrent;
	nvml = frag_nvml_shared();
	if (nvml && *frag_nvml_driver(nvml))
		version = frag_nvml_driver(nvml);
	snprintf(c->driver, sizeof(c->driver), "driver %.31s (CUDA %d.%d), runtime %d.%d, sm_%d%d",
		 version, driver / 1000, driver % 100 / 10, runtime / 1000, runtime % 100 / 10,
		 major, minor);
	return 0;
}

static int measure_start(struct cuda *c, struct frag_err *err)
{
	struct frag_cu_card *card = &c->card;

	c->free_at_start_bytes = card->total_bytes - card->context_bytes;
	c->limit_bytes = UINT64_MAX;
	if (!c->cfg.total_bytes)
		return 0;
	if (c->cfg.total_bytes > card->total_bytes || c->cfg.context_bytes > c->cfg.total_bytes)
		return FRAG_USAGE(err,
				  "cannot use %llu bytes (%llu of them for the context) of a card "
				  "with %llu",
				  (unsigned long long)c->cfg.total_bytes,
				  (unsigned long long)c->cfg.context_bytes,
				  (unsigned long long)card->total_bytes);
	card->total_bytes = c->cfg.total_bytes;
	card->context_bytes = c->cfg.context_bytes;
	c->limit_bytes = card->total_bytes - card->context_bytes;
	return 0;
}

static int open_card(struct cuda *c, struct frag_err *err)
{
	FRAG_TRY(find_card(c->cfg.ordinal, err));
	FRAG_TRY(RT(err, cudaSetDevice, c->cfg.ordinal));
	FRAG_TRY(RT(err, cudaFree, NULL)); /* creates the context, before 12.0 too */
	c->card.own_thread = c->card.fenced = true;
	FRAG_TRY(frag_cu_card_init(&c->card, c->cfg.ordinal, err));
	FRAG_TRY(describe(c, err));
	return measure_start(c, err);
}

void frag_cuda_close(void *priv)
{
	struct cuda *c = priv;
	struct frag_cu_card *card = &c->card;

	(void)cudaDeviceSynchronize();
	frag_cuda_content_release(c);
	/* fences before their streams */
	for (uint32_t i = 0; i < card->fences_count; i++) {
		if (card->fences[i].event)
			(void)cudaEventDestroy(card->fences[i].event);
	}
	for (uint32_t i = 0; i < card->streams_count; i++) {
		if (card->streams[i])
			(void)cudaStreamDestroy(card->streams[i]);
	}
	if (card->memory.bytes || card->memory.mappings.count || card->pools ||
	    c->managed.live.count)
		(void)cudaDeviceReset(); /* a policy left it behind; the front reports the leak */
	frag_uvm_resident_release(&c->managed);
	frag_cu_card_forget(card);
	frag_cuda_core_release(c);
	(void)cudaGetLastError();
	frag_host_free(c);
}

static const struct frag_device_ops cuda_ops = {
	.name = "cuda",
	.summary = "a real card, through the CUDA driver and runtime",
	.close = frag_cuda_close,
	.info = frag_cuda_info,
	.alloc = frag_cuda_alloc,
	.free = frag_cu_card_free,
	.reserve = frag_cu_card_reserve,
	.unreserve = frag_cu_card_unreserve,
	.create = frag_cuda_create,
	.release = frag_cu_card_release,
	.map = frag_cu_card_map,
	.set_access = frag_cu_card_set_access,
	.unmap = frag_cu_card_unmap,
	.mempool_create = frag_cu_card_mempool_create,
	.mempool_destroy = frag_cu_card_mempool_destroy,
	.mempool_alloc = frag_cuda_mempool_alloc,
	.mempool_free = frag_cuda_mempool_free,
	.mempool_trim = frag_cu_card_mempool_trim,
	.mempool_usage = frag_cu_card_mempool_usage,
	.managed_alloc = frag_cuda_managed_alloc,
	.managed_free = frag_cuda_managed_free,
	.managed_touch = frag_cuda_managed_touch,
	.managed_usage = frag_cuda_managed_usage,
	.fence_record = frag_cuda_fence_record,
	.fence_done = frag_cu_card_fence_done,
	.sync = frag_cuda_sync,
	.mem_info = frag_cuda_mem_info,
	.reserved = frag_cuda_reserved,
	.content = frag_cuda_content,
	.content_fault = frag_cuda_content_fault,
	.observed = cuda_observed,
	.make_ready = frag_cuda_make_ready,
	.before = frag_cuda_before,
};

int frag_cuda_open_config(const struct frag_cuda_config *cfg, struct frag_device **out,
			  struct frag_err *err)
{
	struct cuda *c;
	int rc;

	FRAG_TRY_CALLOC(c, 1, "card", err);
	c->cfg = *cfg;
	frag_uvm_resident_init(&c->managed);
	rc = open_card(c, err) ?: frag_dev_open(&cuda_ops, c, out, err);
	if (rc)
		frag_cuda_close(c);
	return rc;
}

int frag_cuda_open(int ordinal, struct frag_device **out, struct frag_err *err)
{
	struct frag_cuda_config cfg = { .ordinal = ordinal };

	return frag_cuda_open_config(&cfg, out, err);
}
