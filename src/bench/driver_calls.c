/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of driver calls by size. A sample is what the front of the device counted for one
 * call, so real and simulated cards are measured alike. Every group of calls runs once as a
 * warm-up and then `repeats` times; memory of a group is held together, so that an
 * allocation is one that grows, and is given back in the same order.
 */
#include "bench.h"
#include "lib/grow.h"

#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

#define MIB FRAG_MIB
#define HELD_MAX 64u /* pieces held at a time */

static const uint64_t sizes[] = { 2 * MIB,    4 * MIB,	  8 * MIB,   16 * MIB,	20 * MIB,
				  32 * MIB,   64 * MIB,	  128 * MIB, 256 * MIB, 512 * MIB,
				  1024 * MIB, 2048 * MIB, 4096 * MIB };

/* ---- samples ----------------------------------------------------------------------- */

static struct frag_bench_row *row_of(struct frag_bench *b, const char *item, uint64_t bytes,
				     uint32_t handles)
{
	for (size_t i = b->rows_count; i-- > 0;) {
		struct frag_bench_row *r = &b->rows[i];

		if (r->bytes == bytes && r->handles == handles && !strcmp(r->item, item))
			return r;
	}
	if (FRAG_GROW(b->rows, b->rows_count, b->rows_cap, "samples", NULL))
		return NULL;
	b->rows[b->rows_count] =
		(struct frag_bench_row){ .item = item, .bytes = bytes, .handles = handles };
	return &b->rows[b->rows_count++];
}

static int add_sample(struct frag_bench *b, const char *item, uint64_t bytes, uint32_t handles,
		      uint64_t ns, struct frag_err *err)
{
	struct frag_bench_row *r;

	if (!b->warm)
		return 0;
	r = row_of(b, item, bytes, handles);
	FRAG_CHECK_ALLOC(r, "samples", err);
	FRAG_TRY(FRAG_GROW(r->ns, r->count, r->cap, "samples", err));
	r->ns[r->count++] = ns;
	return 0;
}

uint64_t frag_bench_quantile(const struct frag_bench_row *r, double q)
{
	size_t i = (size_t)(q * (double)r->count);

	return r->count ? r->ns[FRAG_MIN(i, r->count - 1)] : 0;
}

int frag_bench_open(struct frag_bench *b, const struct frag_session_host *host,
		    const struct frag_limit *limit, struct frag_err *err)
{
	uint64_t left = 0, total = 0;

	FRAG_TRY(host->open(host->ctx, 0, &b->dev, err));
	FRAG_TRY(frag_dev_mem_info(b->dev, &left, &total, err));
	b->budget_bytes =
		FRAG_MIN(FRAG_MIN(left / 2, frag_limit_bytes(limit, total)), 32 * FRAG_GIB);
	return frag_dev_make_ready(b->dev, 0, err);
}

void frag_bench_release(struct frag_bench *b)
{
	if (b->dev)
		frag_dev_close(b->dev);
	for (size_t i = 0; i < b->rows_count; i++)
		frag_host_free(b->rows[i].ns);
	frag_host_free(b->rows);
	*b = (struct frag_bench){ 0 };
}

/* Makes a call of the front, and a sample of what it took; `item` is looked at after the call. FRAG_OOM is an error here. */
#define SAMPLE(b, item, bytes, handles, call) \
	do { \
		uint64_t before_ = (b)->dev->driver_ns; \
		int rc_ = (call); \
		if (rc_ == FRAG_OOM) \
			return frag_fail(err, FRAG_EDEVICE, "%s: out of memory", (item)); \
		FRAG_TRY(rc_); \
		FRAG_TRY(add_sample((b), (item), (bytes), (handles), \
				    (b)->dev->driver_ns - before_, err)); \
	} while (0)

/* ---- cudaMalloc -------------------------------------------------------------------- */

static unsigned pieces_for(const struct frag_bench *b, uint64_t bytes)
{
	uint64_t fit = b->budget_bytes / bytes;

	return (unsigned)FRAG_MIN(FRAG_MIN(fit, (uint64_t)b->repeats), (uint64_t)HELD_MAX);
}

static int bench_malloc(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	frag_addr_t at[HELD_MAX];
	unsigned n = pieces_for(b, bytes);

	for (unsigned i = 0; i < n; i++)
		SAMPLE(b, "cudaMalloc", bytes, 1, frag_dev_alloc(b->dev, bytes, &at[i], err));
	for (unsigned i = 0; i < n; i++)
		SAMPLE(b, "cudaFree", bytes, 1, frag_dev_free(b->dev, at[i], bytes, err));
	return 0;
}

