/* SPDX-License-Identifier: Apache-2.0 */
/* buddy: orders, halving, which free block, merging, arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

static void test_orders(void **state)
{
	static const struct {
		uint64_t bytes, granted;
	} rows[] = {
		{ 1, 512 },
		{ 512, 512 },
		{ 513, 1024 },
		{ 1024, 1024 },
		{ 1025, 2048 },
		{ 1 * MIB, 1 * MIB },
		{ 1 * MIB + 1, 2 * MIB },
		{ 5 * GIB, 8 * GIB },
		{ 8 * GIB + 1, 16 * GIB },
	};
	struct probe p;
	size_t i;

	(void)state;
	probe_open(&p, "buddy", NULL);
	for (i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_int_equal(probe_alloc(&p, rows[i].bytes).granted, rows[i].granted);
	probe_close(&p);
	probe_open(&p, "buddy:min-block=4K", NULL);
	assert_int_equal(probe_alloc(&p, 1).granted, 4096);
	probe_close(&p);
}

/* The lower half goes on; offsets by hand: 512 at 0 and 512, 1K at 1K, 4K at 4K, 2K at 2K. */
static void test_halving(void **state)
{
	static const uint64_t size[] = { 512, 512, 1024, 4096, 2048, 8192 };
	static const uint64_t offset[] = { 0, 512, 1024, 4096, 2048, 8192 };
	struct probe p;
	frag_addr_t base = 0;
	size_t i;

	(void)state;
	probe_open(&p, "buddy:arena=1M", NULL);
	for (i = 0; i < FRAG_ARRAY_LEN(size); i++) {
		struct frag_block b = probe_alloc(&p, size[i]);

		base = i ? base : b.addr;
		assert_int_equal(b.addr - base, offset[i]);
		/* after the first, every size finds the upper half that was left for it */
		assert_int_equal(b.cls, i ? FRAG_CLASS_HIT : FRAG_CLASS_GROW);
	}
	probe_expect(&p, "m1M");
	probe_close(&p);
}

/* Five blocks of 64K in a row; the 2nd, then the 4th are freed. */
static void freed_two(struct probe *p, const char *text, struct frag_block *b)
{
	int i;

	probe_open(p, text, NULL);
	for (i = 0; i < 5; i++)
		b[i] = probe_alloc(p, 64 * KIB);
	probe_free(p, b[1]);
	probe_free(p, b[3]);
}

static void test_lowest_or_latest(void **state)
{
	struct probe p;
	struct frag_block b[5];

	(void)state;
	freed_two(&p, "buddy:arena=1M", b);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b[1].addr);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b[3].addr);
	probe_close(&p);
	freed_two(&p, "buddy:arena=1M,order=lifo", b);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b[3].addr);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b[1].addr);
	probe_close(&p);
}

/* The smallest order that fits comes before the lowest address. */
static void test_smallest_order_first(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "buddy:arena=1M", NULL);
	a = probe_alloc(&p, 256 * KIB); /* at 0 */
	b = probe_alloc(&p, 64 * KIB);	/* at 256K; 64K free at 320K */
	c = probe_alloc(&p, 512 * KIB);
	probe_free(&p, a);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b.addr + 64 * KIB);
	(void)c;
	probe_close(&p);
}

/* Buddies only: 64K at 64K and 64K at 128K are neighbours, but not buddies. */
static void test_merge(void **state)
{
	struct probe p;
	struct frag_block b[4];
	int i;

	(void)state;
	probe_open(&p, "buddy:arena=256K", NULL);
	for (i = 0; i < 4; i++)
		b[i] = probe_alloc(&p, 64 * KIB);
	probe_free(&p, b[1]);
	probe_free(&p, b[2]);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 64 * KIB);
	probe_free(&p, b[0]);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 128 * KIB);
	assert_int_equal(probe_alloc(&p, 128 * KIB).addr, b[0].addr);
	probe_free(&p, b[3]);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 128 * KIB);
	assert_int_equal(probe_usage(&p).blocks_count, 2);
	probe_close(&p);
}

/* max(2^order, arena); then smaller ones, so that all of the card is used. */
static void test_growth(void **state)
{
	struct probe p;
	int i;

	(void)state;
	probe_open(&p, "buddy:arena=4M", &(struct probe_options){ .total = 14 * MIB });
	probe_alloc(&p, 512);
	probe_alloc(&p, 5 * MIB);
	probe_expect(&p, "m4M m8M");
	probe_alloc(&p, 2 * MIB); /* from the first arena */
	probe_expect(&p, "");
	probe_alloc(&p, 2 * MIB); /* 2 MiB are left of the card */
	probe_expect(&p, "r4M m2M");
	probe_refuses(&p, 2 * MIB);
	probe_expect(&p, "r4M r2M");
	assert_int_equal(p.syncs, 1);
	probe_close(&p);

	/* arenas are not merged: 2 of 1M do not serve 2M */
	probe_open(&p, "buddy:arena=1M,give-back=never",
		   &(struct probe_options){ .total = 2 * MIB });
	for (i = 0; i < 2; i++)
		probe_alloc(&p, 512 * KIB);
	probe_expect(&p, "m1M");
	probe_close(&p);
}

