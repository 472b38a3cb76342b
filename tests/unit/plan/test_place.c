/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offline placement: bound, greedy, search, and the check of all of them. How low recordings are placed:
 * tests/golden/run.py placements; what Ctrl-C leaves: tests/cli signals.
 */
#include "test.h"

#include <frag/plan.h>

#include "lib/random.h"

#define SECOND 1000000000ull

/* ---- made-up buffers ------------------------------------------------------------------------- */

#define SPAN (1u << 20) /* moments */

/* Random sizes and lives, many at a time. */
static void make_random(struct frag_buffers *b, uint64_t seed, size_t count)
{
	*b = (struct frag_buffers){ .list = frag_host_calloc(count + 1, sizeof(*b->list)) };
	FRAG_ASSERT(b->list);
	for (; b->count < count; b->count++) {
		uint64_t life = 1 + (frag_random(&seed) % SPAN >> (frag_random(&seed) % 16));
		uint64_t lower = frag_random(&seed) % SPAN;

		b->list[b->count] = (struct frag_buffer){ lower, lower + life,
							  512 * (1 + (frag_random(&seed) % 4096 >>
								      (frag_random(&seed) % 12))) };
	}
}

/* ---- placements ----------------------------------------------------------------------------- */

static uint64_t bound_of(const struct frag_buffers *b)
{
	uint64_t bound, brute = 0;

	SUCCEEDS(frag_load_bound(b, &bound, NULL, NULL));
	for (size_t i = 0; i < b->count && b->count < 500; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < b->count; k++)
			if (b->list[k].lower <= b->list[i].lower &&
			    b->list[i].lower < b->list[k].upper)
				sum += b->list[k].bytes;
		brute = FRAG_MAX(brute, sum);
	}
	if (b->count < 500)
		assert_true(bound == brute);
	return bound;
}

/* Buffers at these offsets do not meet. */
static bool apart(const struct frag_buffer *x, uint64_t at, const struct frag_buffer *y, uint64_t o)
{
	return x->upper <= y->lower || y->upper <= x->lower || at + x->bytes <= o ||
	       o + y->bytes <= at;
}

/* The simplest check there is, against which the checker itself is tested. */
static bool brute_check(const struct frag_buffers *b, const uint64_t *o, uint64_t height)
{
	for (size_t i = 0; i < b->count; i++) {
		if (o[i] + b->list[i].bytes > height)
			return false;
		for (size_t k = 0; k < i; k++)
			if (!apart(&b->list[i], o[i], &b->list[k], o[k]))
				return false;
	}
	return true;
}

TEST(test_greedy)
{
	uint64_t offsets[400], height;
	struct frag_buffers b;

	for (unsigned seed = 0; seed < 12; seed++) {
		make_random(&b, seed, 20 + 30 * seed);
		for (unsigned k = 0; k < FRAG_ORDER_COUNT * FRAG_GAP_COUNT; k++) {
			SUCCEEDS(frag_place_greedy(&b, k / FRAG_GAP_COUNT, k % FRAG_GAP_COUNT, NULL,
						   offsets, &height, NULL));
			assert_true(brute_check(&b, offsets, height));
			SUCCEEDS(frag_place_check(&b, offsets, 512, height, NULL));
			assert_true(height >= bound_of(&b));
		}
		frag_buffers_release(&b);
	}
}

/* By hand: two long ones below, a gap that takes the small one, TVM's rule does not fill it. */
TEST(test_gap)
{
	struct frag_buffer list[] = {
		{ 0, 10, 300 }, { 0, 4, 200 }, { 2, 10, 200 }, { 5, 9, 100 }
	};
	struct frag_buffers b = { list, 4, NULL };
	uint64_t o[4], height;

	SUCCEEDS(frag_place_greedy(&b, FRAG_ORDER_SIZE, FRAG_GAP_BEST, NULL, o, &height, NULL));
	assert_int_equal(o[0], 0);
	assert_int_equal(o[1], 300);
	assert_int_equal(o[2], 500);
	assert_int_equal(o[3], 300);
	assert_int_equal(height, 700);
	SUCCEEDS(frag_place_greedy(&b, FRAG_ORDER_SIZE, FRAG_GAP_TOP, NULL, o, &height, NULL));
	assert_int_equal(o[3], 700);
	assert_int_equal(height, 800);
}

