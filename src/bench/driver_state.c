/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call costs by the state of the card, for cufrag bench: after an idle while ("cold"),
 * with memory that is not cleared yet, in a pool of this size, and with very many mappings.
 *
 * These rows are to be read; only memory.clear goes into a profile.
 */
#include "bench.h"
#include "lib/grow.h"

#include <string.h>
#include <time.h>

#include <frag/base.h>

#define MIB FRAG_MIB
#define IDLE_MS 100
/* One handle at that many places: 256 GiB of address space, no memory. */
#define MAPPINGS_MAX 131072u
#define MAPPED_AT_ONCE 4096u /* and this many of them with access */

static bool modelled(const struct frag_bench *b)
{
	struct frag_device_info info;

	frag_dev_info(b->dev, &info);
	return info.modelled;
}

/* ---- cold -------------------------------------------------------------------------- */

static void idle(const struct frag_bench *b)
{
	struct timespec t = { .tv_nsec = IDLE_MS * 1000000 };

	if (!modelled(b))
		nanosleep(&t, NULL);
}

static int oom(int rc, const char *what, struct frag_err *err)
{
	return rc == FRAG_OOM ? frag_fail(err, FRAG_EDEVICE, "%s: out of memory", what) : rc;
}

/* The first call after a while, and its opposite right behind. */
static int one_cold(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t ns[3], handle;
	frag_addr_t at;

	idle(b);
	ns[0] = d->driver_ns;
	FRAG_TRY(oom(frag_dev_alloc(d, bytes, &at, err), "cudaMalloc", err));
	ns[1] = d->driver_ns;
	idle(b);
	ns[2] = d->driver_ns;
	FRAG_TRY(frag_dev_free(d, at, bytes, err));
	FRAG_TRY(frag_bench_add(b, "cudaMalloc (cold)", bytes, 1, ns[1] - ns[0], err));
	FRAG_TRY(frag_bench_add(b, "cudaFree (cold)", bytes, 1, d->driver_ns - ns[2], err));
	idle(b);
	ns[0] = d->driver_ns;
	FRAG_TRY(oom(frag_dev_create(d, bytes, &handle, err), "cuMemCreate", err));
	ns[1] = d->driver_ns;
	FRAG_TRY(frag_dev_release(d, handle, bytes, err));
	return frag_bench_add(b, "cuMemCreate (cold)", bytes, 1, ns[1] - ns[0], err);
}

static int bench_cold(struct frag_bench *b, struct frag_err *err)
{
	static const uint64_t sizes[] = { 2 * MIB, 64 * MIB };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes); i++) {
		for (unsigned k = 0; k < FRAG_MIN(b->repeats, 5u); k++)
			FRAG_TRY(one_cold(b, sizes[i], err));
	}
	return 0;
}

/* ---- a synchronise, by what came before it ------------------------------------------------ */

static int sync_after(struct frag_bench *b, const char *what, struct frag_err *err)
{
	uint64_t ns = b->dev->driver_ns;

	FRAG_TRY(frag_dev_sync_all(b->dev, err));
	return frag_bench_add(b, what, 0, 1, b->dev->driver_ns - ns, err);
}

/* Policies synchronise after calls that leave the card something to do: an event, new page tables. */
static int one_of_each_sync(struct frag_bench *b, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t fence, handle;
	frag_addr_t at;

	FRAG_TRY(frag_dev_fence_record(d, 1, &fence, err));
	FRAG_TRY(sync_after(b, "cudaDeviceSynchronize (after cudaEventRecord)", err));
	FRAG_TRY(oom(frag_dev_alloc(d, 10 * FRAG_PAGE, &at, err), "cudaMalloc", err));
	FRAG_TRY(sync_after(b, "cudaDeviceSynchronize (after cudaMalloc)", err));
	FRAG_TRY(frag_dev_free(d, at, 10 * FRAG_PAGE, err));
	FRAG_TRY(sync_after(b, "cudaDeviceSynchronize (after cudaFree)", err));
	FRAG_TRY(oom(frag_dev_create(d, FRAG_PAGE, &handle, err), "cuMemCreate", err));
	FRAG_TRY(oom(frag_dev_reserve(d, FRAG_PAGE, 0, &at, err), "cuMemAddressReserve", err));
	FRAG_TRY(frag_dev_map(d, at, FRAG_PAGE, handle, err));
	FRAG_TRY(frag_dev_set_access(d, at, FRAG_PAGE, err));
	FRAG_TRY(sync_after(b, "cudaDeviceSynchronize (after cuMemSetAccess)", err));
	FRAG_TRY(frag_dev_unmap(d, at, FRAG_PAGE, err));
	FRAG_TRY(sync_after(b, "cudaDeviceSynchronize (after cuMemUnmap)", err));
	FRAG_TRY(frag_dev_release(d, handle, FRAG_PAGE, err));
	return frag_dev_unreserve(d, at, FRAG_PAGE, err);
}

