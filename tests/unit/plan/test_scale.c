/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at values that were not recorded: laws of sizes, requests matched, traces made. */
#include "test.h"

#include "plan/scale/scale.h"
#include "trace/build/build.h"

/* A step of a program at n: a constant, c n, c n^2, c + d n; temporary storage from `from` on. */
static void make_dev(struct frag_trace_dev *dev, uint64_t n, size_t steps, uint64_t from)
{
	size_t count = 0;

	*dev = (struct frag_trace_dev){ .slots_count = 5, .streams_count = 1, .pools_count = 1 };
	dev->events = frag_host_calloc(steps * 10, sizeof(*dev->events));
	assert_non_null(dev->events);
	for (size_t s = 0; s < steps; s++) {
		uint64_t sizes[] = { 4096 * (s + 1), 700 * n, 12 * n * n, 100 + 8 * n, 64 * n };
		uint32_t blocks = n >= from && s % 7 == 3 ? 5 : 4;

		for (uint32_t i = 0; i < 2 * blocks; i++)
			dev->events[count++] =
				(struct frag_event){ .bytes = sizes[i % blocks],
						     .slot = i % blocks,
						     .kind = i < blocks ? FRAG_EV_ALLOC
									: FRAG_EV_FREE };
	}
	dev->events_count = count;
}

TEST(a_scaled_trace_is_the_recorded_one)
{
	const uint64_t at[] = { 3, 5, 12 };
	struct frag_trace_dev devs[3], truth, made;
	struct frag_scaling_part parts[3];
	struct frag_scaling s;

	for (size_t i = 0; i < 3; i++) {
		make_dev(&devs[i], at[i], 50, UINT64_MAX);
		parts[i] = (struct frag_scaling_part){ &devs[i], at[i] };
	}
	assert_int_equal(frag_scaling_make(parts, 3, 2, &s, &test_err), 0);
	assert_int_equal(s.laws[FRAG_SCALING_CONSTANT], 50);
	assert_int_equal(s.laws[FRAG_SCALING_LINEAR], 50);
	assert_int_equal(s.laws[FRAG_SCALING_SQUARE], 50);
	assert_int_equal(s.laws[FRAG_SCALING_AFFINE], 50);
	assert_true(frag_scaling_exact(&s, 1000));
	for (uint64_t n = 1; n < 5000; n += 617) {
		make_dev(&truth, n, 50, UINT64_MAX);
		assert_int_equal(frag_scaling_dev(&s, n, FRAG_SCALING_LOW, &made, &test_err), 0);
		assert_int_equal(made.events_count, truth.events_count);
		for (size_t i = 0; i < truth.events_count; i++)
			assert_int_equal(made.events[i].bytes, truth.events[i].bytes);
		frag_scaling_dev_release(&made);
		frag_host_free(truth.events);
	}
	frag_scaling_release(&s);
	for (size_t i = 0; i < 3; i++)
		frag_host_free(devs[i].events);
}

TEST(requests_that_come_and_go_are_left_out)
{
	const uint64_t at[] = { 3, 5, 12 };
	struct frag_trace_dev devs[3];
	struct frag_scaling_part parts[3];
	struct frag_scaling s;

	for (size_t i = 0; i < 3; i++) {
		make_dev(&devs[i], at[i], 5000, 10);
		parts[i] = (struct frag_scaling_part){ &devs[i], at[i] };
	}
	/* a part of them only in the last, 714 of 5000 steps: more than one stretch of the match */
	assert_int_equal(frag_scaling_make(parts, 3, 2, &s, &test_err), 0);
	assert_int_equal(s.unmatched[0], 714);
	assert_int_equal(s.unmatched[1], 714);
	assert_int_equal(s.laws[FRAG_SCALING_ONCE], 714);
	assert_int_equal(s.laws[FRAG_SCALING_LINEAR], 5000);
	assert_false(frag_scaling_exact(&s, 11));
	frag_scaling_release(&s);
	/* below it nothing of that is to be seen */
	assert_int_equal(frag_scaling_make(parts, 2, 1, &s, &test_err), 0);
	assert_int_equal(s.unmatched[0], 0);
	assert_true(frag_scaling_exact(&s, 4));
	assert_false(frag_scaling_exact(&s, 11)); /* two points lie on any c + d n */
	frag_scaling_release(&s);
	for (size_t i = 0; i < 3; i++)
		frag_host_free(devs[i].events);
}

static uint64_t size_at(const uint64_t *sizes, size_t count, uint64_t n,
			enum frag_scaling_bound bound, enum frag_scaling_law *law)
{
	static const uint64_t values[] = { 2, 4, 8, 16 };

	return frag_scaling_size(values, sizes, count, count - 1, n, bound, law);
}

TEST(laws_are_those_that_all_points_meet)
{
	const uint64_t bent[] = { 10, 20, 30, 40 }, once[] = { UINT64_MAX, UINT64_MAX, 100, 200 };
	const uint64_t full[] = { 14, 46, 158, 574 }; /* 2 n^2 + 4 n - 2 */
	const uint64_t only[] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, 160 };
	const uint64_t huge[] = { FRAG_MAX_REQUEST / 4, FRAG_MAX_REQUEST };
	enum frag_scaling_law law;

	assert_int_equal(size_at(bent, 4, 100, FRAG_SCALING_LOW, &law), 40);
	assert_int_equal(law, FRAG_SCALING_UNKNOWN);
	assert_int_equal(size_at(bent, 4, 100, FRAG_SCALING_HIGH, &law), 250);
	assert_int_equal(size_at(bent, 4, 5, FRAG_SCALING_HIGH, &law), 25);
	assert_int_equal(size_at(once, 4, 32, FRAG_SCALING_LOW, &law), 400);
	assert_int_equal(law, FRAG_SCALING_LINEAR);
	assert_int_equal(size_at(full, 4, 10, FRAG_SCALING_LOW, &law), 238);
	assert_int_equal(law, FRAG_SCALING_QUADRATIC);
	size_at(full, 3, 10, FRAG_SCALING_LOW, &law);
	assert_int_equal(law, FRAG_SCALING_UNKNOWN);
	assert_int_equal(size_at(only, 4, 64, FRAG_SCALING_HIGH, &law), 640);
	assert_int_equal(law, FRAG_SCALING_ONCE);
	assert_true(size_at(huge, 2, FRAG_SCALING_MAX, FRAG_SCALING_LOW, &law) == UINT64_MAX);
}

TEST(other_programs_are_refused)
{
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev a = { 0 }, b = { 0 };
	struct frag_scaling_part parts[2];
	struct frag_scaling s;

	make_dev(&a, 3, 50, UINT64_MAX);
	make_dev(&b, 4, 50, UINT64_MAX);
	for (size_t i = 0; i < b.events_count; i++)
		b.events[i].bytes += 12345;
	parts[0] = (struct frag_scaling_part){ &a, 3 };
	parts[1] = (struct frag_scaling_part){ &b, 4 };
	assert_int_equal(frag_scaling_make(parts, 2, 1, &s, &test_err), FRAG_EINPUT);
	b.events[0].kind = FRAG_EV_REFUSED;
	FAILS(FRAG_EINPUT, "ran out of memory at event 0, so it cannot be scaled",
	      frag_scaling_make(parts, 2, 1, &s, &test_err));
}
