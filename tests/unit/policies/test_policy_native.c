/* SPDX-License-Identifier: Apache-2.0 */
/* native and null: one driver call per request, or none at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

static void test_one_call_each(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "native", NULL);
	a = probe_alloc(&p, 5 * MIB);
	b = probe_alloc(&p, 1000);
	assert_int_equal(a.granted, 5 * MIB);
	assert_int_equal(b.granted, 1000);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	probe_expect(&p, "m5M m1000");
	probe_free(&p, a);
	a = probe_alloc(&p, 5 * MIB); /* nothing was kept */
	probe_expect(&p, "f5M m5M");
	probe_free(&p, b);
	probe_free(&p, a);
	probe_expect(&p, "f1000 f5M");
	assert_int_equal(p.dev->reserved_bytes, 0);
	probe_close(&p);
}

/* Requests below 1 MiB share the driver's pages of 2 MiB; the others do not. */
static void test_pages(void **state)
{
	struct probe p;
	struct frag_block b[4];
	int i;

	(void)state;
	probe_open(&p, "native", NULL);
	for (i = 0; i < 4; i++)
		b[i] = probe_alloc(&p, 512 * KIB);
	assert_int_equal(p.dev->reserved_bytes, 2 * MIB);
	probe_alloc(&p, 1 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 4 * MIB);
	for (i = 0; i < 4; i++)
		probe_free(&p, b[i]);
	assert_int_equal(p.dev->reserved_bytes, 2 * MIB);
	probe_close(&p);
}

static void test_limit(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "native", &(struct probe_options){ .limit = 8 * MIB });
	a = probe_alloc(&p, 6 * MIB);
	probe_refuses(&p, 3 * MIB);
	probe_expect(&p, "m6M"); /* the driver was not asked */
	probe_alloc(&p, 2 * MIB);
	probe_free(&p, a);
	probe_alloc(&p, 3 * MIB);
	probe_close(&p);
}

static void test_out_of_memory(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, "native", &(struct probe_options){ .total = 8 * MIB });
	probe_alloc(&p, 6 * MIB);
	probe_refuses(&p, 4 * MIB);
	probe_expect(&p, "m6M r4M");
	probe_alloc(&p, 2 * MIB);
	probe_close(&p);
}

/* A cudaFree that fails: the block is free, its segment goes later. */
static void test_free_fails(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "native", &(struct probe_options){ .total = 8 * MIB });
	a = probe_alloc(&p, 6 * MIB);
	p.dev->fail_call = p.dev->driver_calls + 1;
	assert_int_equal(p.policy.ops->free(p.policy.self, &a, &p.err), FRAG_EDEVICE);
	assert_non_null(strstr(p.err.msg, "cudaFree"));
	probe_check(&p);
	assert_int_equal(p.dev->reserved_bytes, 6 * MIB);
	assert_int_equal(probe_usage(&p).allocated_bytes, 0);
	assert_int_equal(probe_usage(&p).releasable_bytes, 6 * MIB);
	a = probe_alloc(&p, 8 * MIB); /* refused once, then the left one goes */
	probe_expect(&p, "m6M x6M r8M f6M m8M");
	p.dev->fail_call = p.dev->driver_calls + 1;
	assert_int_equal(p.policy.ops->free(p.policy.self, &a, &p.err), FRAG_EDEVICE);
	probe_trim(&p);
	assert_int_equal(p.dev->reserved_bytes, 0);
	probe_close(&p);
}

static void test_waiting(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "native", NULL);
	a = probe_alloc(&p, 4 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_defer(&p, a);
	assert_int_equal(probe_usage(&p).waiting_bytes, 4 * MIB);
	assert_int_equal(probe_usage(&p).allocated_bytes, 2 * MIB);
	probe_free(&p, a);
	assert_int_equal(probe_usage(&p).waiting_bytes, 0);
	probe_close(&p);
}

static void test_null(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "null", NULL);
	a = probe_alloc(&p, 1000);
	b = probe_alloc(&p, 70 * GIB);
	probe_free(&p, a);
	c = probe_alloc(&p, 1);
	assert_int_equal(b.addr, a.addr + 1024);
	assert_int_equal(c.addr, b.addr + 70 * GIB); /* never used again */
	assert_int_equal(a.addr % 512, 0);
	assert_int_equal(p.dev->driver_calls, 0);
	probe_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_call_each), cmocka_unit_test(test_pages),
		cmocka_unit_test(test_limit),	      cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_free_fails),    cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
