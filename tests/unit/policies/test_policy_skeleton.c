/* SPDX-License-Identifier: Apache-2.0 */
/* skeleton: the walk-through does what its head says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"

/* First fit in the order of becoming free, the latest first; exact split; the tail stays. */
static void test_first_fit(void **state)
{
	struct probe p;
	struct frag_block a, b, c, d, e;

	(void)state;
	probe_open(&p, "skeleton:segment=2M", NULL);
	a = probe_alloc(&p, 100);
	assert_int_equal(a.granted, 512);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	b = probe_alloc(&p, 10 * KIB);
	c = probe_alloc(&p, 512);
	d = probe_alloc(&p, 20 * KIB);
	e = probe_alloc(&p, 512);
	assert_int_equal(b.addr, a.addr + 512);
	assert_int_equal(e.addr, a.addr + 31 * KIB);
	assert_int_equal(b.cls, FRAG_CLASS_SPLIT);
	probe_free(&p, b);
	probe_free(&p, d);
	/* d is too big by far, but the latest */
	assert_int_equal(probe_alloc(&p, 1 * KIB).addr, d.addr);
	/* what is left of d is the latest, b is not looked at */
	assert_int_equal(probe_alloc(&p, 10 * KIB).addr, d.addr + 1 * KIB);
	assert_int_equal(probe_alloc(&p, 10 * KIB).addr, b.addr);
	(void)c;
	probe_expect(&p, "m2M");
	probe_close(&p);
}

/* Exact: one unit left over is split off, and used. */
static void test_split(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "skeleton:segment=2M", NULL);
	a = probe_alloc(&p, 1024);
	probe_alloc(&p, 512);
	probe_free(&p, a);
	b = probe_alloc(&p, 512);
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(b.granted, 512);
	assert_int_equal(probe_alloc(&p, 512).addr, a.addr + 512);
	probe_close(&p);
}

static void test_merge(void **state)
{
	struct probe p;
	struct frag_block b[3], all;
	int i;

	(void)state;
	probe_open(&p, "skeleton:segment=2M", NULL);
	for (i = 0; i < 3; i++)
		b[i] = probe_alloc(&p, 512 * KIB);
	probe_free(&p, b[0]);
	probe_free(&p, b[2]);
	probe_free(&p, b[1]);
	all = probe_alloc(&p, 2 * MIB);
	assert_int_equal(all.addr, b[0].addr);
	assert_int_equal(all.cls, FRAG_CLASS_HIT);
	probe_close(&p);
}

static void test_growth_and_retry(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "skeleton:segment=4M", &(struct probe_options){ .total = 16 * MIB });
	a = probe_alloc(&p, 1 * MIB);
	probe_alloc(&p, 6 * MIB);
	probe_expect(&p, "m4M m6M");
	probe_free(&p, a);
	probe_alloc(&p, 8 * MIB); /* refused, the idle segment goes, then it fits */
	probe_expect(&p, "r8M f4M m8M");
	probe_refuses(&p, 8 * MIB);
	probe_close(&p);
}

static void test_trim(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "skeleton:segment=2M", NULL);
	a = probe_alloc(&p, 2 * MIB);
	b = probe_alloc(&p, 1 * MIB);
	probe_free(&p, a);
	assert_int_equal(probe_usage(&p).releasable_bytes, 2 * MIB);
	assert_int_equal(probe_usage(&p).non_releasable_bytes, 1 * MIB);
	probe_trim(&p);
	probe_expect(&p, "m2M m2M f2M");
	assert_int_equal(probe_usage(&p).free_bytes, 1 * MIB);
	probe_free(&p, b);
	/* a device that fails: the segment stays and is usable */
	p.dev->fail_call = p.dev->driver_calls + 1;
	assert_int_equal(p.policy.ops->trim(p.policy.self, 0, &p.err), FRAG_EDEVICE);
	probe_check(&p);
	probe_alloc(&p, 2 * MIB);
	probe_expect(&p, "x2M");
	probe_close(&p);
}

static void test_options(void **state)
{
	struct frag_policy_spec *spec;
	struct frag_err err;

	(void)state;
	assert_int_equal(frag_policy_spec_parse("skeleton:segment=1000", &spec, &err), FRAG_EUSAGE);
	assert_non_null(strstr(err.msg, "multiple of 512"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_fit), cmocka_unit_test(test_split),
		cmocka_unit_test(test_merge),	  cmocka_unit_test(test_growth_and_retry),
		cmocka_unit_test(test_trim),	  cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