static int bench_syncs(struct frag_bench *b, struct frag_err *err)
{
	for (unsigned k = 0; k < b->repeats; k++)
		FRAG_TRY(one_of_each_sync(b, err));
	return 0;
}

/* ---- memory that is not cleared ----------------------------------------------------- */

/* More than half of the card, given back and asked for again at once. */
static int one_clear(struct frag_bench *b, uint64_t bytes, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t plain, freed, again;
	frag_addr_t at;

	FRAG_TRY(frag_dev_make_ready(d, bytes, err));
	plain = d->driver_ns;
	FRAG_TRY(oom(frag_dev_alloc(d, bytes, &at, err), "cudaMalloc", err));
	plain = d->driver_ns - plain;
	freed = d->driver_ns;
	FRAG_TRY(frag_dev_free(d, at, bytes, err));
	freed = d->driver_ns - freed;
	again = d->driver_ns;
	FRAG_TRY(oom(frag_dev_alloc(d, bytes, &at, err), "cudaMalloc", err));
	again = d->driver_ns - again;
	FRAG_TRY(frag_dev_free(d, at, bytes, err));
	FRAG_TRY(frag_bench_add(b, "cudaMalloc (not cleared)", bytes, 1, again, err));
	/* one request for more than is clear waits until all that was given back is */
	again -= FRAG_MIN(again, plain);
	return frag_bench_add(b, "memory.clear", bytes, 1, again + freed, err);
}

static int bench_clear(struct frag_bench *b, struct frag_err *err)
{
	uint64_t left, total, bytes;

	FRAG_TRY(frag_dev_mem_info(b->dev, &left, &total, err));
	bytes = left / 20 * 11 / FRAG_PAGE * FRAG_PAGE;
	if (!b->whole_card || b->dev->reserved_bytes)
		return 0;
	for (unsigned k = 0; k < FRAG_MIN(b->repeats, 3u); k++)
		FRAG_TRY(one_clear(b, bytes, err));
	return frag_dev_make_ready(b->dev, bytes, err);
}

/* ---- pools --------------------------------------------------------------------------- */

