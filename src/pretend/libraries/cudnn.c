/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's graph interface: a program describes operations and asks for the workspace of a plan.
 * There is one engine for everything but convolutions, and heuristics find it at once.
 *
 * Workspaces are those of an H200 with cuDNN 9.19:
 *   attention forward	256 B; for one query 0, or partial results if the keys are split among
 *			multiprocessors
 *   attention backward	256 B; for grouped queries also dK and dV of all query heads, in Q's type
 *   convolution	cudnn_conv.c; several plans. PyTorch drops those that the program forbids and
 *		takes the first, or (cudnn.benchmark) tries all, the largest of each kind last
 *
 * Descriptors live as long as the process, because plans refer to their graphs.
 */
#include "pretend/card/card.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn.h"

/* cuDNN compiles an attention plan for each shape: 51 to 105 ms, 75 on average of 32 plans on
 * H100s. */
#define ATTENTION_NS 75000000u

/* cudnnBackendAttributeName_t: attributes that are read */
enum {
	HEUR_RESULTS = 202,
	CFG_ENGINE = 300,
	CFG_WORKSPACE = 303,
	CFG_SHARED_USED = 304,
	PLAN_WORKSPACE = 402,
	ENGINE_NOTES = 1303,
};

/* Attributes that are stored: offset and element size. Others are ignored. */
#define ONE(name, member) \
	{ \
		name, offsetof(struct pretend_cudnn, member), \
			sizeof(((struct pretend_cudnn *)0)->member), 1, 0 \
	}
#define LIST(name, member, count) \
	{ \
		name, offsetof(struct pretend_cudnn, member), \
			sizeof(((struct pretend_cudnn *)0)->member[0]), \
			FRAG_ARRAY_LEN(((struct pretend_cudnn *)0)->member), count \
	}
static const struct {
	int name;
	size_t at, bytes;
	int64_t most;
	size_t count_at; /* an int64_t, 0 = none */
} attributes[] = {
	ONE(0, mode), /* pointwise operation */
	LIST(102, conv_dilations, 0),
	LIST(103, conv_strides, 0),
	LIST(105, conv_pads, 0),
	ONE(201, made_of), /* heuristics: their graph */
	ONE(300, made_of), /* configuration: its engine */
	ONE(401, made_of), /* plan: its configuration */
	ONE(702, conv),	   /* convolution forward, */
	ONE(703, w_part),
	ONE(704, x_part),
	ONE(705, y_part),
	ONE(708, conv), /* backward for the data, */
	ONE(709, w_part),
	ONE(710, x_part),
	ONE(711, y_part),
	ONE(714, conv), /* and for the filter */
	ONE(715, w_part),
	ONE(716, x_part),
	ONE(717, y_part),
	ONE(750, settings), /* pointwise operation */
	LIST(801, ops, offsetof(struct pretend_cudnn, ops_count)),
	ONE(901, type), /* tensor */
	LIST(902, dims, offsetof(struct pretend_cudnn, dims_count)),
	LIST(903, strides, 0),
	ONE(1300, made_of), /* engine: its graph */
	ONE(1520, query),   /* matrix product */
	ONE(1521, key),
	ONE(1610, x), /* reduction */
	ONE(1611, y),
	ONE(2800, query), /* attention */
	ONE(2801, key),
	ONE(2802, value),
	ONE(2804, stats),
};

PRETEND_ENTRY(int, cudnnBackendCreateDescriptor, (int kind, struct pretend_cudnn **out))
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return 1003; /* allocation failed on the host */
	(*out)->kind = kind;
	return 0;
}

PRETEND_ENTRY(int, cudnnBackendSetAttribute,
	      (struct pretend_cudnn * d, int name, int type, int64_t count, const void *values))
{
	if (!d || !values || count < 1)
		return 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(attributes); i++) {
		int64_t n = FRAG_MIN(count, attributes[i].most);

		if (attributes[i].name != name)
			continue;
		memcpy((char *)d + attributes[i].at, values, (size_t)n * attributes[i].bytes);
		if (attributes[i].count_at)
			memcpy((char *)d + attributes[i].count_at, &n, sizeof(n));
	}
	return 0;
}

/* ---- attention: one operation or, with a mask, two matrix products around a softmax ---------- */

#define ATTENTION_BYTES 256
#define GEN_INDEX 501 /* cudnnPointwiseMode_t: for causal masks */
#define TILE 128      /* keys */
#define LEAST_SPLITS 4
#define ALIGNMENT 128

/* Tensors of an attention, NULL if absent. Four dimensions: images, heads, tokens, channels. */
struct attention {
	const struct pretend_cudnn *query, *key, *value;
	int products; /* 0: one operation; 2: the key is transposed; more: the backward pass */
	bool causal, for_training;
};

static bool is_tensor(const struct pretend_cudnn *t)
{
	return t && t->dims_count == 4;
}

static struct attention attention_of(const struct pretend_cudnn *graph)
{
	struct attention a = { .query = NULL };

