/* SPDX-License-Identifier: Apache-2.0 */
/* Which layouts run: the same answers as a grid, with fewer runs; contradictions are found and end the assumptions. */
#include "test.h"

#include <string.h>

#include "pretend/layout/border.h"
#include "lib/random.h"

#define SIDE 16u

/* Points of a square, twice: two groups. Two cards; the second has room for a third more. */
static void make(struct frag_border *b, struct frag_border_point *points)
{
	*b = (struct frag_border){
		.points = points, .count = 2 * SIDE * SIDE, .axes = 2, .cards = 3
	};
	for (size_t i = 0; i < b->count; i++)
		points[i] = (struct frag_border_point){
			.group = i / (SIDE * SIDE),
			.level = { (uint16_t)(i / SIDE % SIDE), (uint16_t)(i % SIDE) },
		};
}

static uint64_t truth(const struct frag_border_point *p)
{
	unsigned need = p->level[0] * 3u + p->level[1] * 2u + (p->group ? 20 : 0);

	return (need < 30) | (uint64_t)(need < 40) << 1;
}

static size_t search(struct frag_border *b, uint64_t (*fits)(const struct frag_border_point *))
{
	size_t runs = 0, i;

	while ((i = frag_border_next(b)) != SIZE_MAX) {
		assert_false(b->points[i].ran);
		frag_border_decide(b, i, fits(&b->points[i]));
		runs++;
	}
	return runs;
}

TEST(the_border_is_that_of_a_grid)
{
	struct frag_border_point points[2 * SIDE * SIDE];
	struct frag_border b;
	size_t i;

	make(&b, points);
	assert_true(search(&b, truth) < b.count / 4);
	for (size_t k = 0; k < b.count; k++) {
		assert_int_equal(points[k].decided, 3);
		assert_int_equal(points[k].fits, truth(&points[k]));
	}
	while ((i = frag_border_check(&b, 9, 1)) != SIZE_MAX)
		frag_border_checked(&b, i, truth(&points[i]));
	assert_int_equal(b.checked, 9);
	assert_int_equal(b.wrong, 0);
}

/* A line of 64 and three cards: three bisections of six runs each, which share some. */
static uint64_t of_line(const struct frag_border_point *p)
{
	return (p->level[0] < 9) | (uint64_t)(p->level[0] < 20) << 1 |
	       (uint64_t)(p->level[0] < 50) << 2;
}

TEST(each_card_is_bisected)
{
	struct frag_border_point points[64] = { 0 };
	struct frag_border b = { .points = points, .count = 64, .axes = 1, .cards = 7 };

	for (size_t i = 0; i < b.count; i++)
		points[i].level[0] = (uint16_t)i;
	assert_true(search(&b, of_line) <= 18);
	for (size_t k = 0; k < b.count; k++)
		assert_int_equal(points[k].fits, of_line(&points[k]));
}

/* Of all but those in the first row. */
static uint64_t odd(const struct frag_border_point *p)
{
	return p->level[0] ? truth(p) : 0;
}

TEST(a_contradiction_ends_the_assumptions_of_its_group)
{
	struct frag_border_point points[2 * SIDE * SIDE];
	struct frag_border b;
	size_t i = 0;

	make(&b, points);
	search(&b, odd);
	while (!b.wrong && (i = frag_border_check(&b, 1000, 7)) != SIZE_MAX)
		frag_border_checked(&b, i, odd(&points[i]));
	assert_int_equal(b.wrong, 1);
	search(&b, odd);
	for (size_t k = 0, group = points[i].group; k < b.count; k++)
		if (points[k].group == group) {
			assert_true(points[k].ran);
			assert_int_equal(points[k].fits, odd(&points[k]));
		}
}

