/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies/dynamicpool.c where it differs from quickpool (lowest address among equals, order of
 * releases), and random runs against a model with a bitmap; the rest is in
 * test_policy_quickpool.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk_rig.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB

static struct crig rig;

/* Holes of 2, 1, 1 KiB freed from the last to the first: the lowest of the equal ones is
 * taken; 1.5 KiB leave an exact rest. */
static void lowest_of_equals(void **state)
{
	static const uint64_t kib[] = { 2, 1, 1, 1, 1, 1 };
	struct frag_block b[6];

	(void)state;
	crig_open(&rig, "dynamicpool:first=7K,next=0", 64 * MIB, 0);
	for (int i = 0; i < 6; i++)
		b[i] = crig_alloc(&rig, kib[i] * KIB, 0);
	for (int i = 4; i >= 0; i -= 2)
		crig_free(&rig, &b[i]);
	assert_int_equal(crig_alloc(&rig, 1000, 0).addr, b[2].addr);
	assert_int_equal(crig_alloc(&rig, 1500, 0).addr, b[0].addr);
	assert_int_equal(crig_alloc(&rig, 540, 0).addr, b[0].addr + 1504); /* 544 are left there */
	assert_int_equal(crig_check(&rig).free_bytes, 16 + KIB);
	crig_close(&rig);
}

/* As quickpool, but chunks go back in order of address. */
static void coalesces_to_high_water_mark(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "dynamicpool:first=4M", 64 * MIB, 0);
	a = crig_alloc(&rig, 3 * MIB, 0);
	b = crig_alloc(&rig, 3 * MIB, 0);
	c = crig_alloc(&rig, 2 * MIB, 0);
	crig_free(&rig, &b);
	crig_free(&rig, &a);
	crig_free(&rig, &c);
	assert_int_equal(rig.events_count, 7);
	assert_true(crig_event(&rig, 3)->addr < crig_event(&rig, 4)->addr);
	assert_true(crig_event(&rig, 4)->addr < crig_event(&rig, 5)->addr);
	assert_int_equal(crig_event(&rig, 6)->bytes, 8 * MIB + 16);
	crig_close(&rig);
}

static void coalesces_at_blocks(void **state)
{
	struct frag_block a, b, c;

	(void)state;
	crig_open(&rig, "dynamicpool:first=4M,coalesce=blocks,blocks=1", 64 * MIB, 0);
	a = crig_alloc(&rig, 4 * MIB, 0);
	b = crig_alloc(&rig, 2 * MIB, 0);
	c = crig_alloc(&rig, 3 * MIB, 0);
	crig_free(&rig, &a);
	crig_free(&rig, &c);
	assert_int_equal(rig.events_count, 6);
	assert_int_equal(crig_event(&rig, 5)->bytes, 7 * MIB + 16);
	crig_free(&rig, &b);
	crig_close(&rig);
}

/* Umpire's counter of what is handed out counts a refused request for ever: it is never 0 again. */
static void never_after_a_refusal(void **state)
{
	struct frag_block a, b, c;

	for (int refused = 0; refused < 2; refused++) {
		(void)state;
		crig_open(&rig, "dynamicpool:first=4M", 64 * MIB, 0);
		a = crig_alloc(&rig, 4 * MIB, 0);
		b = crig_alloc(&rig, 4 * MIB, 0);
		if (refused)
			assert_int_equal(crig_try(&rig, 64 * MIB, 0, &c), FRAG_OOM);
		crig_free(&rig, &a);
		crig_free(&rig, &b);
		assert_int_equal(crig_check(&rig).segments_count, refused ? 2 : 1);
		crig_close(&rig);
	}
}

/* ---- a model: one chunk as a map of 4 KiB units ------------------------------------------- */

#define UNITS 2048u
#define SLOTS 200

static bool used[UNITS];

/* First of the shortest runs of free units that has `n`; UNITS if there is none. */
static unsigned best_run(unsigned n)
{
	unsigned best = UNITS, best_length = UNITS + 1;

	for (unsigned i = 0, end; i < UNITS; i = end + 1) {
		for (end = i; end < UNITS && !used[end]; end++)
			;
		if (end - i >= n && end - i < best_length) {
			best = i;
			best_length = end - i;
		}
	}
	return best;
}

static void equals_the_model(void **state)
{
	static struct frag_block slots[SLOTS];
	frag_addr_t base = 0;
	uint64_t seed = 5;
	unsigned refused = 0;

	(void)state;
	memset(used, 0, sizeof(used));
	crig_open(&rig, "dynamicpool:first=8M,next=64M", 64 * MIB,
		  0); /* a second chunk does not fit */
	for (unsigned i = 0; i < 20000; i++) {
		struct frag_block *b = &slots[crig_random(&seed) % SLOTS];
		unsigned n = 1 + crig_random(&seed) % 40, at;

		if (b->granted) {
			crig_free(&rig, b);
			memset(&used[(b->addr - base) / 4096], 0, b->granted / 4096);
			b->granted = 0;
			continue;
		}
		at = best_run(n);
		if (crig_try(&rig, n * 4096, 0, b) == FRAG_OOM) {
			assert_int_equal(at, UNITS);
			refused++;
			continue;
		}
		base = crig_chunk(&rig, 0)->addr;
		assert_int_equal((b->addr - base) / 4096, at);
		memset(&used[at], 1, n);
	}
	assert_int_equal(crig_chunks(&rig), 1);
	assert_true(refused > 100);
	crig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowest_of_equals),
		cmocka_unit_test(coalesces_to_high_water_mark),
		cmocka_unit_test(coalesces_at_blocks),
		cmocka_unit_test(never_after_a_refusal),
		cmocka_unit_test(equals_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
