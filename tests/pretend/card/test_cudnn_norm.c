/* SPDX-License-Identifier: Apache-2.0 */
/* What batch normalization takes, as an H100 with cuDNN 9.19 answered. */
#include "test.h"

int frag_nogpu_cudnnSetTensorNdDescriptor(void *t, int type, int count, const int *dims,
					  const int *strides);
int frag_nogpu_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *h, int mode, int ops,
									void *x, void *z, void *y,
									void *scale,
									void *activation,
									size_t *bytes);
int frag_nogpu_cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *h, int mode, int ops,
								 void *x, void *y, void *dy,
								 void *dz, void *dx, void *scale,
								 void *activation, size_t *bytes);

enum { FLOAT = 0, HALF = 2 };

static void expect(int type, bool last, int images, int channels, int side, size_t forward,
		   size_t backward)
{
	_Alignas(16) unsigned char descriptor[256] = { 0 };
	int area = side * side;
	size_t bytes;

	frag_nogpu_cudnnSetTensorNdDescriptor(
		descriptor, type, 4, (int[]){ images, channels, side, side },
		last ? (int[]){ area * channels, 1, side * channels, channels }
		     : (int[]){ area * channels, area, side, 1 });
	frag_nogpu_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
		NULL, 1, 0, descriptor, NULL, NULL, NULL, NULL, &bytes);
	assert_int_equal(bytes, forward);
	frag_nogpu_cudnnGetBatchNormalizationBackwardExWorkspaceSize(
		NULL, 1, 0, descriptor, NULL, NULL, NULL, NULL, NULL, NULL, &bytes);
	assert_int_equal(bytes, backward);
}

TEST(channels_last_go_in_tiles)
{
	expect(FLOAT, true, 32, 48, 28, 203348, 135204);
	expect(FLOAT, true, 32, 256, 28, 810176, 537648);
	expect(HALF, true, 32, 256, 28, 325136, 537648);
	expect(FLOAT, true, 8, 2, 28, 1976, 1604);
	expect(FLOAT, true, 32, 13, 112, 828980, 536356);
}

TEST(channels_first_take_nothing)
{
	expect(FLOAT, false, 32, 48, 28, 0, 0);
	expect(FLOAT, false, 32, 48, 1, 0, 0);
	expect(HALF, true, 32, 1, 28, 0, 0);
}

/* As an H200 answered for what a convolution with channels last had made of one point. */
TEST(one_point_lies_as_its_strides_say)
{
	expect(HALF, true, 8, 512, 1, 5232, 5184);
	expect(HALF, false, 8, 512, 1, 0, 0);
}
