/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's loss for unaligned labels (CTC), which PyTorch takes where labels and lengths are
 * 32-bit integers on the host. Its workspace is not measured: one number in 32 bits for each
 * step, sequence and state, of which there are two for each label and one more.
 */
#include "pretend/card/nogpu.h"

#include "cudnn.h"

struct rnn_tensor;
int frag_nogpu_cudnnGetTensorNdDescriptor(const struct rnn_tensor *t, int wanted, int *type,
					  int *count, int *dims, int *strides);

static int workspace(const struct rnn_tensor *probabilities, int labels, size_t *bytes)
{
	int type, count, dims[NOGPU_CUDNN_DIMS] = { 1, 1 }, strides[NOGPU_CUDNN_DIMS];

	frag_nogpu_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	*bytes = 4u * (size_t)dims[0] * (size_t)dims[1] * (2u * (size_t)labels + 1u);
	return 0;
}

/* The descriptor begins with the most labels of a sequence. */
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
	for (int i = 0; i < dims[1]; i++) /* of each sequence, on the host */
		most = FRAG_MAX(most, label_lengths[i]);
	return workspace(probabilities, most, bytes);
}