/* What the least request takes from the card, and what requests cost that fit it. */
static int bench_pool_hits(struct frag_bench *b, struct frag_err *err)
{
	static const struct frag_mempool_attr keep_all = { .release_threshold = UINT64_MAX };
	static const uint64_t sizes[] = { 512,	    64 * FRAG_KIB, 2 * MIB,
					  64 * MIB, 1024 * MIB,	   4096 * MIB };
	struct frag_device *d = b->dev;
	uint64_t pool, ns, held = d->reserved_bytes;
	frag_addr_t at;

	FRAG_TRY(frag_dev_mempool_create(d, &keep_all, &pool, err));
	ns = d->driver_ns;
	FRAG_TRY(oom(frag_dev_mempool_alloc(d, pool, 1, 1, &at, err), "cudaMallocAsync", err));
	FRAG_TRY(frag_bench_add(b, "cudaMemPool (unit of growth)", d->reserved_bytes - held, 1,
				d->driver_ns - ns, err));
	FRAG_TRY(frag_dev_mempool_free(d, pool, at, 1, 1, err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(sizes) && sizes[i] <= b->budget_bytes; i++) {
		for (unsigned k = 0; k < b->repeats + 1; k++) {
			ns = d->driver_ns;
			FRAG_TRY(oom(frag_dev_mempool_alloc(d, pool, sizes[i], 1, &at, err),
				     "cudaMallocAsync", err));
			if (k) /* the first one grows */
				FRAG_TRY(frag_bench_add(b, "cudaMallocAsync (hit)", sizes[i], 1,
							d->driver_ns - ns, err));
			FRAG_TRY(frag_dev_mempool_free(d, pool, at, sizes[i], 1, err));
			FRAG_TRY(frag_dev_sync(d, 1, err));
		}
	}
	return frag_dev_mempool_destroy(d, pool, err);
}

/* ---- mappings ------------------------------------------------------------------------ */

/* Maps until the driver refuses or MAPPINGS_MAX are there. */
static int map_many(struct frag_bench *b, frag_addr_t base, uint64_t handle, uint32_t *count,
		    struct frag_err *err)
{
	static const uint32_t marks[] = { 1, 1024, 16384, 65536, MAPPINGS_MAX };
	struct frag_device *d = b->dev;
	size_t mark = 0;

	for (*count = 0; *count < MAPPINGS_MAX; (*count)++) {
		uint64_t ns = d->driver_ns;

		/* a refusal is what is looked for */
		if (frag_dev_map(d, base + *count * FRAG_PAGE, FRAG_PAGE, handle, NULL))
			return 0;
		while (mark < FRAG_ARRAY_LEN(marks) && *count >= marks[mark])
			mark++;
		FRAG_TRY(frag_bench_add(b, "cuMemMap (so many in the range)", FRAG_PAGE,
					marks[FRAG_MIN(mark, FRAG_ARRAY_LEN(marks) - 1)],
					d->driver_ns - ns, err));
	}
	return 0;
}

static int bench_mappings(struct frag_bench *b, struct frag_err *err)
{
	struct frag_device *d = b->dev;
	uint64_t handle, ns, span = MAPPINGS_MAX * FRAG_PAGE;
	uint32_t count, access;
	frag_addr_t base;

	FRAG_TRY(oom(frag_dev_create(d, FRAG_PAGE, &handle, err), "cuMemCreate", err));
	FRAG_TRY(oom(frag_dev_reserve(d, span, 0, &base, err), "cuMemAddressReserve", err));
	FRAG_TRY(map_many(b, base, handle, &count, err));
	access = FRAG_MIN(count, MAPPED_AT_ONCE);
	if (access) {
		ns = d->driver_ns;
		FRAG_TRY(frag_dev_set_access(d, base, access * FRAG_PAGE, err));
		FRAG_TRY(frag_bench_add(b, "cuMemSetAccess (one handle)", FRAG_PAGE, access,
					d->driver_ns - ns, err));
		ns = d->driver_ns;
		FRAG_TRY(frag_dev_unmap(d, base, count * FRAG_PAGE, err));
		FRAG_TRY(frag_bench_add(b, "cuMemUnmap (one handle)", FRAG_PAGE, count,
					d->driver_ns - ns, err));
	}
	FRAG_TRY(frag_dev_release(d, handle, FRAG_PAGE, err));
	FRAG_TRY(frag_dev_unreserve(d, base, span, err));
	b->mappings_count = count;
	b->mappings_refused = count < MAPPINGS_MAX;
	return 0;
}

int frag_bench_state(struct frag_bench *b, struct frag_err *err)
{
	struct frag_device_info info;

	frag_dev_info(b->dev, &info);
	if (!(info.can & FRAG_CAN_VMM) || !(info.can & FRAG_CAN_ASYNC))
		return 0;
	FRAG_TRY(bench_cold(b, err));
	FRAG_TRY(bench_syncs(b, err));
	FRAG_TRY(bench_pool_hits(b, err));
	if (!b->warm)
		return 0; /* the rest needs no warm-up and takes long */
	FRAG_TRY(bench_mappings(b, err));
	return bench_clear(b, err);
}

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

int frag_bench_add(struct frag_bench *b, const char *item, uint64_t bytes, uint32_t handles,
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
