/* SPDX-License-Identifier: Apache-2.0 */
/* policies/umpire_fixed.c and umpire_mixed.c: which object, which pool, what is taken when; and
 * what rmm-fixed shares with umpire-fixed (common/equalblocks.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB

static struct crig rig;

/* The lowest free object, not the one freed first or last. */
static void lowest_object(void **state)
{
	struct frag_block b[70];

	(void)state;
	crig_open(&rig, "umpire-fixed:object=4K,objects-per-pool=70", 64 * MIB, 0);
	for (unsigned i = 0; i < 70; i++) {
		b[i] = crig_alloc(&rig, 1 + i, 0);
		assert_int_equal(b[i].granted, 4 * KIB);
		assert_int_equal(b[i].addr, b[0].addr + i * 4 * KIB);
	}
	crig_free(&rig, &b[66]);
	crig_free(&rig, &b[3]);
	crig_free(&rig, &b[40]);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[3].addr);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[40].addr);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[66].addr);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 280 * KIB);
	crig_close(&rig);
}

/* The newest sub-pool with a free object, not the oldest. */
static void newest_subpool(void **state)
{
	struct frag_block b[6];

	(void)state;
	crig_open(&rig, "umpire-fixed:object=1M,objects-per-pool=2", 64 * MIB, 0);
	for (int i = 0; i < 6; i++)
		b[i] = crig_alloc(&rig, MIB, 0);
	assert_int_equal(crig_chunks(&rig), 3);
	assert_int_equal(b[2].cls, FRAG_CLASS_GROW);
	crig_free(&rig, &b[0]);
	crig_free(&rig, &b[3]);
	crig_free(&rig, &b[4]);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[4].addr);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[3].addr);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, b[0].addr);
	assert_int_equal(crig_chunks(&rig), 3);
	crig_close(&rig);
}

/* umpire-fixed and rmm-fixed alike: blocks of 1 KiB, two to a chunk; the state is the text. */
static void fixed_blocks(void **state)
{
	struct frag_block a, b;

	crig_open(&rig, *state, 64 * MIB, 0);
	a = crig_alloc(&rig, 1, 0);
	b = crig_alloc(&rig, 1024, 0);
	assert_true(a.granted == 1024 && a.cls == FRAG_CLASS_GROW && b.cls == FRAG_CLASS_HIT);
	assert_int_equal(b.addr, a.addr + 1024);
	assert_int_equal(crig_try(&rig, 1025, 0, &b), FRAG_OOM);
	assert_int_equal(crig_check(&rig).free_bytes, 0);
	crig_free(&rig, &a);
	assert_int_equal(crig_check(&rig).non_releasable_bytes, 1024);
	assert_int_equal(crig_alloc(&rig, 7, 0).addr, a.addr);
	crig_alloc(&rig, 7, 0);
	assert_int_equal(crig_chunk(&rig, 1)->bytes, 2048);
	crig_trim(&rig);
	assert_int_equal(crig_check(&rig).blocks_count, 4);
	crig_close(&rig);
	crig_open(&rig, *state, 64 * MIB, 2047);
	assert_int_equal(crig_try(&rig, 1, 0, &b), FRAG_OOM);
	assert_int_equal(crig_calls(&rig, FRAG_CALL_MALLOC), 0);
	crig_close(&rig);
}

/*
 * Fixed pools of 256 B, 4 KiB and 64 KiB; the next would have 1 MiB, above the largest of
 * 128 KiB. Sub-pools: 2048 objects of 256 B are 512 KiB; 512 of 4 KiB and 32 of 64 KiB are 2 MiB
 * each. The QuickPool takes its 512 MiB when it is needed.
 */
static void mixed_classes(void **state)
{
	static const uint64_t vector[][2] = {
		{ 1, 256 },	{ 256, 256 },	 { 257, 4096 },
		{ 4096, 4096 }, { 4097, 65536 }, { 65536, 65536 },
	};
	struct frag_block b;

	(void)state;
	crig_open(&rig, "umpire-mixed", FRAG_GIB, 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(vector); i++)
		assert_int_equal(crig_alloc(&rig, vector[i][0], 0).granted, vector[i][1]);
	assert_int_equal(crig_chunks(&rig), 3);
	assert_int_equal(crig_chunk(&rig, 0)->bytes, 512 * KIB);
	assert_int_equal(crig_chunk(&rig, 1)->bytes, 2 * MIB);
	assert_int_equal(crig_chunk(&rig, 2)->bytes, 2 * MIB);
	b = crig_alloc(&rig, 65537, 0);
	assert_int_equal(b.granted, 65552); /* a multiple of 16 */
	assert_int_equal(crig_chunk(&rig, 3)->bytes, 512 * MIB + 16);
	crig_free(&rig, &b);
	crig_close(&rig);
}