/* The checker agrees with the brute one on placements with one offset changed. */
TEST(test_checker)
{
	uint64_t offsets[120], height, rng = 7;
	unsigned refused = 0;
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };

	make_random(&b, 3, 120);
	SUCCEEDS(frag_place_greedy(&b, 0, 0, NULL, offsets, &height, NULL));
	for (unsigned i = 0; i < 2000; i++) {
		size_t k = (rng = rng * 6364136223846793005ull + 1442695040888963407ull) >> 33;
		uint64_t old = offsets[k %= b.count];
		bool good;

		offsets[k] = (rng >> 20) % (height / 512) * 512;
		good = brute_check(&b, offsets, height);
		refused += !good;
		assert_int_equal(frag_place_check(&b, offsets, 512, height, &test_err),
				 good ? 0 : FRAG_ECHECK);
		if (!good)
			offsets[k] = old;
	}
	assert_in_range(refused, 100, 1999);
	offsets[0] += 1;
	assert_int_equal(frag_place_check(&b, offsets, 512, UINT64_MAX, &test_err), FRAG_ECHECK);
}

/* All offsets of each buffer, one after the other. */
static bool brute_fits(const struct frag_buffers *b, uint64_t *o, size_t i, uint64_t height)
{
	if (i == b->count)
		return true;
	for (o[i] = 0; o[i] + b->list[i].bytes <= height; o[i]++) {
		bool free = true;

		for (size_t k = 0; k < i && free; k++)
			free = apart(&b->list[i], o[i], &b->list[k], o[k]);
		if (free && brute_fits(b, o, i + 1, height))
			return true;
	}
	return false;
}

/* Do they fit below the target? What the search says is what enumeration says. */
static bool agrees_with_brute(const struct frag_buffers *b, uint64_t target)
{
	struct frag_search_options opt = { .target_bytes = target, .budget_ns = 60 * SECOND };
	uint64_t offsets[5], height = UINT64_MAX, nodes;
	enum frag_search_answer answer;
	bool fits = brute_fits(b, offsets, 0, target);

	SUCCEEDS(frag_place_search(b, &opt, offsets, &height, &answer, &nodes, NULL));
	assert_int_equal(answer, fits ? FRAG_SEARCH_FOUND : FRAG_SEARCH_NONE);
	if (fits)
		SUCCEEDS(frag_place_check(b, offsets, 1, target, NULL));
	return fits;
}

/* Five random ones: at the bound, and from there up to the optimum. */
TEST(test_search_exact)
{
	uint64_t rng = 1;

	for (unsigned round = 0; round < test_rounds(150); round++) {
		struct frag_buffer list[5];
		struct frag_buffers b = { list, 5, NULL };
		uint64_t target;

		for (unsigned i = 0; i < 5; i++) {
			list[i].lower = test_roll(&rng) & 7;
			list[i].upper = list[i].lower + 1 + (test_roll(&rng) & 7);
			list[i].bytes = 1 + (test_roll(&rng) & 7);
		}
		target = bound_of(&b);
		while (!agrees_with_brute(&b, target))
			target++;
	}
}

/* Out of nodes or stopped: the placement stays unchanged, and is reported as no answer. */
TEST(test_search_gives_up)
{
	static const volatile sig_atomic_t stop = 1;
	struct frag_watch watch = { .stop = &stop };
	struct frag_search_options opt = { .budget_ns = 600 * SECOND,
					   .nodes_max = 1,
					   .watch = &watch };
	uint64_t offsets[450], height, nodes, greedy;
	enum frag_search_answer answer;
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };

	make_random(&b, 3, 450);
	opt.target_bytes = bound_of(&b);
	SUCCEEDS(frag_place_greedy(&b, 0, 0, NULL, offsets, &greedy, NULL));
	height = greedy;
	SUCCEEDS(frag_place_search(&b, &opt, offsets, &height, &answer, &nodes, NULL));
	assert_int_equal(answer, FRAG_SEARCH_GAVE_UP);
	assert_true(height == greedy && nodes == 0);
	opt.watch = NULL;
	SUCCEEDS(frag_place_search(&b, &opt, offsets, &height, &answer, &nodes, NULL));
	assert_true(height <= greedy && nodes > 0);
	SUCCEEDS(frag_place_check(&b, offsets, 512, height, NULL));
}

TEST(test_twins)
{
	struct frag_buffer list[] = {
		{ 0, 2, 512 }, { 8, 10, 512 }, { 0, 2, 1024 }, { 8, 10, 2048 }
	};
	uint32_t twins[] = { 1, 0, 2, 3 };
	struct frag_buffers b = { list, 4, twins };
	uint64_t o[4], height;

	SUCCEEDS(frag_place_greedy(&b, FRAG_ORDER_SIZE, FRAG_GAP_BEST, NULL, o, &height, NULL));
	assert_int_equal(o[0], 2048);
	assert_int_equal(o[1], 2048);
	SUCCEEDS(frag_place_check(&b, o, 512, height, NULL));
}