static void test_capacity(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "buddy:capacity=13M", NULL);
	assert_int_equal(p.dev->driver_calls, 0); /* at first use, not before */
	a = probe_alloc(&p, 3 * MIB);
	assert_int_equal(a.granted, 4 * MIB);
	probe_expect(&p, "m8M m4M m1M");
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	probe_alloc(&p, 8 * MIB);
	probe_refuses(&p, 2 * MIB);
	probe_alloc(&p, 1 * MIB);
	probe_refuses(&p, 1);
	probe_free(&p, a);
	probe_trim(&p); /* nothing is given back */
	probe_expect(&p, "");
	assert_int_equal(probe_usage(&p).releasable_bytes, 0);
	probe_close(&p);

	/* a request above the largest arena is refused, now and later */
	probe_open(&p, "buddy:capacity=6M", NULL);
	probe_refuses(&p, 5 * MIB);
	probe_alloc(&p, 4 * MIB);
	probe_expect(&p, "m4M m2M");
	probe_close(&p);
}

static void test_give_back(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "buddy:arena=4M", &(struct probe_options){ .total = 8 * MIB });
	a = probe_alloc(&p, 4 * MIB);
	b = probe_alloc(&p, 1 * MIB);
	probe_free(&p, a);
	assert_int_equal(probe_usage(&p).releasable_bytes, 4 * MIB);
	assert_int_equal(probe_usage(&p).non_releasable_bytes, 3 * MIB);
	probe_trim(&p);
	probe_expect(&p, "m4M m4M f4M");
	a = probe_alloc(&p, 4 * MIB);
	probe_free(&p, a);
	probe_free(&p, b);
	probe_expect(&p, "m4M");
	/* 8M: refused, both idle arenas go, then granted */
	a = probe_alloc(&p, 8 * MIB);
	probe_expect(&p, "r8M f4M f4M m8M");
	assert_int_equal(a.cls, FRAG_CLASS_RELEASE);
	probe_close(&p);

	probe_open(&p, "buddy:arena=4M,give-back=free", NULL);
	a = probe_alloc(&p, 512);
	probe_free(&p, a);
	probe_expect(&p, "m4M f4M");
	probe_close(&p);

	probe_open(&p, "buddy:arena=4M,give-back=never",
		   &(struct probe_options){ .total = 8 * MIB });
	probe_free(&p, probe_alloc(&p, 512));
	probe_trim(&p);
	probe_refuses(&p, 8 * MIB);
	probe_expect(&p, "m4M r8M");
	probe_close(&p);
}

/* Before out of memory: pending frees, then a look at what they freed. */
static void test_waits(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "buddy:arena=4M", &(struct probe_options){ .total = 4 * MIB });
	a = probe_alloc(&p, 2 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_defer(&p, a);
	assert_int_equal(probe_usage(&p).waiting_bytes, 2 * MIB);
	b = probe_alloc(&p, 2 * MIB);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(p.syncs, 1);
	probe_expect(&p, "m4M r4M r2M");
	probe_close(&p);
}

/* The half of an arena of 2M that is free below a live one: the lowest there is, or 0. */
static frag_addr_t lowest_half(const struct frag_block *live, size_t n)
{
	frag_addr_t lowest = 0;

	for (size_t i = 0; i < n; i++) {
		frag_addr_t half = live[i].addr ^ MIB;
		bool taken = live[i].granted != MIB;

		for (size_t j = 0; j < n && !taken; j++)
			taken = live[j].addr == half;
		if (!taken && (!lowest || half < lowest))
			lowest = half;
	}
	return lowest;
}

/* Arenas come and go in no order; always the lowest free half serves, and no other arena is opened. */
static void test_many_arenas(void **state)
{
	struct frag_block live[256];
	uint64_t seed = 1, at;
	struct probe p;
	size_t n = 0;

	(void)state;
	probe_open(&p, "buddy:arena=2M,give-back=free", NULL);
	for (int i = 0; i < 4000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		p.calls = 0;
		if (n && (n == FRAG_ARRAY_LEN(live) || seed >> 63 == (uint64_t)(i / 500 & 1))) {
			at = (seed >> 32) % n;
			probe_free(&p, live[at]);
			live[at] = live[--n];
			continue;
		}
		at = seed >> 40 & 1 ? lowest_half(live, n) : 0;
		live[n] = probe_alloc(&p, seed >> 40 & 1 ? MIB : 2 * MIB);
		if (at)
			assert_int_equal(live[n].addr, at);
		else
			assert_int_equal(live[n].cls, FRAG_CLASS_GROW);
		n++;
	}
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_halving),
		cmocka_unit_test(test_lowest_or_latest),
		cmocka_unit_test(test_smallest_order_first),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_give_back),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_many_arenas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
