/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers through cuDNN's interface of version 8 and 9: where each matrix lies in the
 * packed weights, and how much a run takes. Weights are packed layer by layer, directions side by
 * side, first all matrices and then all biases of one, without gaps.
 *
 * What a run takes, read off 2,008 runs on an H200 with cuDNN 9.19 (scripts/lab/library_workspaces.py): what it
 * keeps for the backward pass to the byte; its workspace within 5 % in half of them, 27 % in nine of ten.
 */
#include "nogpu.h"

#include <stdlib.h>
#include <string.h>

#include "cudnn.h"

struct rnn {
	int cell, bias, both_ways, type; /* cell: 0, 1 plain, 2 LSTM, 3 GRU */
	int64_t input, hidden, projected, layers;
};

/* Of a tensor or of the data of a layer. */
struct rnn_tensor {
	int type, dims_count;
	int dims[NOGPU_CUDNN_DIMS], strides[NOGPU_CUDNN_DIMS];
	int64_t steps, batch, width;
};

#define PRODUCT_BYTES (8 * FRAG_MIB) /* of one layer in one direction, for its matrix products */

#define BOX(name) \
	NOGPU_ENTRY(int, name, (void **out)) \
	{ \
		*out = calloc(1, sizeof(struct rnn) + sizeof(struct rnn_tensor)); \
		return *out ? 0 : 1003; \
	}
BOX(cudnnCreateRNNDescriptor)
BOX(cudnnCreateRNNDataDescriptor)
BOX(cudnnCreateTensorDescriptor)

NOGPU_ENTRY(int, cudnnSetRNNDescriptor_v8,
	    (struct rnn * r, int algorithm, int cell, int bias, int direction, int input_mode,
	     int type, int precision, int math, int input, int hidden, int projected, int layers,
	     void *dropout, unsigned flags))
{
	(void)algorithm, (void)input_mode, (void)precision, (void)math, (void)dropout, (void)flags;
	*r = (struct rnn){ cell, bias, direction == 1, type, input, hidden, projected, layers };
	return 0;
}
NOGPU_ENTRY(int, cudnnSetRNNDataDescriptor,
	    (struct rnn_tensor * t, int type, int layout, int steps, int batch, int width,
	     const int *lengths, void *padding))
{
	(void)layout, (void)lengths, (void)padding;
	t->type = type;
	t->steps = steps;
	t->batch = batch;
	t->width = width;
	return 0;
}
NOGPU_ENTRY(int, cudnnGetTensorNdDescriptor,
	    (const struct rnn_tensor *t, int wanted, int *type, int *count, int *dims,
	     int *strides))
{
	*type = t->type;
	*count = t->dims_count;
	for (int i = 0; i < wanted && i < t->dims_count; i++) {
		dims[i] = t->dims[i];
		strides[i] = t->strides[i];
	}
	return 0;
}

/* Matrices of one layer and direction for each side, input and recurrent. */
static int64_t gates(const struct rnn *r)
{
	return r->cell == 2 ? 4 : r->cell == 3 ? 3 : 1;
}

static int64_t directions(const struct rnn *r)
{
	return r->both_ways ? 2 : 1;
}

static int64_t out_width(const struct rnn *r)
{
	return r->projected > 0 ? r->projected : r->hidden;
}

static int64_t in_width(const struct rnn *r, int64_t layer)
{
	return layer ? out_width(r) * directions(r) : r->input;
}

/* Elements of one layer in one direction. */
static int64_t matrices(const struct rnn *r, int64_t layer)
{
	int64_t n = gates(r) * r->hidden * (in_width(r, layer) + out_width(r));

	return r->projected > 0 && r->projected != r->hidden ? n + r->projected * r->hidden : n;
}

static int64_t biases(const struct rnn *r)
{
	return (int64_t)(r->bias == 2 ? 2 : r->bias ? 1 : 0) * gates(r) * r->hidden;
}

NOGPU_ENTRY(int, cudnnGetRNNWeightSpaceSize, (void *h, const struct rnn *r, size_t *bytes))
{
	int64_t n = 0;

	(void)h;
	for (int64_t layer = 0; layer < r->layers; layer++)
		n += directions(r) * (matrices(r, layer) + biases(r));
	*bytes = (size_t)(n * frag_nogpu_cudnn_element_bytes(r->type));
	return 0;
}

static void describe(struct rnn_tensor *t, const struct rnn *r, int64_t rows, int64_t columns)
{
	if (t)
		*t = (struct rnn_tensor){ .type = r->type,
					  .dims_count = 3,
					  .dims = { 1, (int)rows, (int)columns },
					  .strides = { (int)(rows * columns), (int)columns, 1 } };
}

/* id: first the gates of the input, then those of the recurrence, then the projection. */
NOGPU_ENTRY(int, cudnnGetRNNWeightParams,
	    (void *h, const struct rnn *r, int pseudo_layer, size_t space, const char *weights,
	     int id, struct rnn_tensor *m, const char **m_out, struct rnn_tensor *b,
	     const char **b_out))
{
	int64_t layer = pseudo_layer / directions(r), in = in_width(r, layer), at = 0, bias_at;
	int64_t element = frag_nogpu_cudnn_element_bytes(r->type), g = gates(r);
	int64_t columns = id < g ? in : out_width(r);
	bool has_matrix, has_bias;

	(void)h, (void)space;
	for (int64_t i = 0; i < pseudo_layer; i++)
		at += matrices(r, i / directions(r)) + biases(r);
	bias_at = at + matrices(r, layer) + id * r->hidden;
	at += r->hidden * (id <= g ? id * in : g * in + (id - g) * out_width(r));
	has_matrix = id < 2 * g || (r->projected > 0 && r->projected != r->hidden);
	has_bias = id < 2 * g && r->bias && (r->bias == 2 || id < g);
	if (m_out)
		*m_out = has_matrix ? weights + at * element : NULL;
	if (b_out)
		*b_out = has_bias ? weights + bias_at * element : NULL;
	if (id < 2 * g)
		describe(m, r, r->hidden, columns);
	else if (has_matrix)
		describe(m, r, r->projected, r->hidden);
	if (has_bias)
		describe(b, r, r->hidden, 1);
	return 0;
}

NOGPU_ENTRY(int, cudnnGetRNNTempSpaceSizes,
	    (void *h, const struct rnn *r, int mode, const struct rnn_tensor *x, size_t *workspace,
	     size_t *reserve))
{
	int64_t element = frag_nogpu_cudnn_element_bytes(r->type), runs = r->layers * directions(r);
	int64_t points = x->steps * x->batch * element;
	int64_t step = points * r->hidden * directions(r), kept = r->cell == 2	 ? 5
								  : r->cell == 3 ? 6
										 : 1;
	size_t weights;

	frag_nogpu_cudnnGetRNNWeightSpaceSize(h, r, &weights);
	if (workspace)
		*workspace = weights + (size_t)(runs * PRODUCT_BYTES + 5 * step +
						3 * points * r->input + 400 * FRAG_KIB);
	if (reserve) /* mode 0: inference; between two layers a mask */
		*reserve = mode ? (size_t)((kept * r->layers + r->layers - 1) * step + 256) : 0;
	return 0;
}

/* libraryPropertyType: 0 major, 1 minor, 2 patch */
size_t frag_nogpu_cudnnGetVersion(void);
NOGPU_ENTRY(int, cudnnGetProperty, (int which, int *value))
{
	int version = (int)frag_nogpu_cudnnGetVersion(), unit = version >= 90000 ? 10000 : 1000;

	*value = which == 0 ? version / unit : which == 1 ? version % unit / 100 : version % 100;
	return 0;
}
