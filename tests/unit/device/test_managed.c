/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory on the simulated card: residency, density, eviction, what is moved and paid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <frag/device.h>

#define MIB FRAG_MIB
#define KIB FRAG_KIB

static struct frag_device *open_card(uint64_t bytes)
{
	struct frag_sim_config cfg = { .total_bytes = bytes };
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&cfg, &d, NULL), 0);
	return d;
}

static frag_addr_t managed(struct frag_device *d, uint64_t bytes)
{
	frag_addr_t a = 0;

	assert_int_equal(frag_dev_managed_alloc(d, bytes, &a, NULL), 0);
	return a;
}

static void touch(struct frag_device *d, frag_addr_t a, uint64_t bytes)
{
	assert_int_equal(frag_dev_managed_touch(d, a, bytes, false, NULL), 0);
}

static void prefetch(struct frag_device *d, frag_addr_t a, uint64_t bytes)
{
	assert_int_equal(frag_dev_managed_touch(d, a, bytes, true, NULL), 0);
}

static struct frag_managed_usage usage(struct frag_device *d)
{
	struct frag_managed_usage u;

	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, d->reserved_bytes); /* nothing else is on the card */
	return u;
}

static void test_residency(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t a = managed(d, 10 * MIB + 1);

	(void)state;
	assert_int_equal(d->reserved_bytes, 0); /* addresses only */
	prefetch(d, a, 1);
	assert_int_equal(usage(d).resident_bytes, 64 * KIB);
	prefetch(d, a + 64 * KIB - 1, 2);
	assert_int_equal(usage(d).resident_bytes, 128 * KIB);
	prefetch(d, a, 10 * MIB + 1);
	assert_int_equal(usage(d).resident_bytes, 10 * MIB + 64 * KIB);
	assert_int_equal(usage(d).faults, 0);
	assert_int_equal(usage(d).moved_in_bytes, 0);
	assert_int_equal(frag_dev_managed_free(d, a, 10 * MIB + 1, NULL), 0);
	assert_int_equal(usage(d).resident_bytes, 0);
	assert_int_equal(usage(d).resident_peak_bytes, 10 * MIB + 64 * KIB);
	assert_int_equal(usage(d).moved_out_bytes, 0);
	frag_dev_close(d);
}

/* More than 51 % of a subtree, faulted ones included, brings all of it. */
static void test_density(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t a = managed(d, 4 * MIB);

	(void)state;
	touch(d, a, 1); /* half of the pair: not dense */
	assert_int_equal(usage(d).resident_bytes, 64 * KIB);
	touch(d, a + 64 * KIB, 1); /* pair full: half of four */
	assert_int_equal(usage(d).resident_bytes, 128 * KIB);
	touch(d, a + 128 * KIB,
	      1); /* three of four: the fourth comes along; four of eight: no more */
	assert_int_equal(usage(d).resident_bytes, 256 * KIB);
	touch(d, a + 256 * KIB, 1); /* five of eight, then eight of sixteen */
	assert_int_equal(usage(d).resident_bytes, 512 * KIB);
	touch(d, a + 512 * KIB, 1); /* nine of sixteen, then sixteen of 32: not dense */
	assert_int_equal(usage(d).resident_bytes, 1024 * KIB);
	touch(d, a + 1024 * KIB, 1); /* 17 of 32: the block, and never the next one */
	assert_int_equal(usage(d).resident_bytes, 2 * MIB);
	assert_int_equal(usage(d).faults, 6);
	touch(d, a, 2 * MIB); /* there already */
	assert_int_equal(usage(d).faults, 6);
	frag_dev_close(d);
}

/* The last block of an allocation is dense by the part that exists. */
static void test_density_end(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t a = managed(d, 2 * MIB + 192 * KIB);

	(void)state;
	touch(d, a + 2 * MIB, 128 * KIB); /* two of three */
	assert_int_equal(usage(d).resident_bytes, 192 * KIB);
	frag_dev_close(d);
}

