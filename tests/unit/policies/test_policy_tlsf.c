/* SPDX-License-Identifier: Apache-2.0 */
/* tlsf: list boundaries and what a search misses, LIFO lists, splitting, pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

/* A free hole of this size with live neighbours; the rest of the pool stays free behind. */
static struct frag_block hole(struct probe *p, uint64_t bytes)
{
	struct frag_block b = probe_alloc(p, bytes);

	probe_alloc(p, 512);
	return b;
}

static void test_rounding_and_split(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "tlsf:pool=2M", NULL);
	a = probe_alloc(&p, 1);
	assert_int_equal(a.granted, 512);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	b = probe_alloc(&p, 513);
	assert_int_equal(b.granted, 1024);
	assert_int_equal(b.addr, a.addr + 512);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	/* one unit left over is split off */
	probe_alloc(&p, 512);
	probe_free(&p, b);
	b = probe_alloc(&p, 512);
	assert_int_equal(b.granted, 512);
	assert_int_equal(b.addr, a.addr + 512);
	assert_int_equal(probe_alloc(&p, 512).addr, a.addr + 1024);
	probe_expect(&p, "m2M");
	probe_close(&p);
	probe_open(&p, "tlsf:align=8", NULL);
	assert_int_equal(probe_alloc(&p, 9).granted, 16);
	probe_close(&p);
}

/*
 * From 32K to 64K the lists are 1K apart (32 of them). A block of 33K + 512 is in the list
 * of 33K; a request of 33K + 512 searches from 34K on and does not see it; one of 33K does.
 */
static void test_search_rounds_up(void **state)
{
	struct probe p;
	struct frag_block h;
	const uint64_t bytes = 33 * KIB + 512;

	(void)state;
	probe_open(&p, "tlsf:pool=2M", NULL);
	h = hole(&p, bytes);
	probe_free(&p, h);
	assert_true(probe_alloc(&p, bytes).addr > h.addr); /* from the rest of the pool */
	assert_int_equal(probe_alloc(&p, 33 * KIB).addr, h.addr);
	probe_close(&p);

	/* on a boundary the block is found again; below 32 units every size is a boundary */
	probe_open(&p, "tlsf:pool=2M", NULL);
	h = hole(&p, 33 * KIB);
	probe_free(&p, h);
	assert_int_equal(probe_alloc(&p, 33 * KIB).addr, h.addr);
	h = hole(&p, 31 * 512);
	probe_free(&p, h);
	assert_int_equal(probe_alloc(&p, 31 * 512).addr, h.addr);
	probe_close(&p);
}

/* Good fit, not best fit: of two blocks in one list the head is taken, freed last, not the
 * smaller. */
static void test_lifo(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "tlsf:pool=2M", NULL);
	a = hole(&p, 64 * KIB);
	b = hole(&p, 64 * KIB + 1536); /* lists are 2K apart from 64K on */
	c = hole(&p, 80 * KIB);
	probe_free(&p, a);
	probe_free(&p, b);
	probe_free(&p, c);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, b.addr);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, a.addr);
	assert_int_equal(probe_alloc(&p, 64 * KIB).addr, c.addr);
	probe_close(&p);
}

static void test_merge(void **state)
{
	struct probe p;
	struct frag_block b[3];
	int i;

	(void)state;
	probe_open(&p, "tlsf:pool=2M", NULL);
	for (i = 0; i < 3; i++)
		b[i] = probe_alloc(&p, 100 * KIB);
	probe_free(&p, b[0]);
	probe_free(&p, b[2]); /* merges with the rest of the pool */
	assert_int_equal(probe_usage(&p).blocks_count, 3);
	probe_free(&p, b[1]);
	assert_int_equal(probe_usage(&p).blocks_count, 1);
	assert_int_equal(probe_usage(&p).releasable_bytes, 2 * MIB);
	assert_int_equal(probe_alloc(&p, 2 * MIB).cls, FRAG_CLASS_HIT);
	probe_close(&p);
}

/*
 * 130M is in the lists that are 4M apart: a pool of 132M, which the next request of 130M
 * finds. Where only 130M are left, a pool of 130M.
 */
static void test_pools(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "tlsf", &(struct probe_options){ .total = 262 * MIB });
	a = probe_alloc(&p, 130 * MIB);
	assert_int_equal(a.granted, 130 * MIB);
	probe_free(&p, a);
	assert_int_equal(probe_alloc(&p, 130 * MIB).addr, a.addr);
	probe_expect(&p, "m132M");
	probe_alloc(&p, 130 * MIB);
	probe_expect(&p, "r132M m130M");
	probe_refuses(&p, 4 * MIB);
	probe_expect(&p, "r64M r4M");
	probe_close(&p);
}

/* Idle pools go on trim, and before out of memory. */
static void test_give_back(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "tlsf:pool=4M", &(struct probe_options){ .total = 10 * MIB });
	a = probe_alloc(&p, 4 * MIB);
	b = probe_alloc(&p, 4 * MIB);
	probe_free(&p, a);
	probe_trim(&p);
	probe_expect(&p, "m4M m4M f4M");
	probe_free(&p, b);
	a = probe_alloc(&p, 8 * MIB);
	assert_int_equal(a.cls, FRAG_CLASS_RELEASE);
	probe_expect(&p, "r8M f4M m8M");
	assert_int_equal(p.syncs, 1);
	probe_close(&p);
}

static void test_waits(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "tlsf:pool=4M", &(struct probe_options){ .total = 4 * MIB });
	a = probe_alloc(&p, 4 * MIB);
	probe_defer(&p, a);
	assert_int_equal(probe_alloc(&p, 4 * MIB).addr, a.addr);
	probe_expect(&p, "m4M r4M");
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounding_and_split),
		cmocka_unit_test(test_search_rounds_up),
		cmocka_unit_test(test_lifo),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_give_back),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
