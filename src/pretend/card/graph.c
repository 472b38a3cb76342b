/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs. A launch does nothing, so a graph only holds references to user objects, whose
 * destructors run when the graph and all its executables are destroyed: NCCL's groups of PyTorch
 * 2.15 keep the tensors of captured works so long. A card runs destructors in a thread of its own;
 * here they run before the call returns.
 *
 * A graph's handle begins with the number of its capture. During capture, the handle is the
 * stream's (card_stream.c).
 */
#include "card.h"

#include <stdlib.h>

struct graph {
	uint64_t number;
};
struct object {
	void (*destroy)(void *data);
	void *data;
	unsigned count; /* of its references */
};
/* A graph's references to an object. */
struct hold {
	uint64_t number;
	struct object *object;
	unsigned count;
	struct hold *next;
};

static uint64_t graphs_count;
static struct hold *holds;

uint64_t frag_pretend_graph_number(void)
{
	return ++graphs_count;
}

void *frag_pretend_graph(uint64_t number)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (g)
		g->number = number;
	return g;
}

static bool hold(uint64_t number, struct object *object, unsigned count)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	*h = (struct hold){ number, object, count, holds };
	holds = h;
	object->count += count;
	return true;
}

/* pre: not locked, because the destructor frees memory */
static void release(struct object *object, unsigned count)
{
	{
		PRETEND_LOCKED;

		object->count -= FRAG_MIN(object->count, count);
		if (object->count)
			return;
	}
	object->destroy(object->data);
	free(object);
}

/* Unlinks and returns one of the graph's holds, or NULL. */
static struct hold *take_hold(uint64_t number)
{
	PRETEND_LOCKED;

	for (struct hold **at = &holds; *at; at = &(*at)->next)
		if ((*at)->number == number) {
			struct hold *h = *at;

			*at = h->next;
			return h;
		}
	return NULL;
}

void frag_pretend_graph_drop(uint64_t number)
{
	for (struct hold *h; (h = take_hold(number));) {
		release(h->object, h->count);
		free(h);
	}
}

PRETEND_ENTRY(int, cudaGraphInstantiate, (void **out, void *graph, uint64_t flags))
{
	PRETEND_LOCKED;
	uint64_t number = frag_pretend_graph_number(), from = graph ? *(const uint64_t *)graph : 0;

	*out = frag_pretend_graph(number);
	for (struct hold *h = holds; h && *out; h = h->next)
		if (h->number == from && !hold(number, h->object, h->count))
			return frag_pretend_error(PRETEND_OUT_OF_MEMORY);
	return frag_pretend_error(*out ? PRETEND_OK : PRETEND_OUT_OF_MEMORY);
}
PRETEND_ENTRY(int, cudaGraphDestroy, (void *graph))
{
	if (graph)
		frag_pretend_graph_drop(*(const uint64_t *)graph);
	free(graph);
	return PRETEND_OK;
}

PRETEND_ENTRY(int, cudaUserObjectCreate,
	      (void **out, void *data, void (*destroy)(void *), unsigned count, unsigned flags))
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object)
		return frag_pretend_error(PRETEND_OUT_OF_MEMORY);
	*object = (struct object){ destroy, data, count };
	*out = object;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaUserObjectRetain, (void *object, unsigned count))
{
	PRETEND_LOCKED;

	((struct object *)object)->count += count;
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaUserObjectRelease, (void *object, unsigned count))
{
	release(object, count);
	return PRETEND_OK;
}
#define GIVEN 1u /* the caller's references move to the graph */
PRETEND_ENTRY(int, cudaGraphRetainUserObject,
	      (void *graph, void *object, unsigned count, unsigned flags))
{
	PRETEND_LOCKED;
	struct object *held = object;

	if (!hold(*(const uint64_t *)graph, held, count))
		return frag_pretend_error(PRETEND_OUT_OF_MEMORY);
	if (flags & GIVEN)
		held->count -= FRAG_MIN(held->count, count);
	return PRETEND_OK;
}
