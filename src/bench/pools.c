/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered pools, managed memory, and the kernels of a card, for cufrag bench.
 *
 * A pool has parts that a profile prices by themselves: the call (a hit), new physical memory,
 * memory that moves to new addresses, memory given back. They are told apart by what the
 * pool held before and after.
 */
#include "bench.h"

#include <frag/base.h>
#include <frag/clock.h>

#define MIB FRAG_MIB
#define UNIT (32 * MIB) /* of growth of a pool, measured */

static const struct frag_mempool_attr keep_all = {
	.release_threshold = UINT64_MAX,
	.reuse_follow_event_dependencies = true,
	.reuse_allow_opportunistic = true,
	.reuse_allow_internal_dependencies = true,
};

/* ---- pools ------------------------------------------------------------------------- */

struct mempool_bench {
	struct frag_bench *b;
	uint64_t pool;
	uint64_t hit_ns; /* of the last hit: what the call itself takes */
};

static int take(struct mempool_bench *p, uint64_t bytes, frag_addr_t *at, uint64_t *ns,
		struct frag_err *err)
{
	uint64_t before = p->b->dev->driver_ns;
	int rc = frag_dev_mempool_alloc(p->b->dev, p->pool, bytes, 1, at, err);

	*ns = p->b->dev->driver_ns - before;
	return rc == FRAG_OOM ? frag_fail(err, FRAG_EDEVICE, "cudaMallocAsync: out of memory") : rc;
}

static int give(struct mempool_bench *p, frag_addr_t at, uint64_t bytes, struct frag_err *err)
{
	uint64_t before = p->b->dev->driver_ns;

	FRAG_TRY(frag_dev_mempool_free(p->b->dev, p->pool, at, bytes, 1, err));
	return frag_bench_add(p->b, "cudaFreeAsync", 0, 1, p->b->dev->driver_ns - before, err);
}

/* Growth, a hit, and giving back, of `bytes`. */
static int grow_hit_release(struct mempool_bench *p, uint64_t bytes, struct frag_err *err)
{
	struct frag_bench *b = p->b;
	uint64_t grown, before, held;
	frag_addr_t at;

	FRAG_TRY(take(p, bytes, &at, &grown, err));
	held = b->dev->reserved_bytes;
	FRAG_TRY(give(p, at, bytes, err));
	FRAG_TRY(frag_dev_sync(b->dev, 1, err));
	for (unsigned i = 0; i < 4; i++) {
		FRAG_TRY(take(p, bytes, &at, &p->hit_ns, err));
		FRAG_TRY(frag_bench_add(b, "cudaMallocAsync", 0, 1, p->hit_ns, err));
		FRAG_TRY(give(p, at, bytes, err));
		FRAG_TRY(frag_dev_sync(b->dev, 1, err));
	}
	FRAG_TRY(frag_bench_add(b, "cudaMallocAsync.new", bytes, 1,
				grown - FRAG_MIN(grown, p->hit_ns), err));
	before = b->dev->driver_ns;
	FRAG_TRY(frag_dev_mempool_trim(b->dev, p->pool, 0, err));
	if (b->dev->reserved_bytes < held)
		FRAG_TRY(frag_bench_add(b, "cudaMemPool.release", bytes, 1,
					b->dev->driver_ns - before, err));
	before = b->dev->driver_ns;
	FRAG_TRY(frag_dev_mempool_trim(b->dev, p->pool, 0, err));
	return frag_bench_add(b, "cudaMemPoolTrimTo", 0, 1, b->dev->driver_ns - before, err);
}

/* Every other unit is free: a request for their sum moves pages to new addresses. */
static int remap(struct mempool_bench *p, unsigned units, struct frag_err *err)
{
	struct frag_bench *b = p->b;
	frag_addr_t at[128], big;
	uint64_t ns, held;

	for (unsigned i = 0; i < 2 * units; i++)
		FRAG_TRY(take(p, UNIT, &at[i], &ns, err));
	for (unsigned i = 0; i < 2 * units; i += 2)
		FRAG_TRY(give(p, at[i], UNIT, err));
	FRAG_TRY(frag_dev_sync(b->dev, 1, err));
	held = b->dev->reserved_bytes;
	FRAG_TRY(take(p, units * UNIT, &big, &ns, err));
	if (b->dev->reserved_bytes == held)
		FRAG_TRY(frag_bench_add(b, "cudaMallocAsync.remap", units * UNIT, 1,
					ns - FRAG_MIN(ns, p->hit_ns), err));
	FRAG_TRY(give(p, big, units * UNIT, err));
	for (unsigned i = 1; i < 2 * units; i += 2)
		FRAG_TRY(give(p, at[i], UNIT, err));
	FRAG_TRY(frag_dev_sync(b->dev, 1, err));
	return frag_dev_mempool_trim(b->dev, p->pool, 0, err);
}

static int one_pool(struct mempool_bench *p, struct frag_err *err)
{
	static const unsigned units[] = { 1, 2, 8, 32, 64 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++) {
		if (units[i] * UNIT <= p->b->budget_bytes)
			FRAG_TRY(grow_hit_release(p, units[i] * UNIT, err));
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++) {
		if (3 * units[i] * UNIT <= p->b->budget_bytes)
			FRAG_TRY(remap(p, units[i], err));
	}
	return 0;
}

