/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers through cuDNN's interface of version 8 and 9: offsets of matrices in the packed
 * weights, and workspaces. Weights are packed by layer, then direction, first all matrices and then
 * all biases of one, without gaps.
 *
 * The rules reproduce all 133,000 sizes of an H200 with cuDNN 9.19 (git
 * 53bd34df:scripts/lab/library_workspaces.py): for each layer and direction
 * a buffer for products, the weights without biases, and the larger one of the working memories of
 * both passes.
 */
#include "pretend/card/card.h"

#include <string.h>

#include "cudnn.h"

struct rnn {
	int cell, bias, both_ways, type; /* cell: 0, 1 plain, 2 LSTM, 3 GRU */
	int64_t input, hidden, projected, layers;
	bool drops, padded; /* padded: CUDNN_RNN_PADDED_IO_ENABLED */
	bool persistent; /* one kernel keeps the weights for all steps, if hidden values are few */
};

/* A tensor, or the data of a layer. */
struct rnn_tensor {
	int type, dims_count;
	int dims[PRETEND_CUDNN_DIMS], strides[PRETEND_CUDNN_DIMS];
	int64_t steps, batch, width,
		points; /* points: total length of the sequences without padding */
};

#define BFLOAT16 9		     /* CUDNN_DATA_BFLOAT16 */
#define PERSISTENT 3		     /* CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H */
#define PRODUCT_BYTES (8 * FRAG_MIB) /* per layer and direction, for matrix products */

/* The descriptor begins with the dropout probability. */
PRETEND_ANSWER(cudnnSetDropoutDescriptor,
	       (float *d, void *h, float share, void *states, size_t bytes,
		unsigned long long seed),
	       *d = share)
PRETEND_SAME(cudnnRestoreDropoutDescriptor, cudnnSetDropoutDescriptor)
/* One generator for each thread that the card can run. */
PRETEND_ENTRY(int, cudnnDropoutGetStatesSize, (void *h, size_t *bytes))
{
	const struct pretend_card *c = frag_pretend_card();

	*bytes = (size_t)c->sms * (size_t)c->threads_per_sm * 24;
	return 0;
}

