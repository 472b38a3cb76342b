/* SPDX-License-Identifier: Apache-2.0 */
/* slab: size classes, which slot of which slab, pages, segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

/* jemalloc's series 16, 32, 48, 64, 80 ... in units of 512 B; pages above 1 MiB. */
static void test_classes(void **state)
{
	static const struct {
		uint64_t bytes, granted;
	} rows[] = {
		{ 1, 512 },
		{ 513, 1024 },
		{ 1025, 1536 },
		{ 1537, 2048 },
		{ 2049, 2560 },
		{ 2561, 3072 },
		{ 3073, 3584 },
		{ 4096, 4096 },
		{ 4097, 5120 },
		{ 8193, 10 * KIB },
		{ 10 * KIB + 1, 12 * KIB },
		{ 14 * KIB + 1, 16 * KIB },
		{ 896 * KIB + 1, MIB },
		{ MIB, MIB },
		{ MIB + 1, 2 * MIB },
		{ 2 * MIB, 2 * MIB },
		{ 2 * MIB + 1, 4 * MIB }, /* class 2.5M, whole pages */
		{ 8 * MIB + 1, 10 * MIB },
		{ 10 * MIB + 1, 12 * MIB },
		{ 16 * MIB + 1, 20 * MIB },
		{ 33 * MIB, 40 * MIB },
	};
	struct probe p;
	size_t i;

	(void)state;
	probe_open(&p, "slab", NULL);
	for (i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_int_equal(probe_alloc(&p, rows[i].bytes).granted, rows[i].granted);
	probe_close(&p);
}

/* Slots from the bottom; the lowest free one is used; 2M / 768K is 2 slots, the rest stays
 * unused. */
static void test_slots(void **state)
{
	struct probe p;
	struct frag_block b[5];
	int i;

	(void)state;
	probe_open(&p, "slab", NULL);
	for (i = 0; i < 4; i++) {
		b[i] = probe_alloc(&p, 2048);
		assert_int_equal(b[i].addr, b[0].addr + 2048u * (unsigned)i);
	}
	probe_free(&p, b[2]);
	probe_free(&p, b[1]);
	assert_int_equal(probe_alloc(&p, 2048).addr, b[1].addr);
	assert_int_equal(probe_alloc(&p, 2048).addr, b[2].addr);
	for (i = 0; i < 3; i++)
		b[i] = probe_alloc(&p, 768 * KIB);
	assert_int_equal(b[1].addr, b[0].addr + 768 * KIB);
	assert_int_equal(b[2].addr, b[0].addr + 2 * MIB);
	assert_int_equal(probe_usage(&p).allocated_bytes, 4 * 2048 + 3 * 768 * KIB);
	assert_int_equal(probe_usage(&p).non_releasable_bytes, 32 * MIB - 4 * 2048 - 3 * 768 * KIB);
	probe_expect(&p, "m32M");
	probe_close(&p);
}

/* Classes do not share slabs: 512 B and 1 KiB are 2 MiB apart. */
static void test_slab_per_class(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "slab", NULL);
	a = probe_alloc(&p, 512);
	b = probe_alloc(&p, 1024);
	assert_int_equal(b.addr, a.addr + 2 * MIB);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	assert_int_equal(probe_alloc(&p, 512).cls, FRAG_CLASS_HIT);
	probe_close(&p);
}

/* Three slabs of two slots each; slots of two full ones are freed: the lowest slab comes first. */
static void test_lowest_slab_first(void **state)
{
	struct probe p;
	struct frag_block b[6];
	int i;

	(void)state;
	probe_open(&p, "slab", NULL);
	for (i = 0; i < 6; i++)
		b[i] = probe_alloc(&p, MIB);
	probe_free(&p, b[4]); /* third slab, the current one */
	probe_free(&p, b[3]); /* second: below, becomes the current one */
	probe_free(&p, b[0]); /* first: lower still */
	assert_int_equal(probe_alloc(&p, MIB).addr, b[0].addr);
	assert_int_equal(probe_alloc(&p, MIB).addr, b[3].addr);
	assert_int_equal(probe_alloc(&p, MIB).addr, b[4].addr);
	probe_close(&p);
}

