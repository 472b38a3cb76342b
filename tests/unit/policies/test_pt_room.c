/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where expandable segments map new pages: what pt_room.c finds against the plain walk
 * over all unmapped blocks that the source does, in random histories with trims and
 * refusals; and that its bounds stay sound (the policy's check).
 */
#include <pytorch/pt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIVE_MAX 400

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

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

struct rig {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	struct frag_block live[LIVE_MAX];
	size_t count;
	size_t mapped, refused; /* so many allocs were */
};

static void check(struct rig *r)
{
	struct frag_err err;

	if (r->policy.ops->check(r->policy.self, &err))
		fail_msg("%s", err.msg);
}

static void take(struct rig *r)
{
	struct frag_request req = { .bytes = FRAG_MIB + 512 +
					     next_random() % (1ull << (20 + next_random() % 8)) };
	uint64_t rounded = (req.bytes + 511) & ~511ull;
	struct pt *a = r->policy.self;
	struct pt_set *set =
		a->pools_count > 1 && a->pools[1].sets_count ? a->pools[1].sets[0] : NULL;
	frag_addr_t expected = set ? walk(a, set, rounded) : UINT64_MAX;
	struct frag_block b = { 0 };
	int rc = r->policy.ops->alloc(r->policy.self, &req, &b, NULL);

	check(r);
	if (rc) {
		assert_int_equal(rc, FRAG_OOM);
		r->refused++;
		return;
	}
	r->live[r->count++] = b;
	if (b.cls != FRAG_CLASS_MAP)
		return;
	r->mapped++;
	if (expected != UINT64_MAX)
		assert_int_equal(b.addr, expected);
}

static void give(struct rig *r)
{
	size_t i = next_random() % r->count;

	assert_int_equal(r->policy.ops->free(r->policy.self, &r->live[i], NULL), 0);
	r->live[i] = r->live[--r->count];
	check(r);
}

static void history(uint64_t seed, uint64_t card_bytes)
{
	struct frag_sim_config card = { .total_bytes = card_bytes };
	struct frag_policy_env env = { .limit_bytes = UINT64_MAX,
				       .device_total_bytes = card_bytes };
	struct rig r = { 0 };

	random_state = seed * 0x9e3779b97f4a7c15ull | 1;
	assert_int_equal(frag_sim_open(&card, &r.dev, NULL), 0);
	env.dev = r.dev;
	assert_int_equal(frag_policy_spec_parse("pytorch:expandable_segments:True", &r.spec, NULL),
			 0);
	assert_int_equal(frag_policy_create(r.spec, &env, &r.policy, NULL), 0);
	for (int i = 0; i < 3000; i++) {
		/* tides, so that there are long idle runs and full cards */
		bool rising = i / 300 % 2 == 0;

		if (r.count < LIVE_MAX && (!r.count || next_random() % 8 < (rising ? 6 : 2)))
			take(&r);
		else
			give(&r);
		if (next_random() % 40 == 0) {
			assert_int_equal(r.policy.ops->trim(r.policy.self, 0, NULL), 0);
			check(&r);
		}
	}
	assert_true(r.mapped > 100);
	if (card_bytes < 4 * FRAG_GIB)
		assert_true(r.refused > 10);
	while (r.count)
		give(&r);
	frag_policy_destroy(&r.policy);
	assert_int_equal(frag_dev_leaks(r.dev), 0);
	frag_policy_spec_destroy(r.spec);
	frag_dev_close(r.dev);
}

static void roomy(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		history(seed, 64 * FRAG_GIB);
}

static void tight(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		history(100 + seed, 2 * FRAG_GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(roomy), cmocka_unit_test(tight) };

	return cmocka_run_group_tests_name("pt_room", tests, NULL, NULL);
}
