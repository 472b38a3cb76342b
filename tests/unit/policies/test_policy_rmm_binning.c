/* SPDX-License-Identifier: Apache-2.0 */
/* policies/rmm_binning.c: which bin, what is taken at the start, what goes straight through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB

static struct crig rig;

/* Bins of 256 KiB to 4 MiB; above, the pool with its steps of 256 B. */
static void smallest_bin_that_fits(void **state)
{
	static const uint64_t vector[][2] = {
		{ 1, 256 * 1024 },
		{ 256 * 1024, 256 * 1024 },
		{ 256 * 1024 + 1, 512 * 1024 },
		{ 1 << 20, 1 << 20 },
		{ (1 << 20) + 1, 2 << 20 },
		{ 4 << 20, 4 << 20 },
		{ (4 << 20) + 1, (4 << 20) + 256 },
	};

	(void)state;
	crig_open(&rig, "rmm-binning", 4 * FRAG_GIB, 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(vector); i++)
		assert_int_equal(crig_alloc(&rig, vector[i][0], 0).granted, vector[i][1]);
	crig_close(&rig);
}

/*
 * At the start each bin takes 128 blocks from the pool, smallest first: 32, 64, 128, 256 and
 * 512 MiB. The pool doubles: 32, then 64 (above its 32), then 128 (above 96), 256 (above 224), 512
 * (above 480).
 */
static void bins_fill_at_the_start(void **state)
{
	static const uint64_t chunk[] = { 32, 64, 128, 256, 512 };
	struct frag_block b;
	struct frag_usage u;

	(void)state;
	crig_open(&rig, "rmm-binning", 4 * FRAG_GIB, 0);
	b = crig_alloc(&rig, 3 * MIB, 0);
	assert_int_equal(crig_chunks(&rig), FRAG_ARRAY_LEN(chunk));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chunk); i++)
		assert_int_equal(crig_chunk(&rig, i)->bytes, chunk[i] * MIB);
	assert_int_equal(b.addr, crig_chunk(&rig, 4)->addr);
	u = crig_check(&rig);
	assert_int_equal(u.allocated_bytes, 4 * MIB);
	assert_int_equal(u.free_bytes, 988 * MIB);
	assert_int_equal(u.largest_free_bytes, 4 * MIB);
	assert_int_equal(u.blocks_count, 5 * 128);
	crig_close(&rig);
}

/* A bin that cannot grow refuses, although the pool above it has room. */
static void full_bin_refuses(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig,
		  "rmm-binning:min-exponent=20,max-exponent=21,blocks-per-chunk=4,"
		  "upstream=(rmm-pool:initial=17M,maximum=17M)",
		  64 * MIB, 0);
	for (int i = 0; i < 4; i++)
		crig_alloc(&rig, 2 * MIB, 0);
	/* the pool has 17 - 4 - 8 = 5 MiB: another chunk of 8 does not fit, one of 4 does */
	assert_int_equal(crig_try(&rig, 2 * MIB, 0, &b), FRAG_OOM);
	for (int i = 0; i < 8; i++)
		crig_alloc(&rig, MIB, 0);
	assert_int_equal(crig_try(&rig, MIB, 0, &b), FRAG_OOM);
	assert_int_equal(crig_check(&rig).free_bytes, MIB);
	crig_close(&rig);
}

/* A card too small for the first chunks: every request is refused. */
static void too_small_for_the_start(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-binning", 512 * MIB, 0);
	assert_int_equal(crig_try(&rig, 1, 0, &b), FRAG_OOM);
	assert_int_equal(crig_try(&rig, 8 * MIB, 0, &b), FRAG_OOM);
	crig_close(&rig);
}

/* Over the bare device large requests are cudaMalloc and cudaFree. */
static void over_the_device(void **state)
{
	struct frag_block a, b;

	(void)state;
	crig_open(&rig,
		  "rmm-binning:min-exponent=10,max-exponent=12,blocks-per-chunk=2,upstream=device",
		  64 * MIB, 0);
	a = crig_alloc(&rig, 10 * MIB, 0);
	assert_int_equal(a.cls, FRAG_CLASS_GROW);
	assert_int_equal(crig_chunks(&rig), 4);
	b = crig_alloc(&rig, 3 * KIB, 1);
	assert_int_equal(b.granted, 4 * KIB);
	crig_request(&rig, &a);
	assert_int_equal(crig_check(&rig).waiting_bytes, 10 * MIB);
	crig_free(&rig, &a);
	assert_int_equal(crig_event(&rig, 4)->kind, FRAG_SEGMENT_FREE);
	assert_int_equal(crig_event(&rig, 4)->bytes, 10 * MIB);
	crig_close(&rig);
}

/* A free that the driver refuses: the block is free all the same, and goes back at the end. */
static void driver_keeps_a_block(void **state)
{
	struct frag_block a;
	struct frag_usage u;

	(void)state;
	crig_open(&rig,
		  "rmm-binning:min-exponent=10,max-exponent=12,blocks-per-chunk=2,upstream=device",
		  64 * MIB, 0);
	a = crig_alloc(&rig, 10 * MIB, 0);
	rig.dev->fail_call = rig.dev->driver_calls + 1;
	assert_int_equal(rig.policy.ops->free(rig.policy.self, &a, &rig.err), FRAG_EDEVICE);
	rig.policy.ops->check(rig.policy.self, NULL);
	rig.policy.ops->usage(rig.policy.self, &u);
	assert_int_equal(u.allocated_bytes, 0);
	assert_true(u.free_bytes > 10 * MIB);
	frag_policy_destroy(&rig.policy);
	assert_int_equal(frag_dev_leaks(rig.dev), 0);
	frag_dev_close(rig.dev);
	frag_policy_spec_destroy(rig.spec);
}

static void usage_in_random_runs(void **state)
{
	static const char *const texts[] = {
		"rmm-binning:min-exponent=10,max-exponent=14,blocks-per-chunk=8",
		"rmm-binning:min-exponent=10,max-exponent=14,blocks-per-chunk=8,upstream=device",
		"rmm-binning:min-exponent=10,max-exponent=14,blocks-per-chunk=8,upstream=pytorch",
		("rmm-binning:min-exponent=9,max-exponent=12,blocks-per-chunk=8,upstream="
		 "(rmm-binning:min-exponent=15,max-exponent=18,blocks-per-chunk=8)"),
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		crig_open(&rig, texts[i], 256 * MIB, 0);
		rig.largest_may_be_unknown = i >= 2; /* parts of blocks that do not fill them */
		crig_soak(&rig, 4000, 200, 4, MIB, i);
		crig_trim(&rig);
		crig_check(&rig);
		crig_close(&rig);
	}
}

static void refuses_wrong_options(void **state)
{
	(void)state;
	crig_refused_text("rmm-binning:min-exponent=20,max-exponent=18", "above max-exponent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest_bin_that_fits), cmocka_unit_test(bins_fill_at_the_start),
		cmocka_unit_test(full_bin_refuses),	  cmocka_unit_test(too_small_for_the_start),
		cmocka_unit_test(over_the_device),	  cmocka_unit_test(driver_keeps_a_block),
		cmocka_unit_test(usage_in_random_runs),	  cmocka_unit_test(refuses_wrong_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