/* An empty slab is a free page at once, and merges. */
static void test_empty_slab(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "slab:grow=0", NULL);
	a = probe_alloc(&p, 512);
	b = probe_alloc(&p, 512);
	probe_free(&p, a);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 0); /* free extents only */
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).releasable_bytes, 2 * MIB);
	assert_int_equal(probe_alloc(&p, 2 * MIB).addr, a.addr);
	probe_expect(&p, "m2M");
	probe_close(&p);
}

/* Best fit over extents, the lowest of equals, cut exactly. */
static void test_extents(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "slab", NULL);
	a = probe_alloc(&p, 6 * MIB);
	probe_alloc(&p, 2 * MIB);
	b = probe_alloc(&p, 4 * MIB);
	probe_alloc(&p, 2 * MIB);
	c = probe_alloc(&p, 4 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_free(&p, a);
	probe_free(&p, c);
	probe_free(&p, b);
	assert_int_equal(probe_alloc(&p, 4 * MIB).addr, b.addr);
	assert_int_equal(probe_alloc(&p, 2 * MIB).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 2 * MIB).addr, c.addr + 2 * MIB);
	assert_int_equal(probe_alloc(&p, 5 * MIB).addr, a.addr);
	probe_expect(&p, "m32M");
	probe_close(&p);
}

static void test_growth_and_give_back(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "slab", &(struct probe_options){ .total = 72 * MIB });
	a = probe_alloc(&p, 20 * MIB);
	b = probe_alloc(&p, 40 * MIB);
	probe_expect(&p, "m32M m40M");
	probe_free(&p, a);
	probe_free(&p, b);
	probe_alloc(&p, 512); /* in the smaller extent */
	probe_trim(&p);
	probe_expect(&p, "f40M");
	probe_alloc(&p, 40 * MIB);
	probe_expect(&p, "m40M");
	probe_close(&p);

	/* 32M are refused where 4M are left; then waiting, then idle segments go */
	probe_open(&p, "slab", &(struct probe_options){ .total = 36 * MIB });
	a = probe_alloc(&p, 32 * MIB);
	b = probe_alloc(&p, 4 * MIB);
	probe_expect(&p, "m32M r32M m4M");
	probe_free(&p, b);
	probe_defer(&p, a);
	a = probe_alloc(&p, 8 * MIB);
	assert_int_equal(a.cls, FRAG_CLASS_RELEASE);
	assert_int_equal(p.syncs, 1);
	probe_expect(&p, "r32M r8M"); /* what was waited for is enough */
	probe_free(&p, a);
	probe_refuses(&p, 40 * MIB);
	probe_expect(&p, "r40M f32M f4M r40M");
	probe_close(&p);
}

static void test_waiting_slots(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "slab", NULL);
	a = probe_alloc(&p, 3000);
	probe_alloc(&p, 3000);
	probe_defer(&p, a);
	assert_int_equal(probe_usage(&p).waiting_bytes, 3072);
	assert_int_equal(probe_usage(&p).allocated_bytes, 3072);
	probe_free(&p, a);
	assert_int_equal(probe_usage(&p).waiting_bytes, 0);
	assert_int_equal(probe_alloc(&p, 3000).addr, a.addr);
	probe_close(&p);
}

/* A card of one page: the slot that the wait brings back is used, although no page is free. */
static void test_waits_for_a_slot(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "slab:grow=0", &(struct probe_options){ .total = 2 * MIB });
	a = probe_alloc(&p, MIB);
	probe_alloc(&p, MIB);
	probe_defer(&p, a);
	assert_int_equal(probe_alloc(&p, MIB).addr, a.addr);
	assert_int_equal(p.syncs, 1);
	probe_expect(&p, "m2M r2M");
	probe_refuses(&p, MIB);
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_slab_per_class),
		cmocka_unit_test(test_lowest_slab_first),
		cmocka_unit_test(test_empty_slab),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_growth_and_give_back),
		cmocka_unit_test(test_waiting_slots),
		cmocka_unit_test(test_waits_for_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