/* Requests that share pages: whether a page was opened or closed shows in the reserved bytes. */
static int bench_small(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	frag_addr_t at[HELD_MAX];

	for (unsigned i = 0; i < HELD_MAX; i++) {
		uint64_t held = b->dev->reserved_bytes;

		SAMPLE(b, b->dev->reserved_bytes > held ? "cudaMalloc.page" : "cudaMalloc.hit",
		       bytes, 1, frag_dev_alloc(b->dev, bytes, &at[i], err));
	}
	for (unsigned i = 0; i < HELD_MAX; i++) {
		uint64_t held = b->dev->reserved_bytes;

		SAMPLE(b, b->dev->reserved_bytes < held ? "cudaFree.page" : "cudaFree.hit", bytes,
		       1, frag_dev_free(b->dev, at[i], bytes, err));
	}
	return 0;
}

static int expect_oom(int rc, struct frag_err *err)
{
	return rc == FRAG_OOM ? 0 : frag_fail(err, FRAG_EDEVICE, "the whole card was not refused");
}

static int bench_refused(struct frag_bench *b, struct frag_err *err)
{
	struct frag_device_info info;
	frag_addr_t at;
	uint64_t handle;

	frag_dev_info(b->dev, &info);
	if (!info.context_bytes)
		return 0; /* endless */
	for (unsigned i = 0; i < 8; i++) {
		SAMPLE(b, "cudaMalloc.refused", 0, 1,
		       expect_oom(frag_dev_alloc(b->dev, info.total_bytes, &at, err), err));
		if (info.can & FRAG_CAN_VMM)
			SAMPLE(b, "cuMemCreate.refused", 0, 1,
			       expect_oom(frag_dev_create(b->dev,
							  frag_round_up(info.total_bytes,
									info.granule_bytes),
							  &handle, err),
					  err));
	}
	return 0;
}

/* ---- virtual memory management ----------------------------------------------------- */

