/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of cuDNN's graph interface, and what cudnn_conv.c knows about convolutions. */
#ifndef FRAG_PRETEND_CUDNN_H
#define FRAG_PRETEND_CUDNN_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define PRETEND_CUDNN_DIMS 8
#define PRETEND_CUDNN_OPS 256

/* cudnnBackendDescriptorType_t */
enum {
	PRETEND_CUDNN_CONV_FORWARD = 10,
	PRETEND_CUDNN_CONV_BACKWARD_FILTER = 11,
	PRETEND_CUDNN_CONV_BACKWARD_DATA = 12,
	PRETEND_CUDNN_GRAPH = 15,
	PRETEND_CUDNN_PRODUCT = 19,
	PRETEND_CUDNN_REDUCTION = 22,
};

/* One struct for all kinds. */
struct pretend_cudnn {
	int kind;
	/* tensor */
	int type;
	int64_t dims_count, dims[PRETEND_CUDNN_DIMS], strides[PRETEND_CUDNN_DIMS];
	/* convolution: its settings, and as an operation its tensors */
	int64_t conv_strides[3], conv_dilations[3], conv_pads[3];
	struct pretend_cudnn *conv, *x_part, *w_part, *y_part;
	/* other operations */
	struct pretend_cudnn *x, *y, *query, *key, *value, *stats, *settings;
	int mode; /* settings of a pointwise operation */
	/* engine, configuration, plan, heuristics: the descriptor they are based on */
	struct pretend_cudnn *made_of;
	int choice; /* configuration: index of the plan */
	/* graph */
	int64_t ops_count;
	struct pretend_cudnn *ops[PRETEND_CUDNN_OPS];
};

/* A descriptor of a tensor for layers (cudnn_rnn.c). */
struct rnn_tensor;
int frag_pretend_cudnnGetTensorNdDescriptor(const struct rnn_tensor *t, int wanted, int *type,
					    int *count, int *dims, int *strides);

int64_t frag_pretend_cudnn_element_bytes(int type);
bool frag_pretend_is_conv(const struct pretend_cudnn *op);
#define PRETEND_PLANS 4 /* with and without tensor cores, deterministic or not */

struct pretend_plans {
	int count;
	bool planned; /* by cuDNN, which can be asked for more of them */
	bool known;   /* what a card adds to such plans is known of this cuDNN (cufrag_known.py) */
	struct pretend_plan {
		int64_t bytes;
		int notes; /* bits: cudnnBackendNumericalNote_t */
	} at[PRETEND_PLANS];
};

/* Of the cuDNN that PyTorch was built with, as 91900. */
size_t frag_pretend_cudnnGetVersion(void);
/* Plans by the user's own cuDNN (cudnn_plan.c). false: cuDNN is missing, or has no plan. */
bool frag_pretend_conv_planned(const struct pretend_cudnn *op, struct pretend_plans *plans);
/* Bytes of the largest plan with the same notes, at least this one's. */
int64_t frag_pretend_conv_largest(const struct pretend_cudnn *op, const struct pretend_plan *plan);
/* Plans of a convolution, at least one: planned or by rule. */
void frag_pretend_conv_plans(const struct pretend_cudnn *op, struct pretend_plans *plans);

#endif
