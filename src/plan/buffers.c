/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a trace, and the largest load. */
#include "place/place.h"

#include <stdlib.h>

static int fill(struct frag_buffers *b, const struct frag_trace_dev *dev, uint64_t align,
		bool at_request, size_t *owner)
{
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];
		size_t *o = &owner[e->slot < dev->slots_count ? e->slot : 0];

		switch (e->kind) {
		case FRAG_EV_ALLOC:
			*o = b->count;
			b->list[b->count++] =
				(struct frag_buffer){ i, dev->events_count + 1,
						      frag_round_up(FRAG_MAX(e->bytes, 1u),
								    align) };
			break;
		case FRAG_EV_FREE_REQUESTED:
			if (at_request)
				b->list[*o].upper = i;
			break;
		case FRAG_EV_FREE_COMPLETED:
			if (!at_request)
				b->list[*o].upper = i;
			break;
		case FRAG_EV_FREE:
			b->list[*o].upper = i;
			break;
		default:
			break;
		}
	}
	return 0;
}

int frag_buffers_init(struct frag_buffers *b, const struct frag_trace_dev *dev, uint64_t align,
		      bool at_request, struct frag_err *err)
{
	size_t allocs = 0, *owner;

	for (size_t i = 0; i < dev->events_count; i++)
		allocs += dev->events[i].kind == FRAG_EV_ALLOC;
	*b = (struct frag_buffers){ 0 };
	b->list = frag_host_calloc(FRAG_MAX(allocs, (size_t)1), sizeof(*b->list));
	owner = frag_host_calloc(FRAG_MAX(dev->slots_count, 1u), sizeof(*owner));
	if (!b->list || !owner) {
		FRAG_FREE(b->list, owner);
		b->list = NULL;
		return frag_fail_nomem(err, "buffers");
	}
	fill(b, dev, align, at_request, owner);
	frag_host_free(owner);
	return 0;
}

void frag_buffers_release(struct frag_buffers *b)
{
	FRAG_FREE(b->list, b->twins);
	*b = (struct frag_buffers){ 0 };
}

FRAG_COMPARE(compare_edges, struct frag_edge, FRAG_ORDER(x->when, y->when),
	     (int)x->begins - (int)y->begins)

void frag_edges_sort(const struct frag_buffers *b, struct frag_edge *edges)
{
	for (size_t i = 0; i < b->count; i++) {
		edges[2 * i] = (struct frag_edge){ b->list[i].lower, b->list[i].bytes, true };
		edges[2 * i + 1] = (struct frag_edge){ b->list[i].upper, b->list[i].bytes, false };
	}
	qsort(edges, 2 * b->count, sizeof(*edges), compare_edges);
}

int frag_load_bound(const struct frag_buffers *b, uint64_t *bound, uint64_t *when,
		    struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_edge *edges = NULL;
	uint64_t now = 0, at = 0;

	FRAG_TRY_CALLOC(edges, FRAG_MAX(2 * b->count, (size_t)1), "load", err);
	frag_edges_sort(b, edges);
	*bound = 0;
	for (size_t i = 0; i < 2 * b->count; i++) {
		now = edges[i].begins ? now + edges[i].bytes : now - edges[i].bytes;
		if (now > *bound) {
			*bound = now;
			at = edges[i].when;
		}
	}
	if (when)
		*when = at;
	return 0;
}
