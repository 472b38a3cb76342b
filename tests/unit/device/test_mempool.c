/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMemPool on the simulated card: recorded histories, random calls (others: test_card.c).
 */
#include "test.h"

#include <frag/device.h>

#include "must.h"

#define PAGE (32 * MIB)
#define FIRST 0x302000000ull

static uint64_t pool_with(struct frag_device *d, struct frag_mempool_attr attr)
{
	uint64_t pool = 0;

	assert_int_equal(frag_dev_mempool_create(d, &attr, &pool, NULL), 0);
	return pool;
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
	FRAG_AUTO(frag_dev_close_at)
	struct frag_device *d =
		must_open_sim(&(struct frag_sim_config){ .total_bytes = 150109880320ull });
	uint64_t pool = pool_with(d, (struct frag_mempool_attr){ .release_threshold = threshold });
	frag_addr_t addr[1000];

	for (size_t i = 0; i < count; i++) {
		const struct recorded *r = &rows[i];

		if (r->bytes)
			addr[r->id] = take(d, pool, r->bytes, 0);
		else
			give(d, pool, addr[r->id], 0);
		if (r->bytes && addr[r->id] != FIRST + r->offset)
			fail_msg("row %zu: 0x%llx, recorded 0x%llx", i, (ull)(addr[r->id] - FIRST),
				 (ull)r->offset);
		if ((i + 1) % sync_every == 0)
			assert_int_equal(frag_dev_sync(d, 0, NULL), 0);
		assert_int_equal(d->reserved_bytes, r->pages * PAGE);
	}
}

struct on_stream {
	uint64_t offset, bytes; /* 0 = free; 1 without pages = synchronise */
	uint16_t pages;
	uint8_t stream;
};
#include "h200_pool_streams.inc"

/* Every address and every page of a recorded history on several streams of an idle card, none of
 * them the default one. */
static void follow_streams(const struct on_stream *rows, size_t count)
{
	struct frag_sim_config cfg = { .total_bytes = 150109880320ull, .work_idle = true };
	AUTO_DEVICE d = must_open_sim(&cfg);
	uint64_t pool;

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
			fail_msg("row %zu is not at 0x%llx", i, (ull)r->offset);
		assert_int_equal(d->reserved_bytes, r->pages * PAGE);
	}
}

TEST(test_recorded_streams)
{
	follow_streams(four_streams, FRAG_ARRAY_LEN(four_streams));
	follow_streams(synced_streams, FRAG_ARRAY_LEN(synced_streams));
}

TEST(test_recorded)
{
	follow(threshold_history, FRAG_ARRAY_LEN(threshold_history), 10000000000ull, 500);
	follow(often_history, FRAG_ARRAY_LEN(often_history), 500000000, 37);
}

/* ---- random, three streams: no overlap, pages and bytes by the list --------- */

#define BLOCKS 200

struct block {
	frag_addr_t addr;
	uint64_t bytes;
};

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
	FRAG_AUTO(frag_dev_close_at)
	struct frag_device *d =
		must_open_sim(&(struct frag_sim_config){ .total_bytes = 6000 * MIB });
	struct frag_mempool_attr attr = { .release_threshold = threshold,
					  .reuse_allow_opportunistic = seed & 1 };
	uint64_t pool = pool_with(d, attr), used = 0;
	struct block b[BLOCKS] = { 0 };
	struct frag_mempool_usage u;

	for (int n = 0; n < 6000; n++) {
		int i = (int)(test_roll(&seed) % BLOCKS);
		uint32_t stream = (uint32_t)(test_roll(&seed) % 3);
		uint64_t bytes =
			test_roll(&seed) % (test_roll(&seed) % 8 ? 2 * MIB : 120 * MIB) + 1;

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
}

TEST(test_random)
{
	random_run(1, UINT64_MAX);
	random_run(2, 0);
	random_run(3, 1000 * MIB);
}
