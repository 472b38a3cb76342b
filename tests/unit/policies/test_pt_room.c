/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where expandable segments map new pages: what pt_room.c finds against the plain walk
 * over all unmapped blocks that the source does, in random histories with trims and
 * refusals; and that its bounds stay sound (the policy's check). And numbers of segments that run out.
 */
#include <pytorch/pt.h>

#include "test.h"

#include "lib/random.h"
#include "rig.h"

#define LIVE_MAX 400

static bool idle(const struct pt_block *b)
{
	return b && (b->state == PT_FREE || b->state == PT_UNMAPPED);
}

/* The source's walk: unmapped blocks by address, each with the idle blocks around it. */
static frag_addr_t walk(const struct pt *a, const struct pt_set *set, uint64_t size)
{
	frag_addr_t best = UINT64_MAX, at_unmapped = UINT64_MAX;

	for (const struct pt_seg *g = a->segs; g; g = g->next) {
		for (const struct pt_block *u = g->first; g->set == set && u; u = u->next) {
			const struct pt_block *start = idle(u->prev) ? u->prev : u;
			uint64_t sum = 0;

			if (u->state != PT_UNMAPPED || u->addr > at_unmapped)
				continue;
			for (const struct pt_block *b = start; idle(b) && sum < size; b = b->next)
				sum += b->size;
			if (sum < size)
				continue;
			at_unmapped = u->addr;
			best = start->addr;
		}
	}
	return best;
}

static struct rig rig; /* large: not for the stack */
static uint64_t seed_now;
static size_t mapped, refused; /* so many allocs were */

static void take(void)
{
	uint64_t bytes =
		MIB + 512 + frag_random(&seed_now) % (1ull << (20 + frag_random(&seed_now) % 8));
	struct pt *a = rig.policy.self;
	struct pt_set *set =
		a->pools_count > 1 && a->pools[1].sets_count ? a->pools[1].sets[0] : NULL;
	frag_addr_t expected = set ? walk(a, set, frag_round_up(bytes, 512)) : UINT64_MAX;
	unsigned slot = 0;
	int rc;

	while (rig.slots[slot].state != RIG_EMPTY)
		slot++;
	rc = rig_alloc(&rig, slot, bytes, 0, 0);
	if (rc) {
		assert_int_equal(rc, FRAG_OOM);
		refused++;
		return;
	}
	if (rig.slots[slot].block.cls != FRAG_CLASS_MAP)
		return;
	mapped++;
	if (expected != UINT64_MAX)
		assert_int_equal(rig.slots[slot].block.addr, expected);
}

static void drop(void)
{
	unsigned slot = frag_random(&seed_now) % LIVE_MAX;

	while (rig.slots[slot].state == RIG_EMPTY)
		slot = (slot + 1) % LIVE_MAX;
	rig_free(&rig, slot);
}

static void history(uint64_t seed, uint64_t card_bytes)
{
	struct rig_options o = { .total_bytes = card_bytes };

	seed_now = seed;
	mapped = refused = 0;
	must_open_rig(&rig, "pytorch:expandable_segments:True", &o);
	for (int i = 0; i < 3000; i++) {
		/* tides, so that there are long idle runs and full cards */
		bool rising = i / 300 % 2 == 0;

		if (rig.count < LIVE_MAX &&
		    (!rig.count || frag_random(&seed_now) % 8 < (rising ? 6 : 2)))
			take();
		else
			drop();
		if (frag_random(&seed_now) % 40 == 0)
			assert_int_equal(rig_trim(&rig, 0), 0);
		rig_check(&rig);
	}
	assert_true(mapped > 100);
	if (card_bytes < 4 * GIB)
		assert_true(refused > 10);
	assert_int_equal(rig_free_all(&rig), 0);
	rig_close(&rig);
}

TEST(roomy)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		history(seed, 64 * GIB);
}

TEST(tight)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		history(100 + seed, 2 * GIB);
}

/* The numbers of segments run out: those that are left close ranks, and order stays. */
TEST(test_renumbered)
{
	static const unsigned order[] = { 0, 1, 2, 4, 5 };
	frag_addr_t at[6];
	struct pt *a;

	must_open_rig(&rig, "pytorch:version:2.13", NULL);
	a = rig.policy.self;
	for (unsigned k = 0; k < 6; k++) {
		assert_int_equal(rig_alloc(&rig, k, (k < 4 ? 12 : 14) * MIB, 0, 0), 0);
		at[k] = rig.slots[k].block.addr;
		if (k != 2)
			continue;
		rig_free(&rig, 1);
		a->made = (UINT64_MAX >> a->rank_bits) - 1;
		assert_int_equal(rig_alloc(&rig, 1, 12 * MIB, 0, 0), 0);
		rig_free(&rig, 1);
	}
	assert_true(a->made < 10);
	for (unsigned k = 6; k-- > 0;)
		if (k != 1)
			rig_free(&rig, k);
	for (unsigned k = 0; k < FRAG_ARRAY_LEN(order); k++) {
		assert_int_equal(rig_alloc(&rig, k, (k < 3 ? 12 : 14) * MIB, 0, 0), 0);
		assert_int_equal(rig.slots[k].block.addr, at[order[k]]);
	}
	rig_check(&rig);
	rig_close(&rig);
}
