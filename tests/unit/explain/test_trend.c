/* SPDX-License-Identifier: Apache-2.0 */
/* Trends by hand, what is a leak and what only fills up, and the line to blame. */
#include "test.h"

#include "explain/diagnose/diagnose.h"

#include <math.h>

static double y[100];

/* 1 2 3 … 10: S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125). */
TEST(by_hand)
{
	struct frag_trend t;

	for (int i = 0; i < 10; i++)
		y[i] = i + 1;
	assert_int_equal(frag_trend_of(y, 10, &t, NULL), 0);
	assert_true(fabs(t.z - 44 / sqrt(125)) < 1e-9);
	assert_true(fabs(t.slope - 1) < 1e-12);
	assert_true(fabs(t.tau - 1) < 1e-12 && t.p < 1e-4);
}

/* 1 1 2 2: S = 4, ties take 2 * (2 * 1 * 9) from 4 * 3 * 13 = 156: variance 120 / 18. */
TEST(ties)
{
	const double four[] = { 1, 1, 2, 2 };
	struct frag_trend t;

	assert_int_equal(frag_trend_of(four, 4, &t, NULL), 0);
	assert_true(fabs(t.z - 3 / sqrt(120.0 / 18)) < 1e-9);
	for (int i = 0; i < 20; i++)
		y[i] = 7;
	assert_int_equal(frag_trend_of(y, 20, &t, NULL), 0);
	assert_true(t.z == 0 && t.slope == 0);
}

static bool climbs(size_t n)
{
	struct frag_climb c;
	bool is;

	assert_int_equal(frag_climbs(y, n, 1, &c, &is, NULL), 0);
	return is;
}

TEST(leak_or_not)
{
	for (int i = 0; i < 60; i++)
		y[i] = 100 + 3 * (i / 3);
	assert_true(climbs(60)); /* stairs */
	for (int i = 0; i < 60; i++)
		y[i] = 100 + 3 * i + 9 * ((i * 7) % 11);
	assert_true(climbs(60)); /* below noise */
	for (int i = 0; i < 60; i++)
		y[i] = 1000 * (1 - exp(-i / 8.0));
	assert_false(climbs(60)); /* a cache that fills up */
	for (int i = 0; i < 60; i++)
		y[i] = i < 30 ? 10 * i : 300;
	assert_false(climbs(60)); /* and one that is full */
	for (int i = 0; i < 60; i++)
		y[i] = i % 20 * 10;
	assert_false(climbs(60)); /* saw teeth */
	for (int i = 0; i < 60; i++)
		y[i] = i < 30 ? 0 : 10 * (i - 30);
	assert_true(climbs(60)); /* begins late */
	for (int i = 0; i < 5; i++)
		y[i] = i;
	assert_false(climbs(5)); /* too little to tell */
}

static const struct frag_case *about; /* NULL: of a refusal alone */

static bool is_fragmentation(uint64_t live, uint64_t request, uint64_t reserved, uint64_t limit)
{
	return frag_oom_is_fragmentation(
		about, &(struct frag_refused_at){
			       { .live_bytes = live, .bytes = request }, reserved, limit });
}

TEST(refusals)
{
	/* live and request fit by far; by nothing at all; not */
	assert_true(is_fragmentation(600 << 20, 100 << 20, 900 << 20, 1000 << 20));
	assert_false(is_fragmentation(895 << 20, 104 << 20, 920 << 20, 1000 << 20));
	assert_false(is_fragmentation(950 << 20, 100 << 20, 950 << 20, 1000 << 20));
	/* hardly, but the free space would have held it */
	assert_true(is_fragmentation(895 << 20, 104 << 20, 1000 << 20, 1000 << 20));
}

/* 920 live of 1000 MiB, 30 refused: settings win 5 % at most. */
TEST(refusal_that_ends_it)
{
	struct frag_event events[2] = { { .kind = FRAG_EV_ALLOC }, { .kind = FRAG_EV_ALLOC } };
	struct frag_trace_dev dev = { .events = events, .events_count = 1 };
	struct frag_trace trace = { .devs = &dev };
	struct frag_case c = { .events.trace = &trace };

	about = &c;
	assert_false(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.peak_live = 960 << 20; /* it had as much before */
	assert_true(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.first_mark = 1; /* in the first step, what follows is unknown all the same */
	assert_false(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
	c.history.first_mark = 0;
	dev.events_count = 2; /* it goes on */
	assert_true(is_fragmentation(920 << 20, 30 << 20, 1000 << 20, 1000 << 20));
}