	for (int64_t i = 0; i < graph->ops_count; i++) {
		const struct pretend_cudnn *op = graph->ops[i];

		if (!op)
			continue;
		if (op->query && !a.query) {
			a.query = op->query;
			a.key = op->key;
		}
		if (op->query)
			a.value = op->kind == PRETEND_CUDNN_PRODUCT ? op->key : op->value;
		a.products += op->kind == PRETEND_CUDNN_PRODUCT;
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

	while (parts * work < frag_pretend_card()->sms && 2 * parts * TILE <= keys)
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
static int64_t reduction_bytes(const struct pretend_cudnn *op)
{
	const struct pretend_cudnn *x = op->x, *y = op->y;

	if (op->kind != PRETEND_CUDNN_REDUCTION || !is_tensor(x) || !is_tensor(y) ||
	    x->dims[1] == y->dims[1] || x->dims[3] != y->dims[3] || y->dims[3] == 1)
		return 0;
	return frag_pretend_cudnn_element_bytes(x->type) * x->dims[0] * x->dims[1] * x->dims[2] *
	       x->dims[3];
}

static int64_t attention_bytes(const struct pretend_cudnn *graph)
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

/* ---- graphs and their plans ------------------------------------------------------------ */

/* The graph behind any descriptor; NULL: none. */
static const struct pretend_cudnn *graph_of(const struct pretend_cudnn *d)
{
	while (d && d->kind != PRETEND_CUDNN_GRAPH && d->made_of)
		d = d->made_of;
	return d && d->kind == PRETEND_CUDNN_GRAPH ? d : NULL;
}

/* The graph's convolution; NULL: none. */
static const struct pretend_cudnn *conv_of(const struct pretend_cudnn *graph)
{
	for (int64_t i = 0; graph && i < graph->ops_count; i++)
		if (graph->ops[i] && frag_pretend_is_conv(graph->ops[i]))
			return graph->ops[i];
	return NULL;
}

/* The number of a descriptor's plan; those beyond the plans count are the largest plans. */
static int choice_of(const struct pretend_cudnn *d)
{
	while (d->made_of && !d->choice)
		d = d->made_of;
	return d->choice;
}

static int64_t conv_bytes(const struct pretend_cudnn *d, const struct pretend_cudnn *conv)
{
	struct pretend_plans plans;
	int choice = choice_of(d);

	frag_pretend_conv_plans(conv, &plans);
	if (choice < plans.count)
		return plans.at[choice].bytes;
	return frag_pretend_conv_largest(conv, &plans.at[choice % plans.count]);
}

/* Fills in the caller's configurations; returns how many were filled or, without out, how many
 * exist. */
static int64_t propose(struct pretend_cudnn *d, int64_t wanted, struct pretend_cudnn **out)
{
	const struct pretend_cudnn *conv = conv_of(graph_of(d));
	struct pretend_plans plans = { .count = 1 };
	int64_t count;

	if (conv)
		frag_pretend_conv_plans(conv, &plans);
	count = plans.planned ? 2 * plans.count : plans.count;
	for (int64_t i = 0; out && i < FRAG_MIN(wanted, count); i++) {
		if (!out[i])
			continue;
		out[i]->made_of = d;
		out[i]->choice = (int)i;
	}
	return out ? FRAG_MIN(wanted, count) : count; /* PyTorch 2.15 only asks for the first */
}

static int64_t give_notes(const struct pretend_cudnn *d, int64_t wanted, int *out)
{
	const struct pretend_cudnn *conv = conv_of(graph_of(d));
	struct pretend_plans plans;
	int64_t count = 0;
	int notes;

	if (!conv)
		return 0;
	frag_pretend_conv_plans(conv, &plans);
	notes = plans.at[choice_of(d) % plans.count].notes;
	for (int i = 0; i < 31; i++) {
		if (!(notes >> i & 1))
			continue;
		if (out && count < wanted)
			out[count] = i;
		count++;
	}
	return out ? FRAG_MIN(count, wanted) : count;
}

PRETEND_ENTRY(int, cudnnBackendGetAttribute,
	      (struct pretend_cudnn * d, int name, int type, int64_t wanted, int64_t *count,
	       void *out))
{
	const struct pretend_cudnn *conv = conv_of(graph_of(d));
	bool fill = out && wanted > 0;
	int64_t bytes, found = 0;

	switch (name) {
	case HEUR_RESULTS:
		frag_pretend_host_load(PRETEND_LOADED_CUDNN);
		found = propose(d, wanted, fill ? out : NULL);
		if (fill && !conv)
			frag_pretend_host_takes(ATTENTION_NS);
		break;
	case CFG_ENGINE:
		found = 1;
		if (fill && *(struct pretend_cudnn **)out)
			(*(struct pretend_cudnn **)out)->made_of = d;
		break;
	case ENGINE_NOTES:
		found = give_notes(d, wanted, fill ? out : NULL);
		break;
	case PLAN_WORKSPACE:
	case CFG_WORKSPACE:
		found = 1;
		bytes = conv ? conv_bytes(d, conv) : attention_bytes(graph_of(d));
		if (fill)
			memcpy(out, &bytes, sizeof(bytes));
		break;
	case CFG_SHARED_USED:
		found = 1;
		if (fill)
			memset(out, 0, sizeof(int32_t));
	}
	if (count)
		*count = found;
	return 0;
}

/* ---- version -------------------------------------------------------- */

/* PyTorch compares it with its build: reports the program's own version (CUFRAG_PRETEND_CUDNN). */
PRETEND_ENTRY(size_t, cudnnGetVersion, (void))
{
	const char *version = getenv(CUFRAG_PRETEND_CUDNN);

	return version ? strtoull(version, NULL, 10) : 91900;
}
