/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's CTC loss, which PyTorch uses if labels and lengths are 32-bit integers on the host. Its
 * workspace was not measured: assumed is a 32-bit number per step, sequence and state; n labels
 * have 2 n + 1 states.
 */
#include "pretend/card/nogpu.h"

#include "cudnn.h"

static int workspace(const struct rnn_tensor *probabilities, int labels, size_t *bytes)
{
	int type, count, dims[NOGPU_CUDNN_DIMS] = { 1, 1 }, strides[NOGPU_CUDNN_DIMS];

	frag_nogpu_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	*bytes = 4u * (size_t)dims[0] * (size_t)dims[1] * (2u * (size_t)labels + 1u);
	return 0;
}

/* The descriptor begins with the maximum number of labels. */
NOGPU_ANSWER(cudnnSetCTCLossDescriptor_v9,
	     (int *most, int type, int normalization, int mode, int labels), *most = labels)
NOGPU_VALUE(int, cudnnGetCTCLossWorkspaceSize_v8,
	    (void *h, int algorithm, const int *most, const struct rnn_tensor *probabilities,
	     const void *gradients, size_t *bytes),
	    workspace(probabilities, *most, bytes))
NOGPU_ENTRY(int, cudnnGetCTCLossWorkspaceSize,
	    (void *h, const struct rnn_tensor *probabilities, const void *gradients,
	     const int *labels, const int *label_lengths, const int *input_lengths, int algorithm,
	     void *loss, size_t *bytes))
{
	int count, type, dims[NOGPU_CUDNN_DIMS] = { 1, 1 }, strides[NOGPU_CUDNN_DIMS], most = 0;

	frag_nogpu_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	for (int i = 0; i < dims[1]; i++) /* per sequence, on the host */
		most = FRAG_MAX(most, label_lengths[i]);
	return workspace(probabilities, most, bytes);
}
