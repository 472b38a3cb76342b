/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of `cufrag bench --profile`, against figures made by hand. */
#include "test.h"

#include "bench/profile_scale.c"

#define PAGE FRAG_PAGE

static const struct frag_cost *cost(void)
{
	return frag_cost_builtin();
}

static uint64_t price(unsigned item, uint64_t bytes)
{
	return frag_cost_ns(cost(), item, bytes);
}

/* One round of `count` calls that took `times` what the profile says; the first does not count. */
static void add_round(struct frag_scale_replay *r, unsigned call, uint64_t bytes, unsigned count,
		      double times, uint64_t pair_ns)
{
	struct frag_scale_round *round = &r->rounds[r->rounds_count++];
	uint64_t ns = price(call, bytes);
	struct frag_scale_call c = { .call = call, .bytes = bytes, .modelled_ns = ns };

	round->pair_ns = pair_ns;
	for (unsigned i = 0; i <= count; i++) {
		c.ns = (uint64_t)(i ? (double)ns * times : (double)ns * 100);
		frag_scale_add(round, cost(), &c);
	}
}

static struct frag_scale factors(const struct frag_scale_replay *replays, size_t count)
{
	struct frag_scale s;

	assert_int_equal(frag_scale_factors(replays, count, &s, &test_err), 0);
	return s;
}

#define NEAR(x, y) assert_true((x) > (y)*0.999 && (x) < (y)*1.001)

/* The median of the rounds, then of the replays; one disturbed round of three changes nothing. */
TEST(median_of_medians)
{
	static struct frag_scale_replay r[3];
	static const double times[3][3] = { { 1.2, 9, 1.3 }, { 1.5, 1.4, 1.6 }, { 2, 2, 0.5 } };
	struct frag_scale s;

	memset(r, 0, sizeof(r));
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			add_round(&r[i], FRAG_CALL_MALLOC, 20 * PAGE, 4, times[i][k], 0);
	s = factors(r, 3);
	NEAR(s.factor[FRAG_CALL_MALLOC], 1.5);
	assert_int_equal(s.replays_count[FRAG_CALL_MALLOC], 3);
	assert_int_equal(s.pair_ns, 0);
	/* nothing is said of what was not called, or too seldom */
	assert_true(s.factor[FRAG_CALL_FREE] <= 0);
	NEAR(factors(r, 2).factor[FRAG_CALL_MALLOC] + 1, 1);
}

/* Calls of a few ns weigh by their number, the dear ones do not. */
TEST(cheap_calls_weigh_by_number)
{
	static struct frag_scale_replay r[3];
	static const unsigned counts[] = { 100, 10, 10 };
	struct frag_scale s;

	memset(r, 0, sizeof(r));
	for (int i = 0; i < 3; i++) {
		add_round(&r[i], FRAG_CALL_QUERY, 0, counts[i], i + 1, 0);
		for (unsigned k = 0; k < 4 * counts[i]; k++)
			frag_scale_add(&r[i].rounds[0], cost(),
				       &(struct frag_scale_call){
					       .call = FRAG_CALL_MALLOC,
					       .bytes = 20 * PAGE,
					       .ns = (i + 1u) * price(FRAG_CALL_MALLOC, 20 * PAGE),
					       .modelled_ns = price(FRAG_CALL_MALLOC, 20 * PAGE) });
	}
	s = factors(r, 3);
	NEAR(s.factor[FRAG_CALL_QUERY], 1);
	NEAR(s.factor[FRAG_CALL_MALLOC], 2);
}