PRETEND_ENTRY(int, cudnnSetRNNDescriptor_v8,
	      (struct rnn * r, int algorithm, int cell, int bias, int direction, int input_mode,
	       int type, int precision, int math, int input, int hidden, int projected, int layers,
	       void *dropout, unsigned flags))
{
	const float *drops = dropout;

	*r = (struct rnn){ cell,
			   bias,
			   direction == 1,
			   type,
			   input,
			   hidden,
			   projected,
			   layers,
			   drops && *drops > 0,
			   flags & 1,
			   algorithm == PERSISTENT };
	return 0;
}
PRETEND_ENTRY(int, cudnnSetRNNDataDescriptor,
	      (struct rnn_tensor * t, int type, int layout, int steps, int batch, int width,
	       const int *lengths, void *padding))
{
	t->type = type;
	t->steps = steps;
	t->batch = batch;
	t->width = width;
	t->points = 0;
	for (int i = 0; i < batch; i++)
		t->points += lengths ? lengths[i] : steps;
	return 0;
}
PRETEND_ENTRY(int, cudnnGetTensorNdDescriptor,
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

/* Matrices of one layer and direction, per side (input, recurrent). */
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

/* Number of weights of one layer in one direction. */
static int64_t matrices(const struct rnn *r, int64_t layer)
{
	int64_t n = gates(r) * r->hidden * (in_width(r, layer) + out_width(r));

	return r->projected > 0 && r->projected != r->hidden ? n + r->projected * r->hidden : n;
}

static int64_t biases(const struct rnn *r)
{
	return (int64_t)(r->bias == 2 ? 2 : r->bias ? 1 : 0) * gates(r) * r->hidden;
}

PRETEND_ENTRY(int, cudnnGetRNNWeightSpaceSize, (void *h, const struct rnn *r, size_t *bytes))
{
	int64_t n = 0;

	for (int64_t layer = 0; layer < r->layers; layer++)
		n += directions(r) * (matrices(r, layer) + biases(r));
	*bytes = (size_t)(n * frag_pretend_cudnn_element_bytes(r->type));
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

/* id: the gates of the input, then those of the recurrence, then the projection. */
PRETEND_ENTRY(int, cudnnGetRNNWeightParams,
	      (void *h, const struct rnn *r, int pseudo_layer, size_t space, const char *weights,
	       int id, struct rnn_tensor *m, const char **m_out, struct rnn_tensor *b,
	       const char **b_out))
{
	int64_t layer = pseudo_layer / directions(r), in = in_width(r, layer), at = 0, bias_at;
	int64_t element = frag_pretend_cudnn_element_bytes(r->type), g = gates(r);
	int64_t columns = id < g ? in : out_width(r);
	bool has_matrix, has_bias;

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

/* How often a tensor is needed, in two separate allocations. */
struct times {
	int some, others;
};

/* For the states of all layers, and the values of all steps (kept: for the backward pass). */
static const struct {
	struct times forward, backward, persistent;
	struct times kept, persistent_values;
	int cells; /* states besides the hidden one, to sort sequences by length */
} cells[] = {
	{ { 1, 0 }, { 1, 0 }, { 2, 0 }, { 1, 0 }, { 1, 8 }, 0 },
	{ { 1, 0 }, { 1, 0 }, { 2, 0 }, { 1, 0 }, { 1, 8 }, 0 },
	{ { 2, 4 }, { 1, 2 }, { 2, 2 }, { 1, 4 }, { 4, 8 }, 2 },
	{ { 3, 0 }, { 1, 0 }, { 2, 0 }, { 6, 0 }, { 6, 8 }, 0 },
};

/* Allocations within a workspace are aligned to 32 bytes. */
static int64_t whole(int64_t bytes)
{
	return (int64_t)frag_round_up((uint64_t)bytes, 32);
}

static int64_t several(struct times n, int64_t bytes)
{
	return whole(n.some * bytes) + whole(n.others * bytes);
}

#define CHUNK 256 /* steps whose gates are computed together, in one direction */

/*
 * Sizes in bytes. step: hidden values of one step in one direction; all: of all steps; states: one
 * step in all layers and directions; wide: all steps of the input or of the hidden values,
 * whichever is larger.
 */
struct rnn_sizes {
	int64_t element, directions, step, all, states, wide;
	bool persistent;
};

static struct rnn_sizes sizes_of(const struct rnn *r, const struct rnn_tensor *x)
{
	struct rnn_sizes s = { .element = frag_pretend_cudnn_element_bytes(r->type),
			       .directions = directions(r) };

	s.step = x->batch * r->hidden * s.element;
	s.all = x->points * r->hidden * s.element;
	s.states = s.directions * r->layers * s.step;
	s.wide = FRAG_MAX(x->points * r->input * s.element, s.all);
	s.persistent = r->persistent && r->type != BFLOAT16 && out_width(r) == r->hidden;
	return s;
}

/* standard: how often a pass needs the states, unless the kernel is persistent. */
static int64_t state_bytes(const struct rnn *r, const struct rnn_sizes *s, struct times standard)
{
	return several(s->persistent ? cells[r->cell].persistent : standard, s->states) +
	       whole((s->persistent ? 1 : 2) * (s->directions - 1) * s->states);
}

static int64_t forward_bytes(const struct rnn *r, const struct rnn_sizes *s)
{
	int64_t g = gates(r), bytes;

	if (s->directions == 2)
		bytes = whole(2 * g * s->all) + whole(4 * s->all);
	else
		bytes = whole(g * (s->persistent ? s->all : FRAG_MIN(s->all, CHUNK * s->step))) +
			(r->drops ? whole(s->all) : 0);
	if (s->persistent)
		bytes += whole(4 * g * s->all);
	return bytes + state_bytes(r, s, cells[r->cell].forward);
}

/* Gradients between layers: of all steps, or of as many as this batch size needs to fill the
 * card. */
static int64_t between_bytes(const struct rnn *r, const struct rnn_tensor *x,
			     const struct rnn_sizes *s)
{
	int64_t b = x->batch, steps = b == 1 ? 32 : b <= 8 ? 16 : b <= 16 ? 8 : b <= 64 ? 4 : 2;

	if (r->layers == 1)
		return s->directions * s->all;
	if (s->directions == 2 || s->persistent)
		return 2 * s->directions * s->all;
	if (x->steps >= 128)
		steps = FRAG_MAX(steps, 8);
	return FRAG_MIN(s->all, (steps * r->layers + FRAG_MAX(steps, 8)) * s->step);
}

static int64_t backward_bytes(const struct rnn *r, const struct rnn_tensor *x,
			      const struct rnn_sizes *s)
{
	int64_t bytes =
		whole((s->directions == 2 ? 4 : 1) * s->wide) + whole(between_bytes(r, x, s));

	if (s->persistent)
		bytes += several(cells[r->cell].persistent_values, s->all);
	return bytes + state_bytes(r, s, cells[r->cell].backward);
}

static int64_t kept_bytes(const struct rnn *r, const struct rnn_tensor *x,
			  const struct rnn_sizes *s)
{
	int64_t d = s->directions, out = out_width(r);
	int64_t bytes = several(cells[r->cell].kept, r->layers * d * s->all) +
			whole((r->layers - 1) * d * s->all) + 256;

	if (out != r->hidden)
		bytes += whole(r->layers * d * s->all) +
			 whole(r->layers * d * x->points * out * s->element);
	if (r->drops) /* a bit for each value, and for each direction */
		bytes += (r->layers - 1) * d * whole((x->steps * x->batch * out * d + 7) / 8);
	return bytes;
}

struct rnn_work {
	int64_t forward, backward, kept;
};

static struct rnn_work work_of(const struct rnn *r, const struct rnn_tensor *x)
{
	struct rnn_sizes s = sizes_of(r, x);
	struct rnn_work w = { forward_bytes(r, &s), backward_bytes(r, x, &s),
			      kept_bytes(r, x, &s) };
	int64_t d = s.directions, out = out_width(r), lengths = whole(8 * x->batch), pad;

	if (out != r->hidden) {
		w.forward += whole(d * s.all);
		w.backward += whole(d * s.all);
	}
	if (r->padded) {
		pad = whole(x->steps * x->batch * r->input * s.element) +
		      whole(x->steps * x->batch * d * out * s.element) +
		      2 * whole(d * r->layers * x->batch * out * s.element) +
		      cells[r->cell].cells * whole(s.states);
		w.forward += pad + lengths;
		w.backward += 2 * pad + lengths;
	}
	return w;
}

PRETEND_ENTRY(int, cudnnGetRNNTempSpaceSizes,
	      (void *h, const struct rnn *r, int mode, const struct rnn_tensor *x,
	       size_t *workspace, size_t *reserve))
{
	int64_t runs = r->layers * directions(r);
	struct rnn_work w = work_of(r, x);
	size_t weights;

	frag_pretend_cudnnGetRNNWeightSpaceSize(h, r, &weights);
	weights -= (size_t)(runs * biases(r) * frag_pretend_cudnn_element_bytes(r->type));
	if (workspace) /* mode 0: inference */
		*workspace = (size_t)whole((int64_t)weights) +
			     (size_t)(runs * PRODUCT_BYTES + 256 +
				      (mode ? FRAG_MAX(w.forward, w.backward) : w.forward));
	if (reserve)
		*reserve = mode ? (size_t)w.kept : 0;
	return 0;
}

/*
 * ---- the interface up to version 8, used by PyTorch 2.1 and 2.2 --------------------
 *
 * A sequence is a list of tensors, one for each step, and there are always two biases. Workspaces
 * are assumed to be those of version 9 in training.
 */

PRETEND_ENTRY(int, cudnnSetRNNDescriptor_v6,
	      (void *h, struct rnn *r, int hidden, int layers, const float *dropout, int input_mode,
	       int direction, int cell, int algorithm, int precision))
{
	*r = (struct rnn){ .cell = cell,
			   .bias = 2,
			   .both_ways = direction == 1,
			   .type = precision,
			   .hidden = hidden,
			   .layers = layers,
			   .drops = dropout && *dropout > 0,
			   .persistent = algorithm == PERSISTENT };
	return 0;
}
PRETEND_ANSWER(cudnnSetRNNProjectionLayers,
	       (void *h, struct rnn *r, int projected, int out_projected), r->projected = projected)
PRETEND_ENTRY(int, cudnnSetTensorNdDescriptor,
	      (struct rnn_tensor * t, int type, int count, const int *dims, const int *strides))
{
	t->type = type;
	t->dims_count = FRAG_MIN(count, PRETEND_CUDNN_DIMS);
	for (int i = 0; i < t->dims_count; i++) {
		t->dims[i] = dims[i];
		t->strides[i] = strides[i];
	}
	return 0;
}
PRETEND_ENTRY(int, cudnnGetFilterNdDescriptor,
	      (const struct rnn_tensor *t, int wanted, int *type, int *format, int *count,
	       int *dims))
{
	*format = 0;
	return frag_pretend_cudnnGetTensorNdDescriptor(t, wanted, type, count, dims,
						       (int[PRETEND_CUDNN_DIMS]){ 0 });
}
PRETEND_ENTRY(int, cudnnGetRNNParamsSize,
	      (void *h, struct rnn *r, const struct rnn_tensor *x, size_t *bytes, int type))
{
	r->type = type;
	r->input = x->dims[1];
	return frag_pretend_cudnnGetRNNWeightSpaceSize(h, r, bytes);
}
PRETEND_VALUE(int, cudnnGetRNNLinLayerMatrixParams,
	      (void *h, const struct rnn *r, int layer, void *x, void *w, const char *weights,
	       int id, struct rnn_tensor *m, const char **out),
	      frag_pretend_cudnnGetRNNWeightParams(h, r, layer, 0, weights, id, m, out, NULL, NULL))
PRETEND_VALUE(int, cudnnGetRNNLinLayerBiasParams,
	      (void *h, const struct rnn *r, int layer, void *x, void *w, const char *weights,
	       int id, struct rnn_tensor *b, const char **out),
	      frag_pretend_cudnnGetRNNWeightParams(h, r, layer, 0, weights, id, NULL, NULL, b, out))

static int temporary_space(struct rnn *r, int steps, struct rnn_tensor *const *x, size_t *work,
			   size_t *reserve)
{
	struct rnn_tensor all = {
		.type = x[0]->type, .steps = steps, .batch = x[0]->dims[0], .width = x[0]->dims[1]
	};

	r->type = all.type;
	r->input = all.width;
	for (int i = 0; i < steps; i++)
		all.points += x[i]->dims[0];
	return frag_pretend_cudnnGetRNNTempSpaceSizes(NULL, r, 1, &all, work, reserve);
}
PRETEND_VALUE(int, cudnnGetRNNWorkspaceSize,
	      (void *h, struct rnn *r, int steps, struct rnn_tensor *const *x, size_t *bytes),
	      temporary_space(r, steps, x, bytes, NULL))
PRETEND_VALUE(int, cudnnGetRNNTrainingReserveSize,
	      (void *h, struct rnn *r, int steps, struct rnn_tensor *const *x, size_t *bytes),
	      temporary_space(r, steps, x, NULL, bytes))

/* libraryPropertyType: 0 major, 1 minor, 2 patch */
PRETEND_ENTRY(int, cudnnGetProperty, (int which, int *value))
{
	int version = (int)frag_pretend_cudnnGetVersion(), unit = version >= 90000 ? 10000 : 1000;

	*value = which == 0 ? version / unit : which == 1 ? version % unit / 100 : version % 100;
	return 0;
}
