/* SPDX-License-Identifier: Apache-2.0 */
/* paddle: the tail is handed out, chunk size, the three times at which idle chunks go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

static void test_rounding(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "paddle", NULL);
	assert_int_equal(probe_alloc(&p, 1).granted, 256);
	assert_int_equal(probe_alloc(&p, 257).granted, 512);
	probe_expect(&p, "m256 m512"); /* no chunk size: as needed */
	probe_close(&p);
}

/* Chunk of 2M: requests are cut from its end downwards. */
static void test_tail(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "paddle:chunk-size=2M", NULL);
	a = probe_alloc(&p, 256 * KIB);
	b = probe_alloc(&p, 512 * KIB);
	assert_int_equal(b.addr + 512 * KIB, a.addr);
	c = probe_alloc(&p, 1280 * KIB); /* the rest, exactly */
	assert_int_equal(c.addr + 1280 * KIB, b.addr);
	assert_int_equal(c.cls, FRAG_CLASS_HIT);
	probe_free(&p, b);
	/* of the hole the upper part again */
	b = probe_alloc(&p, 100 * KIB);
	assert_int_equal(b.addr + 100 * KIB, a.addr);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	probe_alloc(&p, 3 * MIB); /* more than a chunk: exactly */
	probe_expect(&p, "m2M m3M");
	probe_close(&p);
}

/* Lowest address among equals, and no streams. */
static void test_best_fit(void **state)
{
	struct probe p;
	struct frag_block a, b, low;

	(void)state;
	probe_open(&p, "paddle", NULL);
	a = probe_alloc_on(&p, 1 * MIB, 1);
	b = probe_alloc_on(&p, 1 * MIB, 2);
	probe_free(&p, probe_alloc(&p, 900 * KIB));
	probe_free(&p, a);
	probe_free(&p, b);
	low = a.addr < b.addr ? a : b;
	assert_int_equal(probe_alloc_on(&p, 1000 * KIB, 3).addr, low.addr + 24 * KIB);
	probe_expect(&p, "m1M m1M m900K");
	probe_close(&p);
}

static void test_merge(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "paddle:chunk-size=3M", NULL);
	a = probe_alloc(&p, 1 * MIB);
	b = probe_alloc(&p, 1 * MIB);
	c = probe_alloc(&p, 1 * MIB);
	probe_free(&p, a);
	probe_free(&p, c);
	probe_free(&p, b);
	assert_int_equal(probe_alloc(&p, 3 * MIB).addr, c.addr);
	probe_expect(&p, "m3M");
	probe_close(&p);
}

/* A card of 64M. By default idle chunks wait for a refusal, then one more try. */
static void test_release_at_refusal(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "paddle", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 20 * MIB));
	assert_int_equal(probe_alloc(&p, 40 * MIB).cls, FRAG_CLASS_GROW);
	probe_refuses(&p, 30 * MIB);
	probe_expect(&p, "m20M m40M r30M f20M r30M");
	assert_int_equal(probe_alloc(&p, 24 * MIB).cls, FRAG_CLASS_GROW);
	probe_close(&p);
}

static void test_release_at_miss(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "paddle:free-when-no-cache-hit=true",
		   &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 20 * MIB));
	probe_free(&p, probe_alloc(&p, 10 * MIB)); /* a hit: nothing goes */
	assert_int_equal(probe_alloc(&p, 24 * MIB).cls, FRAG_CLASS_RELEASE);
	probe_expect(&p, "m20M f20M m24M");
	probe_refuses(&p, 50 * MIB); /* asked once */
	probe_expect(&p, "r50M");
	probe_close(&p);
}

static void test_release_at_free(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "paddle:free-idle-chunk=true,chunk-size=4M", NULL);
	a = probe_alloc(&p, 1 * MIB);
	b = probe_alloc(&p, 2 * MIB);
	probe_free(&p, a);
	probe_expect(&p, "m4M");
	probe_free(&p, b);
	probe_expect(&p, "f4M");
	probe_close(&p);
}

static void test_trim(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "paddle", NULL);
	a = probe_alloc(&p, 4 * MIB);
	probe_free(&p, probe_alloc(&p, 8 * MIB));
	assert_int_equal(probe_usage(&p).releasable_bytes, 8 * MIB);
	probe_trim(&p);
	probe_expect(&p, "m4M m8M f8M");
	probe_free(&p, a);
	probe_close(&p);
}

static void test_random(void **state)
{
	static const struct random_options runs[] = {
		{ .text = "paddle:chunk-size=16M", .seed = 1 },
		{ .text = "paddle:chunk-size=16M", .seed = 11, .failures = true },
		{ .text = "paddle:free-idle-chunk=true", .seed = 2 },
		{ .text = "paddle:free-idle-chunk=true", .seed = 12, .failures = true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(runs); i++)
		random_run(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_best_fit),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_release_at_refusal),
		cmocka_unit_test(test_release_at_miss),
		cmocka_unit_test(test_release_at_free),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