/* Ranges of one handle each, step by step over all of them. */
static int bench_vmm(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	frag_addr_t at[HELD_MAX];
	uint64_t handle[HELD_MAX];
	unsigned n = pieces_for(b, bytes), i;

	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemAddressReserve", bytes, 1,
		       frag_dev_reserve(d, bytes, 0, &at[i], err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemCreate", bytes, 1, frag_dev_create(d, bytes, &handle[i], err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemMap", bytes, 1, frag_dev_map(d, at[i], bytes, handle[i], err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemSetAccess", bytes, 1, frag_dev_set_access(d, at[i], bytes, err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemUnmap", bytes, 1, frag_dev_unmap(d, at[i], bytes, err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemRelease", bytes, 1, frag_dev_release(d, handle[i], bytes, err));
	for (i = 0; i < n; i++)
		SAMPLE(b, "cuMemAddressFree", bytes, 1, frag_dev_unreserve(d, at[i], bytes, err));
	return 0;
}

/* One range of many handles: one call over all of them. */
static int bench_many(struct frag_bench *b, uint64_t bytes, uint32_t n, struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *handle = NULL;
	struct frag_device *d = b->dev;
	frag_addr_t at = 0;

	FRAG_TRY_CALLOC(handle, n, "handles", err);
	FRAG_TRY(frag_dev_reserve(d, bytes * n, 0, &at, err));
	for (uint32_t i = 0; i < n; i++) {
		int rc = frag_dev_create(d, bytes, &handle[i], err)
				 ?: frag_dev_map(d, at + i * bytes, bytes, handle[i], err);

		if (rc == FRAG_OOM)
			return frag_fail(err, FRAG_EDEVICE, "many handles: out of memory");
		FRAG_TRY(rc);
	}
	SAMPLE(b, "cuMemSetAccess", bytes, n, frag_dev_set_access(d, at, bytes * n, err));
	SAMPLE(b, "cuMemUnmap", bytes, n, frag_dev_unmap(d, at, bytes * n, err));
	for (uint32_t i = 0; i < n; i++)
		FRAG_TRY(frag_dev_release(d, handle[i], bytes, err));
	return frag_dev_unreserve(d, at, bytes * n, err);
}

static int bench_handles(struct frag_bench *b, struct frag_err *err)
{
	static const struct {
		uint64_t bytes;
		uint32_t handles;
	} shapes[] = { { 2 * MIB, 2 },	 { 2 * MIB, 8 },   { 2 * MIB, 32 },
		       { 2 * MIB, 128 }, { 2 * MIB, 512 }, { 20 * MIB, 64 },
		       { 64 * MIB, 16 }, { 256 * MIB, 8 }, { 1024 * MIB, 4 } };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(shapes); i++) {
		for (unsigned k = 0; k < FRAG_MIN(b->repeats, 8u); k++) {
			if (shapes[i].bytes * shapes[i].handles <= b->budget_bytes)
				FRAG_TRY(bench_many(b, shapes[i].bytes, shapes[i].handles, err));
		}
	}
	return 0;
}

/* ---- streams ----------------------------------------------------------------------- */

static int bench_streams(struct frag_bench *b, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t fence, left, total;
	bool done;

	for (unsigned i = 0; i < 16 * b->repeats; i++) {
		SAMPLE(b, "cudaEventRecord", 0, 1, frag_dev_fence_record(d, 1, &fence, err));
		SAMPLE(b, "cudaEventQuery", 0, 1, frag_dev_fence_done(d, fence, 0, &done, err));
		SAMPLE(b, "cudaStreamSynchronize", 0, 1, frag_dev_sync(d, 1, err));
		SAMPLE(b, "cudaDeviceSynchronize", 0, 1, frag_dev_sync_all(d, err));
		SAMPLE(b, "cudaMemGetInfo", 0, 1, frag_dev_mem_info(d, &left, &total, err));
	}
	return 0;
}

/* ---- stream-ordered pools and managed memory ------------------------------------------- */

/* Growth, then a request that the pool has memory for. */
static int bench_pool(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	static const struct frag_mempool_attr keep_all = { .release_threshold = UINT64_MAX };
	static const char *const items[] = { "cudaMallocAsync (new memory)", "cudaMallocAsync" };
	struct frag_device *d = b->dev;
	uint64_t pool;
	frag_addr_t at;

	SAMPLE(b, "cudaMemPoolCreate", 0, 1, frag_dev_mempool_create(d, &keep_all, &pool, err));
	for (unsigned i = 0; i < 2; i++) {
		SAMPLE(b, items[i], bytes, 1, frag_dev_mempool_alloc(d, pool, bytes, 1, &at, err));
		SAMPLE(b, "cudaFreeAsync", bytes, 1,
		       frag_dev_mempool_free(d, pool, at, bytes, 1, err));
		FRAG_TRY(frag_dev_sync(d, 1, err));
	}
	SAMPLE(b, "cudaMemPoolTrimTo", bytes, 1, frag_dev_mempool_trim(d, pool, 0, err));
	SAMPLE(b, "cudaMemPoolDestroy", 0, 1, frag_dev_mempool_destroy(d, pool, err));
	return 0;
}

/* The first prefetch zeroes pages on the card, the second finds them there. */
static int bench_managed(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	frag_addr_t at;

	SAMPLE(b, "cudaMallocManaged", bytes, 1, frag_dev_managed_alloc(d, bytes, &at, err));
	SAMPLE(b, "cudaMemPrefetchAsync (new memory)", bytes, 1,
	       frag_dev_managed_touch(d, at, bytes, true, err));
	SAMPLE(b, "cudaMemPrefetchAsync", bytes, 1,
	       frag_dev_managed_touch(d, at, bytes, true, err));
	SAMPLE(b, "cudaFree(managed)", bytes, 1, frag_dev_managed_free(d, at, bytes, err));
	return 0;
}

/* ---- all --------------------------------------------------------------------------- */

static int calls(struct frag_bench *b, struct frag_err *err)
{
	static const uint64_t small[] = { 512, 64 * FRAG_KIB, 512 * FRAG_KIB };
	struct frag_device_info info;

	frag_dev_info(b->dev, &info);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(small); i++)
		FRAG_TRY(bench_small(b, small[i], err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes); i++) {
		if (pieces_for(b, sizes[i]))
			FRAG_TRY(bench_malloc(b, sizes[i], err));
	}
	FRAG_TRY(bench_refused(b, err));
	for (size_t i = 0; info.can & FRAG_CAN_VMM && i < FRAG_ARRAY_LEN(sizes); i++) {
		if (pieces_for(b, sizes[i]))
			FRAG_TRY(bench_vmm(b, sizes[i], err));
	}
	if (info.can & FRAG_CAN_VMM)
		FRAG_TRY(bench_handles(b, err));
	FRAG_TRY(bench_streams(b, err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes) && sizes[i] <= b->budget_bytes; i++) {
		for (unsigned k = 0; k < FRAG_MIN(b->repeats, 8u); k++) {
			if (info.can & FRAG_CAN_ASYNC)
				FRAG_TRY(bench_pool(b, sizes[i], err));
			if (info.can & FRAG_CAN_MANAGED && sizes[i] <= FRAG_GIB)
				FRAG_TRY(bench_managed(b, sizes[i], err));
		}
	}
	return 0;
}

int frag_bench_calls(struct frag_bench *b, struct frag_err *err)
{
	unsigned repeats = b->repeats;

	b->repeats = FRAG_MIN(repeats, 4u);
	FRAG_TRY(calls(b, err));
	b->warm = true;
	b->repeats = repeats;
	FRAG_TRY(calls(b, err));
	for (size_t i = 0; i < b->rows_count; i++)
		qsort(b->rows[i].ns, b->rows[i].count, sizeof(uint64_t), frag_compare_u64);
	return 0;
}
