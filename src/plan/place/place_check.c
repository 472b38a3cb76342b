/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The independent check of a placement: a sweep over time with the set of occupied ranges in a tree
 * by offset. A beginning buffer must not overlap its neighbours in that set; since the set never
 * overlaps, it is enough to compare the two neighbours. Shares no code with the placements.
 */
#include <frag/plan.h>

#include <inttypes.h>
#include <stdlib.h>

#include "lib/tree.h"

struct sweep {
	const struct frag_buffers *b;
	struct frag_tree tree;
	struct frag_tree_node *nodes; /* one per buffer; key: its offset */
};

static uint64_t end_of(const struct sweep *s, size_t i)
{
	return s->nodes[i].key + s->b->list[i].bytes;
}

static int fail_pair(const struct sweep *s, size_t i, size_t k, struct frag_err *err)
{
	return frag_fail(err, FRAG_ECHECK,
			 "buffers %zu and %zu overlap: offsets %" PRIu64 " to %" PRIu64
			 " and %" PRIu64 " to %" PRIu64,
			 i, k, s->nodes[i].key, end_of(s, i), s->nodes[k].key, end_of(s, k));
}

static int begin(struct sweep *s, size_t i, struct frag_err *err)
{
	struct frag_tree_node *n = &s->nodes[i], *last = frag_tree_floor(&s->tree, n->key),
			      *first = frag_tree_ceil(&s->tree, n->key, 0);

	if (last && end_of(s, (size_t)(last - s->nodes)) > n->key)
		return fail_pair(s, (size_t)(last - s->nodes), i, err);
	if (first && end_of(s, i) > first->key)
		return fail_pair(s, (size_t)(first - s->nodes), i, err);
	frag_tree_insert(&s->tree, n);
	return 0;
}

/* Order of the sweep: by moment, ends before beginnings. */
struct moment {
	uint64_t when;
	uint32_t buffer;
	uint32_t begins;
};

FRAG_COMPARE(compare_moments, struct moment, FRAG_ORDER(x->when, y->when),
	     FRAG_ORDER(x->begins, y->begins), FRAG_ORDER(x->buffer, y->buffer))

static int check_each(const struct frag_buffers *b, const uint64_t *offsets, uint64_t align,
		      uint64_t height, struct frag_err *err)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct frag_buffer *x = &b->list[i];

		if (x->lower >= x->upper || !x->bytes)
			return frag_fail(err, FRAG_ECHECK, "buffer %zu is empty", i);
		if (offsets[i] % align)
			return frag_fail(err, FRAG_ECHECK,
					 "buffer %zu: offset %" PRIu64
					 " is not a multiple of %" PRIu64,
					 i, offsets[i], align);
		if (offsets[i] > height || x->bytes > height - offsets[i])
			return frag_fail(err, FRAG_ECHECK,
					 "buffer %zu: offset %" PRIu64 " and size %" PRIu64
					 " reach beyond %" PRIu64,
					 i, offsets[i], x->bytes, height);
	}
	return 0;
}

static int sweep(struct sweep *s, struct moment *moments, size_t count, struct frag_err *err)
{
	for (size_t k = 0; k < count; k++) {
		if (moments[k].begins)
			FRAG_TRY(begin(s, moments[k].buffer, err));
		else
			frag_tree_remove(&s->tree, &s->nodes[moments[k].buffer]);
	}
	return 0;
}

int frag_place_check(const struct frag_buffers *b, const uint64_t *offsets, uint64_t align,
		     uint64_t height, struct frag_err *err)
{
	struct sweep s = { .b = b };
	FRAG_AUTO_FREE struct moment *moments = NULL;
	FRAG_AUTO_FREE struct frag_tree_node *nodes = NULL;

	FRAG_TRY(check_each(b, offsets, align, height, err));
	if (b->count >= UINT32_MAX)
		return frag_fail(err, FRAG_ECHECK, "too many buffers to check");
	FRAG_TRY_CALLOC(nodes, b->count + 1, "check of a placement", err);
	s.nodes = nodes;
	FRAG_TRY_CALLOC(moments, 2 * b->count + 1, "check of a placement", err);
	for (uint32_t i = 0; i < b->count; i++) {
		nodes[i].key = offsets[i];
		moments[2 * i] = (struct moment){ b->list[i].lower, i, 1 };
		moments[2 * i + 1] = (struct moment){ b->list[i].upper, i, 0 };
	}
	qsort(moments, 2 * b->count, sizeof(*moments), compare_moments);
	return sweep(&s, moments, 2 * b->count, err);
}
