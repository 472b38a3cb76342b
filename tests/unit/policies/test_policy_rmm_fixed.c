/* SPDX-License-Identifier: Apache-2.0 */
/* policies/rmm_fixed.c: order of blocks, chunks, stealing, refusals, worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define MIB FRAG_MIB

static struct crig rig;

/* 128 blocks of 1 MiB to a chunk, the next chunk with the 129th block. */
static void takes_chunks_of_128(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-fixed", 512 * MIB, 0);
	for (uint64_t i = 0; i < 128; i++) {
		b = crig_alloc(&rig, i * 8 * FRAG_KIB + 1, 0);
		assert_int_equal(b.granted, MIB);
		assert_int_equal(b.addr, crig_chunk(&rig, 0)->addr + i * MIB);
		assert_int_equal(b.cls, i ? FRAG_CLASS_HIT : FRAG_CLASS_GROW);
	}
	assert_int_equal(crig_chunks(&rig), 1);
	b = crig_alloc(&rig, 1, 0);
	assert_int_equal(b.cls, FRAG_CLASS_GROW);
	assert_int_equal(b.addr, crig_chunk(&rig, 1)->addr);
	assert_int_equal(crig_chunk(&rig, 1)->bytes, 128 * MIB);
	crig_close(&rig);
}

static void refuses_larger_requests(void **state)
{
	struct frag_block b;

	(void)state;
	crig_open(&rig, "rmm-fixed:block=1000,blocks-per-chunk=4", 512 * MIB, 0);
	assert_int_equal(crig_alloc(&rig, 1024, 0).granted, 1024); /* 1000 is rounded up to 256 */
	assert_int_equal(crig_try(&rig, 1025, 0, &b), FRAG_OOM);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 4096);
	crig_close(&rig);
}

/* The block freed first is used first; nothing merges. */
static void first_in_first_out(void **state)
{
	struct frag_block b[4];
	frag_addr_t at;

	(void)state;
	crig_open(&rig, "rmm-fixed:blocks-per-chunk=4", 512 * MIB, 0);
	for (int i = 0; i < 4; i++)
		b[i] = crig_alloc(&rig, MIB, 0);
	at = b[0].addr;
	crig_free(&rig, &b[2]);
	crig_free(&rig, &b[0]);
	crig_free(&rig, &b[3]);
	assert_int_equal(crig_check(&rig).largest_free_bytes, MIB);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, at + 2 * MIB);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, at);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, at + 3 * MIB);
	crig_close(&rig);
}

/* The first chunk is the default stream's: others wait for it. A block then belongs to
 * the stream that freed it. */
static void steals(void **state)
{
	struct frag_block a, b;

	(void)state;
	crig_open(&rig, "rmm-fixed:blocks-per-chunk=2", 512 * MIB, 0);
	a = crig_alloc(&rig, 1, 3);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	b = crig_alloc(&rig, 1, 0);
	assert_int_equal(b.addr, a.addr + MIB);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	crig_free(&rig, &a);
	a = crig_alloc(&rig, 1, 3);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 1);
	crig_free(&rig, &a);
	b = crig_alloc(&rig, 1, 1); /* from stream 3, no new chunk */
	assert_int_equal(b.addr, a.addr);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_FENCE), 2);
	assert_int_equal(crig_chunks(&rig), 1);
	crig_close(&rig);
}

static void usage_in_random_runs(void **state)
{
	(void)state;
	crig_open(&rig, "rmm-fixed:block=4K,blocks-per-chunk=16", 256 * MIB, 0);
	crig_soak(&rig, 8000, 300, 4, 5000, 7);
	assert_int_equal(crig_check(&rig).releasable_bytes, 0);
	crig_close(&rig);
	crig_open(&rig, "rmm-fixed:block=4K,blocks-per-chunk=16,upstream=rmm-pool", 256 * MIB, 0);
	crig_soak(&rig, 8000, 300, 4, 5000, 8);
	crig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_chunks_of_128),	cmocka_unit_test(refuses_larger_requests),
		cmocka_unit_test(first_in_first_out),	cmocka_unit_test(steals),
		cmocka_unit_test(usage_in_random_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
