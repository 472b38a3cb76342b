/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's loss for unaligned labels (CTC), which PyTorch takes where labels and lengths are
 * 32-bit integers on the host. Its workspace is not measured: one number in 32 bits for each
 * step, sequence and state, of which there are two for each label and one more.
 */
#include "nogpu.h"

#include "cudnn.h"

int frag_nogpu_cudnnCreateDropoutDescriptor(void **out);
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

NOGPU_ENTRY(int, cudnnCreateCTCLossDescriptor, (int **labels))
{
	return frag_nogpu_cudnnCreateDropoutDescriptor((void **)labels);
}
NOGPU_ENTRY(int, cudnnSetCTCLossDescriptor_v9,
	    (int *most, int type, int normalization, int mode, int labels))
{
	(void)type, (void)normalization, (void)mode;
	*most = labels;
	return 0;
}
NOGPU_ENTRY(int, cudnnGetCTCLossWorkspaceSize_v8,
	    (void *h, int algorithm, const int *most, const struct rnn_tensor *probabilities,
	     const void *gradients, size_t *bytes))
{
	(void)h, (void)algorithm, (void)gradients;
	return workspace(probabilities, *most, bytes);
}
NOGPU_ENTRY(int, cudnnGetCTCLossWorkspaceSize,
	    (void *h, const struct rnn_tensor *probabilities, const void *gradients,
	     const int *labels, const int *label_lengths, const int *input_lengths, int algorithm,
	     void *loss, size_t *bytes))
{
	int count, type, dims[NOGPU_CUDNN_DIMS] = { 1, 1 }, strides[NOGPU_CUDNN_DIMS], most = 0;

	(void)h, (void)gradients, (void)labels, (void)input_lengths, (void)algorithm, (void)loss;
	frag_nogpu_cudnnGetTensorNdDescriptor(probabilities, 2, &type, &count, dims, strides);
	for (int i = 0; i < dims[1]; i++) /* of each sequence, on the host */
		most = FRAG_MAX(most, label_lengths[i]);
	return workspace(probabilities, most, bytes);
}