/* Which price a call had is told by what the simulated card asked for it. */
TEST(parts_are_told_apart)
{
	static struct frag_scale_round r;
	struct frag_scale_call small = { .call = FRAG_CALL_MALLOC, .bytes = 4096, .ns = 1 };
	struct frag_scale_call big = { .call = FRAG_CALL_FREE,
				       .bytes = GIB,
				       .ns = 1,
				       .modelled_ns = price(FRAG_CALL_FREE, GIB) };

	memset(&r, 0, sizeof(r));
	frag_scale_add(&r, cost(), &big); /* the first call: left out */
	small.modelled_ns = price(FRAG_COST_MALLOC_HIT, 0);
	frag_scale_add(&r, cost(), &small);
	small.modelled_ns = price(FRAG_COST_MALLOC_PAGE, 4096);
	frag_scale_add(&r, cost(), &small);
	frag_scale_add(&r, cost(), &small);
	frag_scale_add(&r, cost(), &big);
	big.pause_ns = 1000000; /* a rested card: left out */
	frag_scale_add(&r, cost(), &big);
	assert_int_equal(r.sums[FRAG_COST_MALLOC_HIT].count, 1);
	assert_int_equal(r.sums[FRAG_COST_MALLOC_PAGE].count, 2);
	assert_int_equal(r.sums[FRAG_SCALE_BIG_FREE].count, 1);
	assert_int_equal(r.sums[FRAG_CALL_FREE].count, 0);
	assert_int_equal(r.calls_count, 6);
	/* a slow host: a hit is modelled at more than one and a half of the profile's */
	r.pair_ns = 3 * price(FRAG_COST_HOST_PAIR, 0);
	small.modelled_ns = 3 * price(FRAG_COST_MALLOC_HIT, 0);
	frag_scale_add(&r, cost(), &small);
	assert_int_equal(r.sums[FRAG_COST_MALLOC_HIT].count, 2);
}

/* A part that was not measured follows the one that it is tied to; else it keeps its price. */
TEST(profile_of_a_slower_card)
{
	static struct frag_scale_replay r[3];
	uint64_t own = price(FRAG_COST_HOST_PAIR, 0);
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	struct frag_scale s;
	char want[3][80];

	memset(r, 0, sizeof(r));
	for (int i = 0; i < 3; i++) {
		/* a slow spell, which the model was told of, and a usual round */
		add_round(&r[i], FRAG_CALL_SET_ACCESS, 2 * PAGE, 5, 1.5, own * 2);
		add_round(&r[i], FRAG_CALL_SET_ACCESS, 2 * PAGE, 5, 1.5, own * 2);
		add_round(&r[i], FRAG_CALL_SET_ACCESS, 2 * PAGE, 5, 1.5, own * 7);
	}
	s = factors(r, 3);
	s.clear = 1;
	assert_int_equal(s.pair_ns, own * 2);
	frag_scale_judge(r, 3, &s);
	assert_int_equal(s.replays, 3);
	assert_int_equal(s.near_before, 0);
	assert_int_equal(s.near_after, 3);
	frag_scale_profile(&s, cost(), "card", &out);
	snprintf(want[0], sizeof(want[0]), "\nhost.pair,0,%llu\n", (ull)(own * 2 / 1000 * 1000));
	snprintf(want[1], sizeof(want[1]), "\n# host: 2.000,");
	snprintf(want[2], sizeof(want[2]), "\n# cuMemSetAccess: 2.612 in 3 replays\n");
	for (int i = 0; i < 3; i++)
		if (!strstr(frag_text_str(&out), want[i]))
			fail_msg("lacks %s in\n%s", want[i], frag_text_str(&out));
	/* tied to cuMemSetAccess, not measured, not of the host */
	snprintf(want[0], sizeof(want[0]), "\ncuMemSetAccess.next,%llu,",
		 (ull)cost()->curves[FRAG_COST_SET_ACCESS_NEXT].points[0].bytes);
	assert_true(strtod(strstr(frag_text_str(&out), want[0]) + strlen(want[0]), NULL) >
		    2.57 * cost()->curves[FRAG_COST_SET_ACCESS_NEXT].points[0].ns);
}

TEST(rounds_agree)
{
	static struct frag_scale_replay r;

	memset(&r, 0, sizeof(r));
	add_round(&r, FRAG_CALL_MALLOC, 20 * PAGE, 4, 1.0, 0);
	assert_true(frag_scale_agrees(&r));
	add_round(&r, FRAG_CALL_MALLOC, 20 * PAGE, 4, 1.1, 0);
	assert_true(frag_scale_agrees(&r));
	add_round(&r, FRAG_CALL_MALLOC, 20 * PAGE, 4, 1.3, 0);
	assert_false(frag_scale_agrees(&r));
}
