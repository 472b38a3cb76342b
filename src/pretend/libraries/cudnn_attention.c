/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of attention, as measured on an H200 with cuDNN 9.19:
 *   forward		256 B; for one query 0, or partial results if the keys are split among multiprocessors
 *   backward		256 B; for grouped queries also dK and dV of all query heads, in Q's type
 *
 * PyTorch describes attention as one operation or, with a mask, as two matrix products around a
 * softmax.
 */
#include "pretend/card/nogpu.h"

#include "cudnn.h"

#define ATTENTION_BYTES 256
#define GEN_INDEX 501 /* cudnnPointwiseMode_t: for causal masks */
#define TILE 128      /* keys */
#define LEAST_SPLITS 4
#define ALIGNMENT 128

/* Tensors of an attention, NULL if absent. Four dimensions: images, heads, tokens, channels. */
struct attention {
	const struct nogpu_cudnn *query, *key, *value;
	int products; /* 0: one operation; 2: the key is transposed; more: the backward pass */
	bool causal, for_training;
};

static bool is_tensor(const struct nogpu_cudnn *t)
{
	return t && t->dims_count == 4;
}

static struct attention attention_of(const struct nogpu_cudnn *graph)
{
	struct attention a = { .query = NULL };

	for (int64_t i = 0; i < graph->ops_count; i++) {
		const struct nogpu_cudnn *op = graph->ops[i];

		if (!op)
			continue;
		if (op->query && !a.query) {
			a.query = op->query;
			a.key = op->key;
		}
		if (op->query)
			a.value = op->kind == NOGPU_CUDNN_PRODUCT ? op->key : op->value;
		a.products += op->kind == NOGPU_CUDNN_PRODUCT;
		a.for_training |= op->stats != NULL;
		a.causal |= op->settings && op->settings->mode == GEN_INDEX;
	}
	return a;
}

/*
 * The number of parts into which the keys of one query are split: a power of two that occupies all
 * multiprocessors, with at least a tile per part; below four parts it is not done. Query heads that
 * share keys are computed together.
 */
static int64_t splits(const struct attention *a)
{
	int64_t keys = a->key->dims[a->products ? 3 : 2], parts = 1;
	int64_t work = FRAG_MAX(a->key->dims[0] * a->key->dims[1], 1);

	while (parts * work < frag_nogpu_card()->sms && 2 * parts * TILE <= keys)
		parts *= 2;
	return parts < LEAST_SPLITS ? 1 : parts;
}

static int64_t aligned(int64_t bytes)
{
	return (int64_t)frag_round_up((uint64_t)bytes, ALIGNMENT);
}

/* Each part has a result, a maximum and a sum per query head, in 32 bits, in three arrays. */
static int64_t one_query_bytes(const struct attention *a)
{
	int64_t heads = a->query->dims[0] * a->query->dims[1], parts, numbers;

	if (a->causal || a->for_training || !is_tensor(a->key) || !is_tensor(a->value))
		return 0;
	parts = splits(a);
	numbers = heads * parts * 4;
	if (parts == 1)
		return 0;
	return aligned(numbers * a->value->dims[3]) + 2 * aligned(numbers) + ALIGNMENT;
}

/* A sum over heads of a tensor of four dimensions folds the gradients of all query heads. */
static int64_t reduction_bytes(const struct nogpu_cudnn *op)
{
	const struct nogpu_cudnn *x = op->x, *y = op->y;

	if (op->kind != NOGPU_CUDNN_REDUCTION || !is_tensor(x) || !is_tensor(y) ||
	    x->dims[1] == y->dims[1] || x->dims[3] != y->dims[3] || y->dims[3] == 1)
		return 0;
	return frag_nogpu_cudnn_element_bytes(x->type) * x->dims[0] * x->dims[1] * x->dims[2] *
	       x->dims[3];
}

int64_t frag_nogpu_attention_bytes(const struct nogpu_cudnn *graph)
{
	int64_t bytes = ATTENTION_BYTES;
	struct attention a;

	if (!graph)
		return bytes;
	a = attention_of(graph);
	if (is_tensor(a.query) && a.query->dims[2] == 1 && a.products <= 2)
		return one_query_bytes(&a);
	for (int64_t i = 0; i < graph->ops_count; i++)
		if (graph->ops[i])
			bytes += reduction_bytes(graph->ops[i]);
	return bytes;
}
