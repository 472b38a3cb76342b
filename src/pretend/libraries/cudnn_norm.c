/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of cuDNN's batch normalization in training, equal to all 7,054 sizes of an H100 (cuDNN
 * 9.19, driver 580.159.04, git 53bd34df:scripts/lab/norm_workspaces.py). Channels first takes
 * nothing. Channels last is processed in tiles of channels by points; each tile leaves two 32-bit
 * sums per channel, and in the forward pass a flag. There is no reserve space.
 */
#include "pretend/card/nogpu.h"

#include "cudnn.h"

#define FORWARD_HEAD 1072u /* bytes besides the tiles */
#define BACKWARD_HEAD 1056u

static size_t parts(size_t all, size_t one)
{
	return (all + one - 1) / one;
}

/* true: channels last, with the points of a tile. A tensor of one channel fits both layouts and
 * counts as channels first; for one point the stride decides: that of all channels if it came from
 * a convolution with channels last. */
static bool tiles_of(const struct rnn_tensor *x, bool backward, size_t *channels_of_tile,
		     size_t *rows, size_t *columns)
{
	int type, count = 0, dims[NOGPU_CUDNN_DIMS] = { 0 }, strides[NOGPU_CUDNN_DIMS] = { 0 };
	size_t points, of_tile, inner = 1, channels;

	frag_nogpu_cudnnGetTensorNdDescriptor(x, NOGPU_CUDNN_DIMS, &type, &count, dims, strides);
	for (int i = 2; i < FRAG_MIN(count, NOGPU_CUDNN_DIMS); i++)
		inner *= (size_t)FRAG_MAX(dims[i], 0);
	if (count < 3 || strides[1] != 1 || dims[1] < 2 || strides[2] < 2 || dims[0] < 1)
		return false;
	channels = (size_t)dims[1];
	points = (size_t)dims[0] * inner;
	of_tile = backward ? 96 : frag_nogpu_cudnn_element_bytes(type) == 4 ? 64 : 160;
	*channels_of_tile = channels < 4 ? 4 : channels % 4 ? 16 : 64;
	*columns = parts(channels, *channels_of_tile);
	*rows = parts(points, channels < 4 ? 4 * of_tile : of_tile);
	return true;
}

static size_t forward_bytes(const struct rnn_tensor *x)
{
	size_t wide, rows, columns;

	if (!tiles_of(x, false, &wide, &rows, &columns))
		return 0;
	return columns * (rows * (8 * wide + 4) + 4) + FORWARD_HEAD;
}

static size_t backward_bytes(const struct rnn_tensor *x)
{
	size_t wide, rows, columns;

	if (!tiles_of(x, true, &wide, &rows, &columns))
		return 0;
	return columns * (rows * 8 * wide + 4) + BACKWARD_HEAD;
}

NOGPU_ANSWER(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
	     (void *h, int mode, int ops, const struct rnn_tensor *x, void *z, void *y, void *scale,
	      void *activation, size_t *bytes),
	     *bytes = forward_bytes(x))
NOGPU_ANSWER(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
	     (void *h, int mode, int ops, const struct rnn_tensor *x, void *y, void *dy, void *dz,
	      void *dx, void *scale, void *activation, size_t *bytes),
	     *bytes = backward_bytes(x))
