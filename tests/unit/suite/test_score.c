/* SPDX-License-Identifier: Apache-2.0 */
/* Scores and intervals of the suite, worked by hand. */
#include "test.h"

#include <math.h>

#include "suite/suite.h"

#define ROW(w, c, p, bytes, ns) \
	{ \
		.workload = w, .class = c, .policy = p, .state = "done", .reserved_bytes = bytes, \
		.capacity_bytes = bytes, .driver_ns = ns \
	}

static const char *policies[] = { "pytorch", "other", "third" }, *classes[] = { "x", "y" };

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Class x: ratios 4 and 1, so 2; class y: 1/2. All of them: the root of 2 times 1/2. */
TEST(score)
{
	struct frag_suite_row rows[] = {
		ROW("a", "x", "pytorch", 100, 10), ROW("a", "x", "other", 400, 10),
		ROW("b", "x", "pytorch", 300, 10), ROW("b", "x", "other", 300, 40),
		ROW("c", "y", "pytorch", 200, 50), ROW("c", "y", "other", 100, 0),
		ROW("a", "x", "third", 25, 10),	   ROW("b", "x", "third", 1, 1),
	};
	struct frag_suite_result r = { .policies = policies,
				       .policies_count = 3,
				       .classes = classes,
				       .classes_count = 2,
				       .rows = rows,
				       .rows_count = FRAG_ARRAY_LEN(rows) };
	struct frag_suite_score s[3];

	rows[7].state = "crashed";
	frag_suite_scores(&r, SIZE_MAX, s);
	assert_true(near(s[0].space.ratio, 1) && near(s[0].time.ratio, 1));
	assert_true(near(s[1].space.ratio, 1) && near(s[1].space.low, 0.5) &&
		    near(s[1].space.high, 2));
	/* nothing counts as 1 ns: class x: 2, class y: 1/50 */
	assert_true(near(s[1].time.ratio, sqrt(2.0 / 50)));
	assert_true(s[0].space.rank == 1 && s[1].space.rank == 1); /* equal */
	assert_true(s[1].time.rank == 1 && s[0].time.rank == 2);
	/* incomplete: a score of what is done, and no rank */
	assert_true(near(s[2].space.ratio, 0.25) && !s[2].space.rank && s[2].done == 1 &&
		    s[2].rows == 2);
	frag_suite_scores(&r, 1, s);
	assert_true(near(s[1].space.ratio, 2) && s[1].space.rank == 2);
	/* half of the memory to reserve, on a card of twice the size */
	rows[5].capacity_bytes = 400;
	assert_true(near(frag_suite_space(&rows[5], &rows[4]), 1));
}

/* 12, 14 and 16 are left: mean 14, deviation 2, t 4.303 over the root of 3. */
TEST(interval)
{
	double values[] = { 100, 16, 12, 10, 14 }, same[] = { 7, 7, 7, 7 }, mean, half;

	frag_suite_interval(values, 5, &mean, &half);
	assert_true(near(mean, 14) && fabs(half - 4.9687) < 1e-4);
	frag_suite_interval(same, 4, &mean, &half);
	assert_true(near(mean, 7) && near(half, 0));
}

TEST(turns)
{
	struct frag_suite_row turns[6], row;

	for (unsigned i = 0; i < 6; i++)
		turns[i] = (struct frag_suite_row){ .state = "done",
						    .turns_count = 1,
						    .driver_ns = i == 2 ? 900 : 100,
						    .clock_mhz = 1000 + i };
	assert_true(!frag_suite_sum_turns(turns, 4, &row)); /* too few */
	assert_true(frag_suite_sum_turns(turns, 5, &row) && row.settled && row.driver_ns == 100);
	assert_true(row.turns_count == 5 && row.clock_mhz == 1000);
	turns[3].driver_ns = 130;
	assert_true(!frag_suite_sum_turns(turns, 5, &row) &&
		    !row.settled); /* more of them may settle it */
	turns[1].state = "timeout";
	assert_true(frag_suite_sum_turns(turns, 2, &row) && !strcmp(row.state, "timeout"));
}
