/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of cuDNN's batch normalization in training, equal to all 7,054 sizes of an H100 (cuDNN
 * 9.19, driver 580.159.04, git 53bd34df:scripts/lab/norm_workspaces.py). Channels first takes
 * nothing. Channels last is processed in tiles of channels by points; each tile leaves two 32-bit
 * sums per channel, and in the forward pass a flag. There is no reserve space.
 *
 * And of its CTC loss, which PyTorch uses if labels and lengths are 32-bit integers on the host.
 * That was not measured: assumed is a 32-bit number per step, sequence and state; n labels have 2 n
 * + 1 states.
 */
#include "pretend/card/card.h"

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
	int type, count = 0, dims[PRETEND_CUDNN_DIMS] = { 0 }, strides[PRETEND_CUDNN_DIMS] = { 0 };
	size_t points, of_tile, inner = 1, channels;

	frag_pretend_cudnnGetTensorNdDescriptor(x, PRETEND_CUDNN_DIMS, &type, &count, dims,
						strides);
	for (int i = 2; i < FRAG_MIN(count, PRETEND_CUDNN_DIMS); i++)
		inner *= (size_t)FRAG_MAX(dims[i], 0);
	if (count < 3 || strides[1] != 1 || dims[1] < 2 || strides[2] < 2 || dims[0] < 1)
		return false;
	channels = (size_t)dims[1];
	points = (size_t)dims[0] * inner;
	of_tile = backward ? 96 : frag_pretend_cudnn_element_bytes(type) == 4 ? 64 : 160;
	*channels_of_tile = channels < 4 ? 4 : channels % 4 ? 16 : 64;
	*columns = parts(channels, *channels_of_tile);
	*rows = parts(points, channels < 4 ? 4 * of_tile : of_tile);
	return true;
}

static size_t norm_bytes(const struct rnn_tensor *x, bool backward)
{
	size_t wide, rows, columns;

	if (!tiles_of(x, backward, &wide, &rows, &columns))
		return 0;
	return columns * (rows * (8 * wide + (backward ? 0 : 4)) + 4) +
	       (backward ? BACKWARD_HEAD : FORWARD_HEAD);
}

PRETEND_ANSWER(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
	       (void *h, int mode, int ops, const struct rnn_tensor *x, void *z, void *y,
		void *scale, void *activation, size_t *bytes),
	       *bytes = norm_bytes(x, false))
PRETEND_ANSWER(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
	       (void *h, int mode, int ops, const struct rnn_tensor *x, void *y, void *dy, void *dz,
		void *dx, void *scale, void *activation, size_t *bytes),
	       *bytes = norm_bytes(x, true))

/* ---- CTC loss ------------------------------------------------------------------------------- */

static int workspace(const struct rnn_tensor *probabilities, int labels, size_t *bytes)
{
	int type, count, dims[PRETEND_CUDNN_DIMS] = { 1, 1 }, strides[PRETEND_CUDNN_DIMS];

	frag_pretend_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	*bytes = 4u * (size_t)dims[0] * (size_t)dims[1] * (2u * (size_t)labels + 1u);
	return 0;
}

/* The descriptor begins with the maximum number of labels. */
PRETEND_ANSWER(cudnnSetCTCLossDescriptor_v9,
	       (int *most, int type, int normalization, int mode, int labels), *most = labels)
PRETEND_VALUE(int, cudnnGetCTCLossWorkspaceSize_v8,
	      (void *h, int algorithm, const int *most, const struct rnn_tensor *probabilities,
	       const void *gradients, size_t *bytes),
	      workspace(probabilities, *most, bytes))
PRETEND_ENTRY(int, cudnnGetCTCLossWorkspaceSize,
	      (void *h, const struct rnn_tensor *probabilities, const void *gradients,
	       const int *labels, const int *label_lengths, const int *input_lengths, int algorithm,
	       void *loss, size_t *bytes))
{
	int count, type, dims[PRETEND_CUDNN_DIMS] = { 1, 1 }, strides[PRETEND_CUDNN_DIMS], most = 0;

	frag_pretend_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	for (int i = 0; i < dims[1]; i++) /* per sequence, on the host */
		most = FRAG_MAX(most, label_lengths[i]);
	return workspace(probabilities, most, bytes);
}