TEST(what_fails_for_a_reason_of_its_own_says_nothing_of_others)
{
	struct frag_border_point points[2 * SIDE * SIDE];
	struct frag_border b;
	size_t i;

	make(&b, points);
	i = frag_border_next(&b);
	frag_border_fail(&b, i);
	search(&b, truth);
	for (size_t k = 0; k < b.count; k++)
		assert_int_equal(points[k].fits, k == i ? 0 : truth(&points[k]));
}

#define LONG 1000u
#define SHORT 25u

static uint64_t of_many(const struct frag_border_point *p)
{
	return p->level[0] + 7u * p->level[1] < test_rounds(LONG) / 2;
}

TEST(a_large_group_is_searched_without_comparing_all_pairs)
{
	static struct frag_border_point points[LONG * SHORT];
	struct frag_border b = { .points = points, .axes = 2, .cards = 1 };

	b.count = test_rounds(LONG) * SHORT;
	for (size_t i = 0; i < b.count; i++)
		points[i].level[0] = (uint16_t)(i / SHORT), points[i].level[1] = i % SHORT;
	assert_true(search(&b, of_many) < 200);
	for (size_t k = 0; k < b.count; k++)
		assert_int_equal(points[k].fits, of_many(&points[k]));
}

TEST(jobs_spread_over_groups)
{
	struct frag_border_point points[2 * SIDE * SIDE];
	struct frag_border b;
	size_t first, second;

	make(&b, points);
	first = frag_border_next(&b);
	points[first].running = true;
	second = frag_border_next(&b);
	assert_int_not_equal(points[first].group, points[second].group);
}

TEST(no_group_is_left_alone_at_the_end)
{
	struct frag_border_point points[2 * SIDE * SIDE];
	struct frag_border b;
	size_t i;

	make(&b, points);
	while ((i = frag_border_next(&b)) != SIZE_MAX) {
		size_t left[2] = { 0 };

		for (size_t k = 0; k < b.count; k++)
			left[points[k].group] += points[k].decided != b.cards;
		assert_int_equal(points[i].group, left[1] > left[0]);
		frag_border_decide(&b, i, truth(&points[i]));
	}
}

/* As processes do it: several at a time, which end in any order. Counts those that ran. */
static size_t search_at_once(struct frag_border *b, unsigned jobs, uint64_t seed)
{
	size_t running[8], n = 0, ran = 0, i;

	for (;;) {
		while (n < jobs && (i = frag_border_next(b)) != SIZE_MAX) {
			b->points[i].running = true;
			running[n++] = i;
		}
		if (!n)
			return ran;
		i = frag_random(&seed) % n;
		frag_border_decide(b, running[i], truth(&b->points[running[i]]));
		running[i] = running[--n];
		ran++;
	}
}

TEST(which_points_run_does_not_depend_on_how_long_each_takes)
{
	struct frag_border_point first[2 * SIDE * SIDE], points[2 * SIDE * SIDE];
	struct frag_border b;

	for (unsigned jobs = 1; jobs <= 8; jobs++)
		for (uint64_t seed = 0; seed < 50; seed++) {
			make(&b, points);
			b.at_once = (jobs + 1) / 2;
			assert_true(search_at_once(&b, jobs, seed) < 2 * SIDE * SIDE / 4);
			if (!seed)
				memcpy(first, points, sizeof(first));
			assert_memory_equal(first, points, sizeof(first));
		}
}

/* What runs beside another splits what that one leaves open: a line in three, in four ... */
TEST(points_that_run_at_once_are_apart)
{
	struct frag_border_point points[63] = { 0 };
	struct frag_border b = {
		.points = points, .count = 63, .axes = 1, .cards = 1, .at_once = 3
	};

	for (uint16_t i = 0; i < 63; i++)
		points[i].level[0] = i;
	for (unsigned k = 0; k < 3; k++) {
		static const size_t expected[] = { 31, 15, 47 };
		size_t i = frag_border_next(&b);

		assert_int_equal(i, expected[k]);
		points[i].running = true;
	}
	assert_int_equal(frag_border_next(&b), SIZE_MAX);
}
