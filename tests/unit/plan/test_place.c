/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of placements. What is placed: tests/cli plan_made; how low recordings are placed:
 * tests/golden/run.py placements; what Ctrl-C leaves: tests/cli signals.
 */
#include "test.h"

#include <frag/plan.h>

#define COUNT 120

/* The simplest check there is, against which the checker itself is tested. */
static bool brute_check(const struct frag_buffers *b, const uint64_t *o, uint64_t height)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct frag_buffer *x = &b->list[i], *y;

		if (o[i] + x->bytes > height)
			return false;
		for (size_t k = 0; k < i; k++) {
			y = &b->list[k];
			if (x->lower < y->upper && y->lower < x->upper && o[k] < o[i] + x->bytes &&
			    o[i] < o[k] + y->bytes)
				return false;
		}
	}
	return true;
}

/* The checker agrees with the brute one on placements with one offset changed. */
TEST(test_checker)
{
	struct frag_buffer list[COUNT];
	struct frag_buffers b = { list, COUNT, NULL };
	uint64_t offsets[COUNT], height, rng = 7;
	unsigned refused = 0;

	for (size_t i = 0; i < COUNT; i++) {
		list[i].lower = test_roll(&rng) % 1000;
		list[i].upper =
			list[i].lower + 1 + (test_roll(&rng) % 1000 >> test_roll(&rng) % 10);
		list[i].bytes = 512 * (1 + (test_roll(&rng) % 4096 >> test_roll(&rng) % 12));
	}
	SUCCEEDS(frag_place_greedy(&b, 0, 0, NULL, offsets, &height, NULL));
	for (unsigned i = 0; i < 2000; i++) {
		size_t k = test_roll(&rng) % COUNT;
		uint64_t old = offsets[k];
		bool good;

		offsets[k] = test_roll(&rng) % (height / 512) * 512;
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