/* Oldest population first; touching what is resident does not save it. */
static void test_eviction_order(void **state)
{
	struct frag_device *d = open_card(8 * MIB);
	frag_addr_t a = managed(d, 4 * MIB), b = managed(d, 4 * MIB), c = managed(d, 2 * MIB);
	struct frag_managed_usage u;

	(void)state;
	prefetch(d, a, 4 * MIB);
	prefetch(d, b, 4 * MIB);
	touch(d, a, 4 * MIB);	 /* no population */
	prefetch(d, c, 2 * MIB); /* evicts the first block of a */
	u = usage(d);
	assert_int_equal(u.evictions, 1);
	assert_int_equal(u.moved_out_bytes, 2 * MIB);
	assert_int_equal(u.resident_bytes, 8 * MIB);
	touch(d, a + 2 * MIB, 2 * MIB); /* still there */
	touch(d, b, 4 * MIB);
	touch(d, c, 2 * MIB);
	assert_int_equal(usage(d).faults, 0);
	prefetch(d, a, 2 * MIB); /* comes back, the second block of a goes */
	u = usage(d);
	assert_int_equal(u.moved_in_bytes, 2 * MIB);
	assert_int_equal(u.evictions, 2);
	prefetch(d, a, 2 * MIB);
	assert_int_equal(usage(d).moved_in_bytes, 2 * MIB);
	frag_dev_close(d);
}

/* Twice the card, swept twice: everything is moved out and in once more, FIFO never helps. */
static void test_oversubscription(void **state)
{
	struct frag_device *d = open_card(16 * MIB);
	frag_addr_t a = managed(d, 32 * MIB);
	struct frag_managed_usage u;

	(void)state;
	touch(d, a, 32 * MIB);
	u = usage(d);
	assert_int_equal(u.moved_in_bytes, 0);
	assert_int_equal(u.moved_out_bytes, 16 * MIB);
	touch(d, a, 32 * MIB);
	u = usage(d);
	assert_int_equal(u.moved_in_bytes, 32 * MIB);
	assert_int_equal(u.moved_out_bytes, 48 * MIB);
	assert_int_equal(u.evictions, 24);
	assert_int_equal(u.resident_bytes, 16 * MIB);
	assert_int_equal(u.resident_peak_bytes, 16 * MIB);
	/* 61 us per MiB out; in by faults 19.7 and 97 */
	assert_int_equal(u.moved_ns, 48 * 61000 + 32 * (19700 + 97000));
	frag_dev_close(d);
}

/* Ordinary memory pushes managed memory out, never the other way round. */
static void test_beside_others(void **state)
{
	struct frag_device *d = open_card(16 * MIB);
	frag_addr_t a = managed(d, 12 * MIB), s, t;
	struct frag_managed_usage u;
	struct frag_err err;
	uint64_t ns;

	(void)state;
	prefetch(d, a, 12 * MIB);
	assert_int_equal(frag_dev_alloc(d, 10 * MIB, &s, NULL), 0);
	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, 6 * MIB);
	assert_int_equal(d->reserved_bytes, 16 * MIB);
	assert_int_equal(frag_dev_alloc(d, 8 * MIB, &t, NULL), FRAG_OOM);
	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, 6 * MIB); /* in vain, so nothing was evicted */
	assert_int_equal(frag_dev_alloc(d, 6 * MIB, &t, NULL), 0);
	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, 0);
	/* a card full of what cannot be evicted */
	ns = d->driver_ns;
	assert_int_equal(frag_dev_managed_touch(d, a, 1, true, &err), FRAG_OOM);
	assert_true(d->driver_ns > ns);
	assert_int_equal(frag_dev_free(d, t, 6 * MIB, NULL), 0);
	prefetch(d, a, 1);
	frag_dev_managed_usage(d, &u);
	assert_int_equal(u.resident_bytes, 64 * KIB);
	frag_dev_close(d);
}

