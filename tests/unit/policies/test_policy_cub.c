/* SPDX-License-Identifier: Apache-2.0 */
/* cub: bins, the limit of the cache, which stream may have a cached block, retry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

static void test_bins(void **state)
{
	static const uint64_t rows[][2] = {
		{ 1, 512 },
		{ 512, 512 },
		{ 513, 4 * KIB },
		{ 4 * KIB, 4 * KIB },
		{ 4 * KIB + 1, 32 * KIB },
		{ 32 * KIB + 1, 256 * KIB },
		{ 256 * KIB + 1, 2 * MIB },
		{ 2 * MIB, 2 * MIB },
		{ 2 * MIB + 1, 2 * MIB + 1 },
	};
	struct probe p;
	size_t i;

	(void)state;
	probe_open(&p, "cub", NULL);
	for (i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_int_equal(probe_alloc(&p, rows[i][0]).granted, rows[i][1]);
	probe_close(&p);
	/* the other constructor: from growth^1, no top, no limit */
	probe_open(&p, "cub:growth=3,min-bin=1,max-bin=63,max-cached=max", NULL);
	assert_int_equal(probe_alloc(&p, 1).granted, 3);
	assert_int_equal(probe_alloc(&p, 10).granted, 27);
	assert_int_equal(probe_alloc(&p, 100 * MIB).granted, 129140163);
	probe_close(&p);
}

/* Only the exact bin is looked at, however much is cached in the next. */
static void test_exact_bin(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "cub", NULL);
	probe_free(&p, probe_alloc(&p, 4 * KIB));
	assert_int_equal(probe_alloc(&p, 512).cls, FRAG_CLASS_GROW);
	assert_int_equal(probe_alloc(&p, 600).cls, FRAG_CLASS_HIT);
	probe_expect(&p, "m4K m512");
	probe_close(&p);
}

/* 6291455 bytes may be cached: two blocks of 2M, not three, but then 256K still. */
static void test_cache_limit(void **state)
{
	struct probe p;
	struct frag_block b[4];
	unsigned i;

	(void)state;
	probe_open(&p, "cub", NULL);
	for (i = 0; i < 3; i++)
		b[i] = probe_alloc(&p, 2 * MIB);
	b[3] = probe_alloc(&p, 256 * KIB);
	for (i = 0; i < 4; i++)
		probe_free(&p, b[i]);
	probe_expect(&p, "m2M m2M m2M m256K f2M");
	assert_int_equal(probe_usage(&p).releasable_bytes, 4 * MIB + 256 * KIB);
	/* above the top bin nothing is cached */
	probe_free(&p, probe_alloc(&p, 3 * MIB));
	probe_expect(&p, "m3M f3M");
	probe_close(&p);
	/* just enough: the limit itself is allowed */
	probe_open(&p, "cub:max-cached=4M", NULL);
	b[0] = probe_alloc(&p, 2 * MIB);
	b[1] = probe_alloc(&p, 2 * MIB);
	probe_free(&p, b[0]);
	probe_free(&p, b[1]);
	probe_expect(&p, "m2M m2M");
	probe_close(&p);
}

/* The block that was cached first, not the lowest. */
static void test_oldest_first(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "cub", NULL);
	a = probe_alloc(&p, 512);
	b = probe_alloc(&p, 512);
	c = probe_alloc(&p, 512);
	probe_free(&p, c);
	probe_free(&p, a);
	probe_free(&p, b);
	assert_int_equal(probe_alloc(&p, 512).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 512).addr, a.addr);
	assert_int_equal(probe_alloc(&p, 512).addr, b.addr);
	probe_close(&p);
}

/* Another stream's block is taken once its event is done: 10 ms after, or synchronised. */
static void test_streams(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "cub", NULL);
	a = probe_alloc_on(&p, 512, 1);
	b = probe_alloc_on(&p, 512, 2);
	probe_free(&p, a); /* older */
	probe_free(&p, b);
	c = probe_alloc_on(&p, 512, 2); /* a is not done: the own one */
	assert_int_equal(c.addr, b.addr);
	probe_free(&p, c);
	p.dev->now_ns += 9999999;
	c = probe_alloc_on(&p, 512, 2);
	assert_int_equal(c.addr, b.addr);
	probe_free(&p, c);
	p.dev->now_ns += 1;
	c = probe_alloc_on(&p, 512, 2); /* now a is done, and it is older than b */
	assert_int_equal(c.addr, a.addr);
	probe_free(&p, c); /* of stream 2 from now on */
	assert_int_equal(probe_alloc_on(&p, 512, 1).cls, FRAG_CLASS_GROW);
	assert_int_equal(frag_dev_sync(p.dev, 2, &p.err), 0);
	assert_int_equal(probe_alloc_on(&p, 512, 1).addr, b.addr);
	assert_int_equal(probe_alloc_on(&p, 512, 1).addr, a.addr);
	assert_int_equal(p.dev->stat[FRAG_CALL_FENCE].count, 5); /* one per cached free */
	probe_close(&p);
}

/* A refusal gives everything cached back, smallest bin first, and asks once more. */
static void test_retry(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "cub", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 2 * MIB));
	probe_free(&p, probe_alloc_on(&p, 512, 3));
	probe_free(&p, probe_alloc(&p, 1 * MIB)); /* the 2M again */
	probe_free(&p, probe_alloc(&p, 256 * KIB));
	probe_refuses(&p, 65 * MIB);
	probe_expect(&p, "m2M m512 m256K r65M f512 f256K f2M r65M");
	probe_free(&p, probe_alloc(&p, 2 * MIB));
	assert_int_equal(probe_alloc(&p, 63 * MIB).cls, FRAG_CLASS_RELEASE);
	probe_expect(&p, "m2M r63M f2M m63M");
	probe_close(&p);
}

static void test_random(void **state)
{
	static const struct random_options runs[] = {
		{ .text = "cub", .seed = 1 },
		{ .text = "cub", .seed = 11, .failures = true },
		{ .text = "cub:growth=2,min-bin=9,max-bin=25,max-cached=200M", .seed = 2 },
		{ .text = "cub:growth=2,min-bin=9,max-bin=25,max-cached=200M",
		  .seed = 12,
		  .failures = true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(runs); i++)
		random_run(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins),	    cmocka_unit_test(test_exact_bin),
		cmocka_unit_test(test_cache_limit), cmocka_unit_test(test_oldest_first),
		cmocka_unit_test(test_streams),	    cmocka_unit_test(test_retry),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
