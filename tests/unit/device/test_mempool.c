/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMemPool on the simulated card: recorded histories address by address, the
 * vendor's experiments with remapping, streams, thresholds, a full card.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#include "device/sim/cost.h"

#define MIB FRAG_MIB
#define PAGE (32 * MIB)
#define FIRST 0x302000000ull

static struct frag_device *open_card(uint64_t bytes)
{
	struct frag_sim_config cfg = { .total_bytes = bytes };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

static uint64_t pool_with(struct frag_device *d, struct frag_mempool_attr attr)
{
	uint64_t pool = 0;

	assert_int_equal(frag_dev_mempool_create(d, &attr, &pool, NULL), 0);
	return pool;
}

static uint64_t keep_pool(struct frag_device *d)
{
	return pool_with(d, (struct frag_mempool_attr){ .release_threshold = UINT64_MAX });
}

static frag_addr_t take(struct frag_device *d, uint64_t pool, uint64_t bytes, uint32_t stream)
{
	frag_addr_t a = 0;

	assert_int_equal(frag_dev_mempool_alloc(d, pool, bytes, stream, &a, NULL), 0);
	return a;
}

static void give(struct frag_device *d, uint64_t pool, frag_addr_t a, uint32_t stream)
{
	assert_int_equal(frag_dev_mempool_free(d, pool, a, 1, stream, NULL), 0);
}

/* ---- what the real driver did ----------------------------------------------- */

struct recorded {
	uint16_t id;
	uint64_t bytes; /* 0 = free */
	uint64_t offset;
	uint16_t pages;
};
#include "h200_pool.inc"

static void follow(const struct recorded *rows, size_t count, uint64_t threshold, size_t sync_every)
{
	struct frag_device *d = open_card(150109880320ull);
	uint64_t pool = pool_with(d, (struct frag_mempool_attr){ .release_threshold = threshold });
	frag_addr_t addr[1000];

	for (size_t i = 0; i < count; i++) {
		const struct recorded *r = &rows[i];

		if (r->bytes)
			addr[r->id] = take(d, pool, r->bytes, 0);
		else
			give(d, pool, addr[r->id], 0);
		if (r->bytes && addr[r->id] != FIRST + r->offset)
			fail_msg("row %zu: 0x%llx, recorded 0x%llx", i,
				 (unsigned long long)(addr[r->id] - FIRST),
				 (unsigned long long)r->offset);
		if ((i + 1) % sync_every == 0)
			assert_int_equal(frag_dev_sync(d, 0, NULL), 0);
		assert_int_equal(d->reserved_bytes, r->pages * PAGE);
	}
	frag_dev_close(d);
}

struct on_stream {
	uint64_t offset, bytes; /* 0 = free; 1 without pages = synchronise */
	uint16_t pages;
	uint8_t stream;
};
#include "h200_pool_streams.inc"

/* Every address and every page of a recorded history on several streams of an idle card, none of them the
 * default one. */
static void follow_streams(const struct on_stream *rows, size_t count)
{
	struct frag_sim_config cfg = { .total_bytes = 150109880320ull, .work_idle = true };
	struct frag_device *d = NULL;
	uint64_t pool;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	pool = pool_with(d, (struct frag_mempool_attr){ .release_threshold = UINT64_MAX,
							.reuse_allow_opportunistic = true });
	for (size_t i = 0; i < count; i++) {
		const struct on_stream *r = &rows[i];

		if (r->bytes && !r->pages) {
			assert_int_equal(frag_dev_sync(d, r->stream + 1u, NULL), 0);
			continue;
		}
		if (!r->bytes)
			give(d, pool, FIRST + r->offset, r->stream + 1u);
		else if (take(d, pool, r->bytes, r->stream + 1u) != FIRST + r->offset)
			fail_msg("row %zu is not at 0x%llx", i, (unsigned long long)r->offset);
		assert_int_equal(d->reserved_bytes, r->pages * PAGE);
	}
	frag_dev_close(d);
}

static void test_recorded_streams(void **state)
{
	(void)state;
	follow_streams(four_streams, FRAG_ARRAY_LEN(four_streams));
	follow_streams(synced_streams, FRAG_ARRAY_LEN(synced_streams));
}

static void test_recorded(void **state)
{
	(void)state;
	follow(threshold_history, FRAG_ARRAY_LEN(threshold_history), 10000000000ull, 500);
	follow(often_history, FRAG_ARRAY_LEN(often_history), 500000000, 37);
}

/* Growth of fresh pools: reserved after one, two and three of a size, and the third address. */
static void test_growth(void **state)
{
	static const struct {
		uint64_t bytes, reserved[3], third;
	} rows[] = {
		{ 1, { 1, 1, 1 }, 0x302000400 },
		{ 1048577, { 1, 1, 1 }, 0x302200400 },
		{ 16777216, { 1, 1, 2 }, 0x304000000 },
		{ 32505856, { 1, 2, 3 }, 0x305e00000 },
		{ 33554433, { 2, 3, 4 }, 0x306000400 },
		{ 133169152, { 4, 8, 12 }, 0x311e00000 },
		{ 1048576000, { 32, 63, 94 }, 0x37f000000 },
		{ 4194304000, { 125, 250, 375 }, 0x4f6000000 },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_device *d = open_card(150109880320ull);
		uint64_t pool = keep_pool(d);
		frag_addr_t a = 0;

		for (int k = 0; k < 3; k++) {
			a = take(d, pool, rows[i].bytes, 0);
			assert_int_equal(d->reserved_bytes, rows[i].reserved[k] * PAGE);
		}
		assert_int_equal(a, rows[i].third);
		frag_dev_close(d);
	}
}

/* As the built-in profile has it; that each point of it is used is for test_cost.c. */
static uint64_t price(unsigned item, uint64_t bytes)
{
	return frag_cost_ns(frag_cost_builtin(), item, bytes);
}

/* 64 x 32 MiB, every other one freed, then 64, 512 and 1024 MiB: as measured, also the price. */
static void test_remap(void **state)
{
	struct frag_device *d = open_card(150109880320ull);
	uint64_t pool = keep_pool(d), before;
	frag_addr_t a[64];

	(void)state;
	for (int i = 0; i < 64; i++)
		a[i] = take(d, pool, PAGE, 0);
	assert_int_equal(a[63], 0x380000000ull);
	for (int i = 0; i < 64; i += 2)
		give(d, pool, a[i], 0);
	before = d->stat[FRAG_CALL_ASYNC_MALLOC].ns;
	assert_int_equal(take(d, pool, 64 * MIB, 0), 0x382000000ull);
	/* two pages moved, and the call */
	assert_int_equal(d->stat[FRAG_CALL_ASYNC_MALLOC].ns - before,
			 price(FRAG_COST_ASYNC_REMAP, 2 * PAGE) + price(FRAG_CALL_ASYNC_MALLOC, 0));
	assert_int_equal(d->reserved_bytes, 2147483648ull);
	assert_int_equal(take(d, pool, 512 * MIB, 0), 0x386000000ull);
	assert_int_equal(d->reserved_bytes, 2147483648ull);
	before = d->stat[FRAG_CALL_ASYNC_MALLOC].ns;
	assert_int_equal(take(d, pool, 1024 * MIB, 0), 0x3a6000000ull);
	assert_int_equal(d->reserved_bytes, 2751463424ull);
	/* 14 pages moved, 18 new */
	assert_int_equal(d->stat[FRAG_CALL_ASYNC_MALLOC].ns - before,
			 price(FRAG_COST_ASYNC_REMAP, 14 * PAGE) +
				 price(FRAG_COST_ASYNC_NEW, 18 * PAGE) +
				 price(FRAG_CALL_ASYNC_MALLOC, 0));
	frag_dev_close(d);
}

/* ---- release ---------------------------------------------------------------- */

/* Pages of what was just freed move when the card has passed the free; the piece is the stream's own at once. */
static void test_busy_card(void **state)
{
	static const struct {
		uint64_t lag_ns, passed_ns, pages;
		bool sync;
	} rows[] = {
		{ 0, 0, 5, false },	  /* nothing was said: as on an idle card */
		{ 1000, 999, 7, false },  /* queued work still uses the pages */
		{ 1000, 1000, 5, false }, /* done */
		{ 1000, 10, 5, true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_sim_config cfg = { .total_bytes = FRAG_GIB,
					       .work_lag_ns = rows[i].lag_ns };
		struct frag_mempool_usage u;
		struct frag_device *d = NULL;
		frag_addr_t a;
		uint64_t pool;

		assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
		pool = keep_pool(d);
		a = take(d, pool, 2 * PAGE, 0);
		take(d, pool, 2 * PAGE, 0);
		d->now_ns = 5000;
		give(d, pool, a, 0);
		assert_int_equal(take(d, pool, PAGE, 0), a);
		give(d, pool, a, 0);
		d->now_ns += rows[i].passed_ns;
		if (rows[i].sync)
			assert_int_equal(frag_dev_sync_all(d, NULL), 0);
		take(d, pool, 3 * PAGE, 0);
		frag_dev_mempool_usage(d, pool, &u);
		assert_int_equal(u.reserved_bytes, rows[i].pages * PAGE);
		frag_dev_close(d);
	}
}

static void test_threshold(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t pool =
		pool_with(d, (struct frag_mempool_attr){ .release_threshold = 3 * PAGE - 1 });
	frag_addr_t a[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		a[i] = take(d, pool, PAGE, 0);
	for (int i = 1; i < 6; i++)
		give(d, pool, a[i], 0);
	assert_int_equal(d->reserved_bytes, 6 * PAGE);	/* nothing goes before a synchronise */
	assert_int_equal(frag_dev_sync(d, 1, NULL), 0); /* of another stream */
	assert_int_equal(d->reserved_bytes, 6 * PAGE);
	assert_int_equal(frag_dev_sync(d, 0, NULL), 0);
	assert_int_equal(d->reserved_bytes, 2 * PAGE); /* while more than the threshold is held */
	assert_int_equal(frag_dev_mempool_trim(d, pool, PAGE, NULL), 0);
	assert_int_equal(d->reserved_bytes, PAGE);
	assert_int_equal(frag_dev_mempool_trim(d, pool, 0, NULL), 0);
	assert_int_equal(d->reserved_bytes, PAGE); /* a page with a live byte stays */
	give(d, pool, a[0], 0);
	assert_int_equal(frag_dev_mempool_trim(d, pool, 0, NULL), 0);
	assert_int_equal(d->reserved_bytes, PAGE); /* freed but not synchronised: does not count */
	assert_int_equal(frag_dev_sync_all(d, NULL), 0);
	assert_int_equal(frag_dev_mempool_trim(d, pool, 0, NULL), 0);
	assert_int_equal(d->reserved_bytes, 0);
	frag_dev_close(d);
}

static void test_usage(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t one = keep_pool(d), two = keep_pool(d);
	struct frag_mempool_usage u;
	frag_addr_t a = take(d, one, 1000, 0), b = take(d, two, 40 * MIB, 0);

	(void)state;
	assert_true(a != b);
	frag_dev_mempool_usage(d, one, &u);
	assert_int_equal(u.used_bytes, 1000);
	assert_int_equal(u.reserved_bytes, PAGE);
	frag_dev_mempool_usage(d, two, &u);
	assert_int_equal(u.used_bytes, 40 * MIB);
	assert_int_equal(u.reserved_bytes, 2 * PAGE);
	assert_int_equal(d->reserved_bytes, 3 * PAGE);
	give(d, two, b, 0);
	assert_int_equal(frag_dev_sync_all(d, NULL), 0);
	assert_int_equal(frag_dev_mempool_trim(d, two, 0, NULL), 0);
	frag_dev_mempool_usage(d, two, &u);
	assert_int_equal(u.used_bytes, 0);
	assert_int_equal(u.used_peak_bytes, 40 * MIB);
	assert_int_equal(u.reserved_bytes, 0);
	assert_int_equal(u.reserved_peak_bytes, 2 * PAGE);
	frag_dev_mempool_usage(d, 999, &u);
	assert_int_equal(u.used_peak_bytes, 0);
	frag_dev_close(d);
}

/* A destroyed pool lives until its last block is freed. */
static void test_destroy(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t pool = keep_pool(d);
	frag_addr_t a = take(d, pool, 100, 0), b;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_dev_mempool_destroy(d, pool, NULL), 0);
	assert_int_equal(d->reserved_bytes, PAGE);
	assert_int_equal(frag_dev_mempool_alloc(d, pool, 100, 0, &b, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "is destroyed"));
	assert_int_equal(frag_dev_mempool_destroy(d, pool, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "was destroyed before"));
	give(d, pool, a, 0);
	assert_int_equal(d->reserved_bytes, 0);
	assert_int_equal(frag_dev_mempool_trim(d, pool, 0, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_leaks(d), 0);
	/* its addresses are free for the next */
	pool = keep_pool(d);
	assert_int_equal(take(d, pool, 100, 0), FIRST);
	frag_dev_close(d);
}

static void test_errors(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t pool = keep_pool(d);
	frag_addr_t a = take(d, pool, 5000, 0);
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_dev_mempool_free(d, pool, a + 512, 1, 0, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "cudaFreeAsync"));
	assert_int_equal(frag_dev_mempool_free(d, pool, 5, 1, 0, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_mempool_free(d, 77, a, 1, 0, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "unknown or destroyed pool 77"));
	give(d, pool, a, 0);
	assert_int_equal(frag_dev_mempool_free(d, pool, a, 1, 0, &err), FRAG_EDEVICE);
	frag_dev_close(d);
}

/* ---- several streams -------------------------------------------------------- */

static void test_streams(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t pool = keep_pool(d);
	frag_addr_t a = take(d, pool, PAGE, 1), b;

	(void)state;
	d->now_ns = 1000000000;
	give(d, pool, a, 1);
	b = take(d, pool, PAGE, 2); /* freed on 1, not proved complete */
	assert_int_not_equal(a, b);
	assert_int_equal(take(d, pool, PAGE, 1), a); /* its own stream at once */
	give(d, pool, a, 1);
	assert_int_equal(frag_dev_sync(d, 2, NULL), 0);
	assert_int_equal(take(d, pool, PAGE, 2), b + PAGE);
	assert_int_equal(frag_dev_sync(d, 1, NULL), 0);
	assert_int_equal(take(d, pool, PAGE, 2), a);
	assert_int_equal(d->reserved_bytes, 3 * PAGE);
	frag_dev_close(d);
}

/* Opportunistic: what was freed elsewhere 10 ms of recorded time ago has been passed. */
static void test_opportunistic(void **state)
{
	struct frag_device *d = open_card(1024 * MIB);
	uint64_t pool =
		pool_with(d, (struct frag_mempool_attr){ .release_threshold = UINT64_MAX,
							 .reuse_allow_opportunistic = true });
	frag_addr_t a = take(d, pool, PAGE, 1), b;

	(void)state;
	d->now_ns = 1000000000;
	give(d, pool, a, 1);
	d->now_ns += 9999999;
	b = take(d, pool, PAGE, 2);
	assert_int_not_equal(a, b);
	d->now_ns += 1;
	assert_int_equal(take(d, pool, PAGE, 2), a);
	frag_dev_close(d);
}

/* A full card: pending frees of other streams help only where waiting is allowed. */
static void test_full(void **state)
{
	(void)state;
	for (int wait = 0; wait < 2; wait++) {
		struct frag_device *d = open_card(4 * PAGE + 5 * MIB);
		uint64_t pool = pool_with(
			d, (struct frag_mempool_attr){ .release_threshold = UINT64_MAX,
						       .reuse_allow_internal_dependencies = wait });
		frag_addr_t a = take(d, pool, 2 * PAGE, 1), b = take(d, pool, PAGE, 1), c, small;

		small = take(d, pool, 1000, 1);
		assert_int_equal(d->reserved_bytes, 4 * PAGE);
		assert_int_equal(frag_dev_mempool_alloc(d, pool, PAGE, 1, &c, NULL), FRAG_OOM);
		give(d, pool, a, 1);
		assert_int_equal(frag_dev_mempool_alloc(d, pool, 2 * PAGE, 2, &c, NULL),
				 wait ? 0 : FRAG_OOM);
		if (wait)
			give(d, pool, c, 2);
		/* on the own stream: the pages move to where they are needed */
		assert_int_equal(frag_dev_sync_all(d, NULL), 0);
		c = take(d, pool, 2 * PAGE + 1000, 1);
		assert_int_equal(frag_dev_mempool_alloc(d, pool, 3 * PAGE, 1, &a, NULL), FRAG_OOM);
		assert_int_equal(d->reserved_bytes, 4 * PAGE);
		give(d, pool, b, 1);
		give(d, pool, c, 1);
		give(d, pool, small, 1);
		assert_int_equal(frag_dev_mempool_destroy(d, pool, NULL), 0);
		assert_int_equal(d->reserved_bytes, 0);
		frag_dev_close(d);
	}
}

/* ---- random, three streams: no overlap, pages and bytes by the list --------- */

#define BLOCKS 200

struct block {
	frag_addr_t addr;
	uint64_t bytes;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* Pages that the live blocks touch: the least that can be reserved. */
static uint64_t pages_touched(const struct block *b)
{
	static bool page[1 << 16];
	uint64_t n = 0;

	memset(page, 0, sizeof(page));
	for (int i = 0; i < BLOCKS; i++) {
		for (uint64_t p = (b[i].addr - FIRST) / PAGE;
		     b[i].bytes && p <= (b[i].addr + b[i].bytes - 1 - FIRST) / PAGE; p++) {
			n += !page[p];
			page[p] = true;
		}
	}
	return n;
}

static void check_block(const struct block *b, int i)
{
	for (int k = 0; k < BLOCKS; k++) {
		if (k != i && b[k].bytes && b[i].addr < b[k].addr + b[k].bytes &&
		    b[k].addr < b[i].addr + b[i].bytes)
			fail_msg("blocks overlap");
	}
}

static void random_run(uint64_t seed, uint64_t threshold)
{
	struct frag_device *d = open_card(6000 * MIB);
	struct frag_mempool_attr attr = { .release_threshold = threshold,
					  .reuse_allow_opportunistic = seed & 1 };
	uint64_t pool = pool_with(d, attr), used = 0;
	struct block b[BLOCKS] = { 0 };
	struct frag_mempool_usage u;

	for (int n = 0; n < 6000; n++) {
		int i = (int)(next_random(&seed) % BLOCKS);
		uint32_t stream = (uint32_t)(next_random(&seed) % 3);
		uint64_t bytes =
			next_random(&seed) % (next_random(&seed) % 8 ? 2 * MIB : 120 * MIB) + 1;

		d->now_ns += 100000;
		if (b[i].bytes) {
			give(d, pool, b[i].addr, stream);
			used -= b[i].bytes;
			b[i].bytes = 0;
		} else if (!frag_dev_mempool_alloc(d, pool, bytes, stream, &b[i].addr, NULL)) {
			b[i].bytes = bytes;
			used += bytes;
			check_block(b, i);
		}
		if (n % 100 == 99)
			assert_int_equal(frag_dev_sync(d, stream, NULL), 0);
		frag_dev_mempool_usage(d, pool, &u);
		assert_int_equal(u.used_bytes, used);
		assert_int_equal(u.reserved_bytes, d->reserved_bytes);
		assert_true(u.reserved_bytes >= pages_touched(b) * PAGE);
		assert_true(u.reserved_bytes <= 6000 * MIB);
	}
	assert_int_equal(frag_dev_sync_all(d, NULL), 0);
	assert_int_equal(frag_dev_mempool_trim(d, pool, 0, NULL), 0);
	assert_int_equal(d->reserved_bytes, pages_touched(b) * PAGE);
	frag_dev_close(d);
}

static void test_random(void **state)
{
	(void)state;
	random_run(1, UINT64_MAX);
	random_run(2, 0);
	random_run(3, 1000 * MIB);
}

static struct frag_device *idle_card(uint64_t *pool)
{
	struct frag_sim_config cfg = { .total_bytes = 150109880320ull, .work_idle = true };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	*pool = pool_with(d, (struct frag_mempool_attr){ .release_threshold = UINT64_MAX,
							 .reuse_allow_opportunistic = true });
	return d;
}

/* What other streams have freed: the default stream's first, then as the streams came. */
static void test_default_stream_first(void **state)
{
	uint64_t pool, a, b, c;
	struct frag_device *d = idle_card(&pool);

	(void)state;
	a = take(d, pool, MIB, 2);
	b = take(d, pool, MIB, 1);
	c = take(d, pool, MIB, 0);
	take(d, pool, 29 * MIB, 3); /* nothing is left of the page */
	give(d, pool, a, 2);
	give(d, pool, b, 1);
	give(d, pool, c, 0);
	assert_int_equal(take(d, pool, MIB, 3), c);
	assert_int_equal(take(d, pool, MIB, 3), a);
	assert_int_equal(take(d, pool, MIB, 3), b);
	frag_dev_close(d);
}

/* A flush goes over the streams in that order, whoever flushes: it decides ties. */
static void test_flush_order(void **state)
{
	uint64_t pool, a, b;
	struct frag_device *d = idle_card(&pool);

	(void)state;
	a = take(d, pool, MIB, 1);
	take(d, pool, MIB, 1);
	b = take(d, pool, MIB, 2);
	take(d, pool, 29 * MIB, 2);
	give(d, pool, b, 2);
	give(d, pool, a, 1);
	take(d, pool, 2 * MIB, 2); /* does not fit: flushes */
	assert_int_equal(take(d, pool, MIB, 3), a);
	frag_dev_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_remap),
		cmocka_unit_test(test_busy_card),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_recorded_streams),
		cmocka_unit_test(test_default_stream_first),
		cmocka_unit_test(test_flush_order),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_opportunistic),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