/* Small ones share 2 MiB as with cudaMalloc; the region goes with the last. */
static void test_small(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t a[6];

	(void)state;
	for (int i = 0; i < 6; i++) {
		a[i] = managed(d, 786432);
		assert_int_equal(a[i] - a[0] - (uint64_t)(i % 2) * 786432,
				 (a[i] - a[0]) / (2 * MIB) * 2 * MIB);
		touch(d, a[i], 786432);
	}
	assert_int_equal(a[1], a[0] + 786432); /* as measured */
	assert_int_equal(a[2] % (2 * MIB), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(frag_dev_managed_free(d, a[i], 786432, NULL), 0);
	assert_int_equal(usage(d).resident_bytes, 0);
	assert_int_equal(frag_dev_leaks(d), 0);
	frag_dev_close(d);
}

static void test_errors(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t small = managed(d, 512), big = managed(d, 4 * MIB), a;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_dev_managed_free(d, big + 512, 1, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "is not live managed memory"));
	assert_int_equal(frag_dev_managed_free(d, small + 512, 1, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_managed_touch(d, big, 4 * MIB + 1, true, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "is not managed memory"));
	assert_int_equal(frag_dev_managed_touch(d, big + 4 * MIB - 1, 2, true, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_managed_touch(d, 4096, 1, false, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_managed_alloc(d, 1ull << 60, &a, &err), FRAG_OOM);
	assert_int_equal(frag_dev_managed_free(d, big, 4 * MIB, NULL), 0);
	assert_int_equal(frag_dev_managed_free(d, big, 4 * MIB, &err), FRAG_EDEVICE);
	assert_int_equal(frag_dev_free(d, small, 512, &err), FRAG_EDEVICE); /* not a cudaMalloc */
	frag_dev_close(d);
}

/* ---- random touches against a plain list of groups -------------------------- */

#define BLOCKS 24
#define CARD_BLOCKS 10

struct model {
	bool resident[BLOCKS], out[BLOCKS];
	unsigned when[BLOCKS], clock;
	uint64_t in_bytes, out_bytes, evictions;
};

static void model_prefetch(struct model *m, int b)
{
	int count = 0, oldest = -1;

	if (m->resident[b])
		return;
	for (int i = 0; i < BLOCKS; i++) {
		count += m->resident[i];
		if (m->resident[i] && (oldest < 0 || m->when[i] < m->when[oldest]))
			oldest = i;
	}
	if (count == CARD_BLOCKS) {
		m->resident[oldest] = false;
		m->out[oldest] = true;
		m->out_bytes += 2 * MIB;
		m->evictions++;
	}
	m->in_bytes += m->out[b] ? 2 * MIB : 0;
	m->out[b] = false;
	m->resident[b] = true;
	m->when[b] = ++m->clock;
}

static void test_random(void **state)
{
	struct frag_device *d = open_card(CARD_BLOCKS * 2 * MIB);
	frag_addr_t a = managed(d, BLOCKS * 2 * MIB);
	struct model m = { 0 };
	uint64_t seed = 3;

	(void)state;
	for (int n = 0; n < 5000; n++) {
		struct frag_managed_usage u;
		int first, count;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		first = (int)(seed >> 40) % BLOCKS;
		count = (int)(seed >> 50) % 3 + 1;
		count = first + count > BLOCKS ? BLOCKS - first : count;
		prefetch(d, a + (uint64_t)first * 2 * MIB, (uint64_t)count * 2 * MIB);
		for (int i = 0; i < count; i++)
			model_prefetch(&m, first + i);
		u = usage(d);
		assert_int_equal(u.moved_in_bytes, m.in_bytes);
		assert_int_equal(u.moved_out_bytes, m.out_bytes);
		assert_int_equal(u.evictions, m.evictions);
	}
	assert_true(m.evictions > 1000);
	assert_int_equal(frag_dev_managed_free(d, a, 1, NULL), 0);
	assert_int_equal(usage(d).resident_bytes, 0);
	frag_dev_close(d);
}

/* A touch has the price of a launch, more if something faults, and a price for each block that does. */
static void test_price_of_touches(void **state)
{
	struct frag_device *d = open_card(64 * MIB);
	frag_addr_t a = managed(d, 9 * MIB);
	uint64_t ns = d->driver_ns, launch, faulting, part, block;

	(void)state;
	touch(d, a, 64 * KIB);
	faulting = d->driver_ns - ns;
	ns = d->driver_ns;
	touch(d, a, 64 * KIB);
	launch = d->driver_ns - ns;
	assert_int_equal(launch, 10000);
	assert_true(faulting > 4 * launch);
	ns = d->driver_ns;
	touch(d, a + 2 * MIB, 2 * MIB);
	block = d->driver_ns - ns - 40000;
	ns = d->driver_ns;
	touch(d, a + 4 * MIB, 4 * MIB);
	assert_int_equal(d->driver_ns - ns, 40000 + 2 * block);
	/* a part of a block is backed in small pieces: dearer than all of it */
	ns = d->driver_ns;
	touch(d, a + 8 * MIB, MIB);
	part = d->driver_ns - ns - 40000;
	assert_in_range(part, block, 2 * block);
	/* prefetched, nothing faults and nothing is launched */
	prefetch(d, a, 64 * KIB);
	ns = d->driver_ns;
	prefetch(d, a, 64 * KIB);
	assert_in_range(d->driver_ns - ns, 1, launch - 1);
	frag_dev_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_residency),
		cmocka_unit_test(test_density),
		cmocka_unit_test(test_density_end),
		cmocka_unit_test(test_eviction_order),
		cmocka_unit_test(test_oversubscription),
		cmocka_unit_test(test_beside_others),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_price_of_touches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
