/* SPDX-License-Identifier: Apache-2.0 */
/* ggml: look-ahead, whole buffers, slots and their order, a full array, retry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

/* 1.05 * 1000 = 1050 -> 1280; 1.05 * 256 = 268.8 -> 268 -> 512; 1.05 * 100M = 110100480 */
static void test_look_ahead(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "ggml", NULL);
	assert_int_equal(probe_alloc(&p, 1000).granted, 1280);
	assert_int_equal(probe_alloc(&p, 256).granted, 512);
	assert_int_equal(probe_alloc(&p, 1).granted, 256);
	assert_int_equal(probe_alloc(&p, 100 * MIB).granted, 105 * MIB);
	probe_close(&p);
	probe_open(&p, "ggml:look-ahead=1", NULL);
	assert_int_equal(probe_alloc(&p, 1024).granted, 1024);
	probe_close(&p);
}

/* The smallest that fits, granted whole, however large. */
static void test_whole(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "ggml", NULL);
	a = probe_alloc(&p, 100 * MIB);
	b = probe_alloc(&p, 20 * MIB);
	probe_free(&p, a);
	probe_free(&p, b);
	b = probe_alloc(&p, 1);
	assert_int_equal(b.granted, 21 * MIB);
	a = probe_alloc(&p, 1);
	assert_int_equal(a.granted, 105 * MIB);
	probe_expect(&p, "m105M m21M");
	probe_close(&p);
}

/* Buffers 64 GiB larger than the request are not seen by the search. */
static void test_waste_limit(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "ggml:look-ahead=1", &(struct probe_options){ .total = 140 * GIB });
	probe_free(&p, probe_alloc(&p, 64 * GIB + 512));
	assert_int_equal(probe_alloc(&p, 512).cls, FRAG_CLASS_GROW);
	assert_int_equal(probe_alloc(&p, 513).cls, FRAG_CLASS_HIT);
	probe_close(&p);
}

/* Equal buffers by slot: a free takes the first empty slot, and a search the lowest. */
static void test_slots(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "ggml", NULL);
	a = probe_alloc(&p, 4096);
	b = probe_alloc(&p, 4096);
	c = probe_alloc(&p, 4096);
	probe_free(&p, b); /* slot 0 */
	probe_free(&p, a); /* slot 1 */
	assert_int_equal(probe_alloc(&p, 4096).addr, b.addr);
	probe_free(&p, c); /* slot 0 again */
	assert_int_equal(probe_alloc(&p, 4096).addr, c.addr);
	assert_int_equal(probe_alloc(&p, 4096).addr, a.addr);
	probe_close(&p);
}

/* The 257th buffer goes back to the driver. */
static void test_full(void **state)
{
	static struct frag_block b[257];
	struct probe p;
	unsigned i;

	(void)state;
	probe_open(&p, "ggml", NULL);
	p.dev->log = NULL;
	for (i = 0; i < 257; i++)
		b[i] = probe_alloc(&p, 1000);
	p.dev->log = probe_log;
	for (i = 0; i < 256; i++)
		probe_free(&p, b[i]);
	probe_expect(&p, "");
	probe_free(&p, b[256]);
	probe_expect(&p, "f1280");
	probe_close(&p);
	probe_open(&p, "ggml:buffers=1", NULL);
	b[0] = probe_alloc(&p, 1000);
	b[1] = probe_alloc(&p, 2000);
	probe_free(&p, b[0]);
	probe_free(&p, b[1]);
	probe_expect(&p, "m1280 m2304 f2304");
	probe_close(&p);
}

static void test_streams(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "ggml", NULL);
	a = probe_alloc_on(&p, 1000, 1);
	probe_free(&p, a);
	assert_int_equal(probe_alloc_on(&p, 1000, 2).cls, FRAG_CLASS_GROW);
	assert_int_equal(probe_alloc_on(&p, 1000, 1).addr, a.addr);
	probe_close(&p);
}

/* A refusal empties the pool of the stream, in order of slots; not that of another. */
static void test_retry(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "ggml:look-ahead=1", &(struct probe_options){ .total = 64 * MIB });
	a = probe_alloc(&p, 10 * MIB);
	b = probe_alloc(&p, 20 * MIB);
	probe_free(&p, b);
	probe_free(&p, a);
	probe_free(&p, probe_alloc_on(&p, 4 * MIB, 1));
	probe_refuses(&p, 62 * MIB);
	probe_expect(&p, "m10M m20M m4M r62M f20M f10M r62M");
	probe_trim(&p); /* of every stream */
	assert_int_equal(probe_alloc(&p, 62 * MIB).cls, FRAG_CLASS_GROW);
	probe_expect(&p, "f4M m62M");
	probe_close(&p);
	probe_open(&p, "ggml:retry=false", &(struct probe_options){ .total = 64 * MIB });
	probe_free(&p, probe_alloc(&p, 10 * MIB));
	probe_refuses(&p, 60 * MIB);
	assert_int_equal(p.calls, 2);
	assert_int_equal(p.log[1].kind, 'r');
	probe_close(&p);
}

static void test_random(void **state)
{
	static const struct random_options runs[] = {
		{ .text = "ggml:buffers=10", .seed = 1 },
		{ .text = "ggml:buffers=10", .seed = 11, .failures = true },
		{ .text = "ggml", .seed = 2 },
		{ .text = "ggml", .seed = 12, .failures = true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(runs); i++)
		random_run(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_ahead),  cmocka_unit_test(test_whole),
		cmocka_unit_test(test_waste_limit), cmocka_unit_test(test_slots),
		cmocka_unit_test(test_full),	    cmocka_unit_test(test_streams),
		cmocka_unit_test(test_retry),	    cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
