/* SPDX-License-Identifier: Apache-2.0 */
/* ggml-vmm: alignment, growth by the shortage, a stack and nothing else, failed calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy_probe.h"
#include "policy_random.h"

static uint64_t calls(const struct probe *p, enum frag_call call)
{
	return p->dev->stat[call].count;
}

/* 3M: one handle of 4M. 1.5M more: short by 0.5M, one handle of 2M. */
static void test_growth(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "ggml-vmm", NULL);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 0);
	a = probe_alloc(&p, 3 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 1);
	assert_int_equal(p.dev->stat[FRAG_CALL_RESERVE].bytes, 32 * GIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 1);
	assert_int_equal(p.dev->reserved_bytes, 4 * MIB);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	b = probe_alloc(&p, MIB + 512 * KIB);
	assert_int_equal(b.addr, a.addr + 3 * MIB);
	assert_int_equal(p.dev->reserved_bytes, 6 * MIB);
	assert_int_equal(calls(&p, FRAG_CALL_CREATE), 2);
	assert_int_equal(calls(&p, FRAG_CALL_RELEASE), 2); /* the mappings keep them */
	assert_int_equal(calls(&p, FRAG_CALL_SET_ACCESS), 2);
	/* all of it is used again, and never unmapped */
	probe_free(&p, b);
	probe_free(&p, a);
	assert_int_equal(probe_alloc(&p, 6 * MIB).cls, FRAG_CLASS_SPLIT);
	assert_int_equal(calls(&p, FRAG_CALL_UNMAP), 0);
	probe_close(&p);
}

static void test_alignment(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "ggml-vmm", NULL);
	a = probe_alloc(&p, 1);
	b = probe_alloc(&p, 129);
	assert_int_equal(a.granted, 128);
	assert_int_equal(b.granted, 256);
	assert_int_equal(b.addr, a.addr + 128);
	assert_int_equal(probe_usage(&p).largest_free_bytes, 2 * MIB - 384);
	probe_close(&p);
}

/* 4M of address space are the end, also on an empty card. */
static void test_space(void **state)
{
	struct probe p;
	struct frag_block a;

	(void)state;
	probe_open(&p, "ggml-vmm:reserve=3M", NULL);
	probe_refuses(&p, 4 * MIB + 1);
	a = probe_alloc(&p, 4 * MIB);
	probe_refuses(&p, 1);
	probe_free(&p, a);
	probe_alloc(&p, 1);
	probe_close(&p);
	probe_open(&p, "ggml-vmm", &(struct probe_options){ .limit = 3 * MIB });
	probe_refuses(&p, 3 * MIB);
	probe_alloc(&p, 2 * MIB);
	probe_close(&p);
}

/* The order across streams is free, because each has its own pool. */
static void test_streams(void **state)
{
	struct probe p;
	struct frag_block a, b;

	(void)state;
	probe_open(&p, "ggml-vmm", NULL);
	a = probe_alloc_on(&p, 100, 0);
	b = probe_alloc_on(&p, 100, 1);
	assert_int_equal(calls(&p, FRAG_CALL_RESERVE), 2);
	probe_free(&p, a);
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).segments_count, 2);
	probe_close(&p);
}

/* Not a stack: an error that says so; the hole goes with what is above it. */
static void test_wrong_order(void **state)
{
	struct probe p;
	struct frag_block a, b, c;

	(void)state;
	probe_open(&p, "ggml-vmm", NULL);
	a = probe_alloc(&p, 1000);
	b = probe_alloc(&p, 1000);
	c = probe_alloc(&p, 1000);
	assert_int_equal(p.policy.ops->free(p.policy.self, &a, &p.err), FRAG_EPOLICY);
	assert_non_null(strstr(p.err.msg, "is a stack"));
	assert_non_null(strstr(p.err.msg, "before 2"));
	probe_check(&p);
	assert_int_equal(probe_usage(&p).allocated_bytes, 2048);
	probe_free(&p, c);
	probe_free(&p, b);
	assert_int_equal(probe_usage(&p).allocated_bytes, 0);
	assert_int_equal(probe_alloc(&p, 1).addr, a.addr);
	probe_close(&p);
}

/* Each call of a growth fails once; the next request goes on and wastes nothing. */
static void test_failed_growth(void **state)
{
	struct frag_block b;
	struct probe p;
	uint64_t k;

	(void)state;
	for (k = 1; k <= 4; k++) {
		probe_open(&p, "ggml-vmm", NULL);
		probe_free(&p, probe_alloc(&p, MIB));
		p.dev->fail_call = p.dev->driver_calls + k; /* create map set_access release */
		assert_int_not_equal(probe_try(&p, 5 * MIB, 0, &b), 0);
		assert_int_equal(p.dev->reserved_bytes, k == 1 ? 2 * MIB : 6 * MIB);
		assert_int_equal(probe_usage(&p).free_bytes, p.dev->reserved_bytes);
		probe_alloc(&p, 5 * MIB);
		assert_int_equal(p.dev->reserved_bytes, 6 * MIB);
		probe_close(&p);
	}
}

static void test_random(void **state)
{
	static const struct random_options runs[] = {
		{ .text = "ggml-vmm", .seed = 1 },
		{ .text = "ggml-vmm", .seed = 11, .failures = true },
		{ .text = "ggml-vmm:reserve=256M", .seed = 2 },
		{ .text = "ggml-vmm:reserve=256M", .seed = 12, .failures = true },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(runs); i++)
		random_run(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),	    cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_space),	    cmocka_unit_test(test_streams),
		cmocka_unit_test(test_wrong_order), cmocka_unit_test(test_failed_growth),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