/* FixedPool's release: wholly free sub-pools go, the oldest first; the next one is the newest. */
static void gives_idle_subpools_back(void **state)
{
	struct frag_block b[6], again;

	(void)state;
	crig_open(&rig, "umpire-fixed:object=1M,objects-per-pool=2", 64 * MIB, 0);
	for (int i = 0; i < 6; i++)
		b[i] = crig_alloc(&rig, MIB, 0);
	for (int i = 0; i < 5; i++)
		crig_free(&rig, &b[i]);
	assert_int_equal(crig_check(&rig).releasable_bytes, 4 * MIB);
	assert_int_equal(crig_check(&rig).non_releasable_bytes, MIB);
	crig_trim(&rig);
	assert_int_equal(crig_check(&rig).segments_count, 1);
	assert_int_equal(crig_check(&rig).free_bytes, MIB);
	assert_int_equal(crig_alloc(&rig, MIB, 0).addr, b[4].addr);
	b[0] = crig_alloc(&rig, MIB, 0);
	assert_int_equal(b[0].cls, FRAG_CLASS_GROW);
	again = crig_alloc(&rig, MIB, 0);
	crig_free(&rig, &b[5]);
	crig_free(&rig, &again);
	assert_int_equal(crig_alloc(&rig, 1, 0).addr, again.addr);
	crig_close(&rig);
}

/* The 33rd object of 64 KiB takes a second sub-pool. Trim gives nothing back. */
static void mixed_grows(void **state)
{
	struct frag_block b[33], large;

	(void)state;
	crig_open(&rig, "umpire-mixed", FRAG_GIB, 0);
	for (int i = 0; i < 33; i++)
		b[i] = crig_alloc(&rig, 50000, 0);
	assert_int_equal(crig_chunks(&rig), 4);
	large = crig_alloc(&rig, MIB, 0);
	for (int i = 0; i < 33; i++)
		crig_free(&rig, &b[i]);
	crig_free(&rig, &large);
	assert_int_equal(crig_check(&rig).releasable_bytes, 0);
	crig_trim(&rig);
	assert_int_equal(crig_check(&rig).free_bytes, 518 * MIB + 512 * KIB);
	crig_close(&rig);
}

/* Its QuickPool coalesces to the size held, not to the high-water mark. */
static void mixed_coalesces(void **state)
{
	struct frag_block a, b;

	(void)state;
	crig_open(&rig, "umpire-mixed:first=8M", 64 * MIB, 0);
	a = crig_alloc(&rig, 8 * MIB, 0);
	crig_free(&rig, &a);
	b = crig_alloc(&rig, 9 * MIB, 0);
	crig_free(&rig, &b);
	/* held 8 + 9, mark 9 */
	assert_int_equal(crig_chunk(&rig, crig_chunks(&rig) - 1)->bytes, 17 * MIB + 16);
	crig_close(&rig);
}

static void mixed_without_fixed_pools(void **state)
{
	(void)state;
	crig_open(&rig, "umpire-mixed:largest=0,first=1M", 64 * MIB, 0);
	assert_int_equal(crig_alloc(&rig, 1, 0).granted, 16);
	assert_int_equal(crig_chunks(&rig), 1);
	crig_close(&rig);
	crig_refused_text("umpire-mixed:smallest=100", "multiple of 16");
}

static void usage_in_random_runs(void **state)
{
	static const char *const texts[] = {
		"umpire-fixed:object=4K,objects-per-pool=37",
		"umpire-fixed:object=4K,objects-per-pool=200,upstream=rmm-pool",
		"umpire-mixed:first=8M",
		"umpire-mixed:first=8M,upstream=(rmm-pool:initial=16M),coalesce=blocks",
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		crig_open(&rig, texts[i], 256 * MIB, 0);
		rig.largest_may_be_unknown =
			i == 1 || i == 3; /* parts of blocks that are not used */
		crig_soak(&rig, 6000, 300, 3, i < 2 ? 5000 : MIB, i);
		crig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowest_object),
		cmocka_unit_test(newest_subpool),
		cmocka_unit_test_prestate(fixed_blocks, "umpire-fixed:object=1K,objects-per-pool="
							"2"),
		cmocka_unit_test_prestate(fixed_blocks, "rmm-fixed:block=1K,blocks-per-chunk=2"),
		cmocka_unit_test(gives_idle_subpools_back),
		cmocka_unit_test(mixed_classes),
		cmocka_unit_test(mixed_grows),
		cmocka_unit_test(mixed_coalesces),
		cmocka_unit_test(mixed_without_fixed_pools),
		cmocka_unit_test(usage_in_random_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
