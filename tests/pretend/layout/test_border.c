/* SPDX-License-Identifier: Apache-2.0 */
/* Which layouts run: the same answers as a grid, with fewer runs. Cards, contradictions and failures: tests/cli/cases/layout.sh. */
#include "test.h"

#include "pretend/layout/border.h"

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
