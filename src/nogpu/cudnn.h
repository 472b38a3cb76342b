/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of cuDNN's graph interface, and what cudnn_conv.c knows about convolutions. */
#ifndef FRAG_NOGPU_CUDNN_H
#define FRAG_NOGPU_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

#define NOGPU_CUDNN_DIMS 8
#define NOGPU_CUDNN_OPS 256

/* cudnnBackendDescriptorType_t */
enum {
	NOGPU_CUDNN_CONV_FORWARD = 10,
	NOGPU_CUDNN_CONV_BACKWARD_FILTER = 11,
	NOGPU_CUDNN_CONV_BACKWARD_DATA = 12,
	NOGPU_CUDNN_GRAPH = 15,
	NOGPU_CUDNN_REDUCTION = 22,
};

/* One for all kinds. */
struct nogpu_cudnn {
	int kind;
	/* tensor */
	int type;
	int64_t dims_count, dims[NOGPU_CUDNN_DIMS], strides[NOGPU_CUDNN_DIMS];
	/* convolution: its own settings, and as an operation its parts */
	int64_t conv_strides[3], conv_dilations[3], conv_pads[3];
	struct nogpu_cudnn *conv, *x_part, *w_part, *y_part;
	/* other operations */
	struct nogpu_cudnn *x, *y, *query;
	/* engine, configuration, plan, heuristics: what they were made of */
	struct nogpu_cudnn *made_of;
	/* graph */
	int64_t ops_count;
	struct nogpu_cudnn *ops[NOGPU_CUDNN_OPS];
};

int64_t frag_nogpu_cudnn_element_bytes(int type);
bool frag_nogpu_is_conv(const struct nogpu_cudnn *op);
/* An attribute of a convolution or of its operation; others are ignored. */
void frag_nogpu_conv_take(struct nogpu_cudnn *d, int name, int64_t count, const void *values);
/* Workspace as it was measured, or lies between what was; false: this convolution is not in the table. */
bool frag_nogpu_conv_recorded(const struct nogpu_cudnn *op, int64_t *bytes);
/* Workspace of the plan that the card would take: by the table, else by rule. */
int64_t frag_nogpu_conv_bytes(const struct nogpu_cudnn *op);

#endif
