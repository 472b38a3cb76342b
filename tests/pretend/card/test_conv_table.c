/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces of convolutions: as measured, as parts of what was measured, by rule. */
#include "test.h"

#include "pretend/libraries/cudnn.h"

struct conv {
	struct nogpu_cudnn x, w, y, settings, op;
};

/* Square pictures and filters. */
static int64_t bytes_of(int kind, int type, bool channels_last, int64_t n, int64_t c, int64_t side,
			int64_t k, int64_t r, int64_t stride, int64_t pad)
{
	int64_t out = (side + 2 * pad - r) / stride + 1;
	struct nogpu_plans plans;
	struct conv v = {
		.x = { .type = type,
		       .dims_count = 4,
		       .dims = { n, c, side, side },
		       .strides = { c * side * side, channels_last ? 1 : side * side, 1, 1 } },
		.w = { .type = type, .dims_count = 4, .dims = { k, c, r, r } },
		.y = { .type = type, .dims_count = 4, .dims = { n, k, out, out } },
		.settings = { .conv_strides = { stride, stride },
			      .conv_dilations = { 1, 1 },
			      .conv_pads = { pad, pad } },
	};

	v.op = (struct nogpu_cudnn){
		.kind = kind, .conv = &v.settings, .x_part = &v.x, .w_part = &v.w, .y_part = &v.y
	};
	frag_nogpu_conv_plans(&v.op, &plans);
	return plans.at[0].bytes;
}

#define FLOAT 0
#define HALF 2
#define BFLOAT 9

TEST(what_was_measured_is_taken)
{
	assert_int_equal(bytes_of(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 24, 3, 160, 64, 7, 2, 3),
			 46732048);
	assert_int_equal(
		bytes_of(NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, 24, 128, 28, 128, 3, 1, 1),
		28115623);
}

TEST(other_sizes_are_made_of_parts)
{
	/* x, w and y copied */
	assert_int_equal(bytes_of(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 20, 3, 160, 64, 7, 2, 3),
			 4 * (20 * 3 * 160 * 160 + 64 * 3 * 7 * 7 + 20 * 64 * 80 * 80) + 16);
	/* and 14 partial results */
	assert_int_equal(
		bytes_of(NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, 25, 128, 28, 128, 3, 1, 1),
		28115623 + 4 * 2 * 128 * 28 * 28);
}

TEST(half_precision_of_both_kinds_is_alike)
{
	for (int64_t n = 10; n < 40; n += 7)
		assert_int_equal(
			bytes_of(NOGPU_CUDNN_CONV_FORWARD, HALF, true, n, 3, 224, 64, 7, 2, 3),
			bytes_of(NOGPU_CUDNN_CONV_FORWARD, BFLOAT, true, n, 3, 224, 64, 7, 2, 3));
}

TEST(the_rest_goes_by_rule)
{
	/* nobody measured 16 channels to 24 */
	assert_int_equal(bytes_of(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 2, 16, 8, 24, 3, 1, 1),
			 4 * (2 * 16 * 64 + 24 * 16 * 9 + 2 * 24 * 64) + 16);
	assert_int_equal(bytes_of(NOGPU_CUDNN_CONV_FORWARD, BFLOAT, true, 2, 16, 8, 24, 3, 1, 1),
			 0);
}
