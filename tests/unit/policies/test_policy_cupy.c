/* SPDX-License-Identifier: Apache-2.0 */
/* cupy: exact sizes, arenas per stream, newest first among equals, order of retries, limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

/* A free hole of this size with live neighbours. */
static struct frag_block hole(struct probe *p, uint64_t bytes)
{
	struct frag_block b = probe_alloc(p, bytes);

	probe_alloc(p, 512);
	probe_free(p, b);
	return b;
}

static void test_rounding_and_growth(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "cupy", NULL);
	assert_int_equal(probe_alloc(&p, 1).granted, 512);
	assert_int_equal(probe_alloc(&p, 513).granted, 1024);
	probe_alloc(&p, 3 * MIB + 1);
	probe_expect(&p, "m512 m1K m3146240"); /* 3145728 + 512 */
	probe_close(&p);
}

/* Any rest is split off; the head is handed out. */
static void test_split_exact(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "cupy", NULL);
	a = probe_alloc(&p, 4096);
	probe_free(&p, a);
	b = probe_alloc(&p, 3584);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	c = probe_alloc(&p, 512);
	assert_int_equal(c.addr, a.addr + 3584);
	assert_int_equal(c.cls, FRAG_CLASS_HIT);
	/* merge: all one again, whatever the order */
	probe_free(&p, b);
	probe_free(&p, c);
	b = probe_alloc(&p, 4096);
	assert_int_equal(b.addr, a.addr);
	probe_expect(&p, "m4K");
	probe_close(&p);
}

/* Three equal holes: the one freed last serves first; a smaller one that fits before that. */
static void test_newest_first(void **state)
{
	struct probe p;
	struct frag_block a, b, c, d;

	(void)state;
	probe_open(&p, "cupy", NULL);
	a = probe_alloc(&p, 64 * KIB);
	b = probe_alloc(&p, 64 * KIB);
	c = probe_alloc(&p, 64 * KIB);
	d = probe_alloc(&p, 60 * KIB);
	probe_free(&p, b);
	probe_free(&p, d);
	probe_free(&p, c);
	probe_free(&p, a);
	assert_int_equal(probe_alloc(&p, 62 * KIB).addr, a.addr);
	assert_int_equal(probe_alloc(&p, 62 * KIB).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 58 * KIB).addr, d.addr);
	assert_int_equal(probe_alloc(&p, 62 * KIB).addr, b.addr);
	probe_close(&p);
}

static void test_arenas(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "cupy", NULL);
	a = probe_alloc_on(&p, 8 * KIB, 1);
	probe_free(&p, a);
	b = probe_alloc_on(&p, 8 * KIB, 2);
	assert_int_not_equal(b.addr, a.addr);
	assert_int_equal(probe_alloc_on(&p, 8 * KIB, 1).addr, a.addr);
	probe_expect(&p, "m8K m8K");
	probe_close(&p);
}

/*
 * A card of 64M with 10M and 20M cached, the 20M split. 50M: refused; the whole 10M goes;
 * refused; nothing left to give; refused: out of memory. 40M fit after the first round.
 */
static void test_retries(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "cupy", &(struct probe_options){ .total = 64 * MIB });
	a = probe_alloc(&p, 10 * MIB);
	hole(&p, 4 * MIB);
	b = probe_alloc(&p, 20 * MIB);
	probe_free(&p, b);
	b = probe_alloc(&p, 6 * MIB); /* of the 20M */
	probe_free(&p, a);
	probe_expect(&p, "m10M m4M m512 m20M");
	probe_refuses(&p, 60 * MIB);
	probe_expect(&p, "r60M f10M f4M r60M r60M");
	a = probe_alloc(&p, 10 * MIB); /* from what is left of the 20M */
	probe_free(&p, a);
	probe_free(&p, b);
	a = probe_alloc(&p, 50 * MIB);
	assert_int_equal(a.cls, FRAG_CLASS_RELEASE);
	probe_expect(&p, "r50M f20M m50M");
	probe_close(&p);
}

/*
 * What only the whole segments at hand keep below the limit takes their place; above the limit
 * itself nothing is given back.
 */
static void test_limit(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "cupy:limit=10M", NULL);
	probe_free(&p, probe_alloc(&p, 6 * MIB));
	probe_refuses(&p, 11 * MIB);
	probe_free(&p, probe_alloc(&p, 8 * MIB));
	probe_alloc(&p, 6 * MIB);
	probe_refuses(&p, 6 * MIB); /* the segment of 8M is in use */
	probe_alloc(&p, 2 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_refuses(&p, 512);
	probe_expect(&p, "m6M f6M m8M m2M");
	probe_close(&p);
	probe_open(&p, "cupy:limit-fraction=0.5", &(struct probe_options){ .total = 64 * MIB });
	probe_alloc(&p, 32 * MIB);
	probe_refuses(&p, 1);
	probe_close(&p);
}

/* Only whole segments go, of every arena. */
static void test_trim(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "cupy", NULL);
	a = probe_alloc_on(&p, 4 * MIB, 1);
	b = probe_alloc_on(&p, 8 * MIB, 2);
	probe_free(&p, a);
	probe_free(&p, b);
	probe_alloc_on(&p, 512, 2);
	assert_int_equal(probe_usage(&p).releasable_bytes, 4 * MIB);
	probe_trim(&p);
	probe_expect(&p, "m4M m8M f4M");
	assert_int_equal(probe_usage(&p).largest_free_bytes, 8 * MIB - 512);
	probe_close(&p);
}

static void test_options(void **state)
{
	struct frag_policy_spec *spec;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_policy_spec_parse("cupy:limit=1G,limit-fraction=0.5", &spec, &err),
			 FRAG_EUSAGE);
}

static void test_random(void **state)
{
	static const struct random_options runs[] = {
		{ .text = "cupy", .seed = 1 },
		{ .text = "cupy", .seed = 11, .failures = true },
		{ .text = "cupy:limit=300M", .seed = 2 },
		{ .text = "cupy:limit=300M", .seed = 12, .failures = true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(runs); i++)
		random_run(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounding_and_growth),
		cmocka_unit_test(test_split_exact),
		cmocka_unit_test(test_newest_first),
		cmocka_unit_test(test_arenas),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