int frag_bench_pools(struct frag_bench *b, struct frag_err *err)
{
	for (unsigned i = 0; i < FRAG_MIN(b->repeats, 8u); i++) {
		struct mempool_bench p = { .b = b };
		uint64_t before = b->dev->driver_ns;

		FRAG_TRY(frag_dev_mempool_create(b->dev, &keep_all, &p.pool, err));
		FRAG_TRY(frag_bench_add(b, "cudaMemPoolCreate", 0, 1, b->dev->driver_ns - before,
					err));
		FRAG_TRY(one_pool(&p, err));
		before = b->dev->driver_ns;
		FRAG_TRY(frag_dev_mempool_destroy(b->dev, p.pool, err));
		FRAG_TRY(frag_bench_add(b, "cudaMemPoolDestroy", 0, 1, b->dev->driver_ns - before,
					err));
	}
	return 0;
}

/* ---- managed memory ---------------------------------------------------------------- */

/* The first prefetch zeroes pages on the card, the second finds them there; or touches instead. */
static int one_managed(struct frag_bench *b, uint64_t bytes, bool prefetch, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t ns[5] = { d->driver_ns };
	frag_addr_t at = 0;
	int rc = frag_dev_managed_alloc(d, bytes, &at, err);

	if (rc)
		return rc == FRAG_OOM
			       ? frag_fail(err, FRAG_EDEVICE, "cudaMallocManaged: out of memory")
			       : rc;
	ns[1] = d->driver_ns;
	FRAG_TRY(frag_dev_managed_touch(d, at, bytes, prefetch, err));
	ns[2] = d->driver_ns;
	FRAG_TRY(frag_dev_managed_touch(d, at, bytes, prefetch, err));
	ns[3] = d->driver_ns;
	FRAG_TRY(frag_dev_managed_free(d, at, bytes, err));
	ns[4] = d->driver_ns;
	FRAG_TRY(frag_bench_add(b, "cudaMallocManaged", bytes, 1, ns[1] - ns[0], err));
	FRAG_TRY(frag_bench_add(b, "cudaFree(managed)", bytes, 1, ns[4] - ns[3], err));
	if (!prefetch) {
		if (bytes == 2 * MIB)
			FRAG_TRY(frag_bench_add(b, "managed.touch", 0, 1, ns[3] - ns[2], err));
		return frag_bench_add(b, "managed first touch", bytes, 1, ns[2] - ns[1], err);
	}
	FRAG_TRY(frag_bench_add(b, "cudaMemPrefetchAsync", bytes, 1, ns[3] - ns[2], err));
	return frag_bench_add(b, "managed first prefetch", bytes, 1, ns[2] - ns[1], err);
}

int frag_bench_managed(struct frag_bench *b, struct frag_err *err)
{
	static const uint64_t sizes[] = { 2 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes); i++) {
		for (unsigned k = 0; k < FRAG_MIN(b->repeats, 6u); k++) {
			if (sizes[i] <= b->budget_bytes)
				FRAG_TRY(one_managed(b, sizes[i], k % 2 == 0, err));
		}
	}
	return 0;
}

/* ---- kernels ----------------------------------------------------------------------- */

/* So much is in flight between two looks at the clock that the launches do not count. */
#define LAUNCHES 8u

static int one_kernel(struct frag_bench *b, const char *item, enum frag_content_op op,
		      const struct frag_content *block, struct frag_err *err)
{
	struct frag_content_fault fault;
	uint64_t t;

	FRAG_TRY(frag_dev_content_fault(b->dev, true, &fault, err));
	t = frag_clock_ns();
	for (unsigned i = 0; i < LAUNCHES; i++)
		FRAG_TRY(frag_dev_content(b->dev, op, block, err));
	FRAG_TRY(frag_dev_content_fault(b->dev, true, &fault, err));
	t = (frag_clock_ns() - t) / LAUNCHES;
	if (fault.count)
		return frag_fail(err, FRAG_ECHECK, "%s: %llu pieces of 16 bytes are wrong", item,
				 (unsigned long long)fault.count);
	return frag_bench_add(b, item, block->bytes, 1, t, err);
}

int frag_bench_kernels(struct frag_bench *b, struct frag_err *err)
{
	static const uint64_t sizes[] = { 4 * FRAG_KIB, MIB, 64 * MIB, 1024 * MIB, 4096 * MIB };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes); i++) {
		struct frag_content block = { .bytes = sizes[i], .id = 7, .generation = 1 };
		int rc;

		if (sizes[i] > b->budget_bytes)
			continue;
		rc = frag_dev_alloc(b->dev, sizes[i], &block.addr, err);
		if (rc)
			return rc < 0 ? rc
				      : frag_fail(err, FRAG_EDEVICE, "cudaMalloc: out of memory");
		for (unsigned k = 0; k < FRAG_MIN(b->repeats, 8u) && !rc; k++) {
			rc = one_kernel(b, "kernel copy", FRAG_CONTENT_COPY, &block, err);
			if (!rc)
				rc = one_kernel(b, "kernel fill", FRAG_CONTENT_FILL, &block, err);
			if (!rc)
				rc = one_kernel(b, "kernel verify", FRAG_CONTENT_VERIFY, &block,
						err);
		}
		FRAG_TRY(rc);
		FRAG_TRY(frag_dev_free(b->dev, block.addr, sizes[i], err));
	}
	return 0;
}
