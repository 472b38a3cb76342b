/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The independent check of a placement: a sweep over time with the set of
 * occupied ranges in a treap by offset. A buffer that begins must not reach into
 * its neighbours in that set; as the set never overlaps, the two neighbours are
 * all there is to compare. Nothing here is shared with what makes placements.
 */
#include <frag/plan.h>

#include <inttypes.h>
#include <stdlib.h>

#define NIL UINT32_MAX

/* Node i of the treap is buffer i. */
struct node {
	uint64_t from;
	uint32_t left, right, heat; /* heat: random, largest at the root */
};

struct sweep {
	const struct frag_buffers *b;
	struct node *nodes;
	uint32_t root;
};

/* Splits by offset: below `from` to *a, the rest to *b. */
static void split(struct node *n, uint32_t t, uint64_t from, uint32_t *a, uint32_t *b)
{
	while (t != NIL) {
		if (n[t].from < from) {
			*a = t;
			a = &n[t].right;
			t = n[t].right;
		} else {
			*b = t;
			b = &n[t].left;
			t = n[t].left;
		}
	}
	*a = *b = NIL;
}

/* All of a are below all of b. */
static uint32_t join(struct node *n, uint32_t a, uint32_t b)
{
	uint32_t root = NIL, *at = &root;

	while (a != NIL && b != NIL) {
		if (n[a].heat > n[b].heat) {
			*at = a;
			at = &n[a].right;
			a = n[a].right;
		} else {
			*at = b;
			at = &n[b].left;
			b = n[b].left;
		}
	}
	*at = a != NIL ? a : b;
	return root;
}

static uint64_t end_of(const struct sweep *s, uint32_t i)
{
	return s->nodes[i].from + s->b->list[i].bytes;
}

static int fail_pair(const struct sweep *s, uint32_t i, uint32_t k, struct frag_err *err)
{
	return frag_fail(err, FRAG_ECHECK,
			 "buffers %u and %u overlap: offsets %" PRIu64 " to %" PRIu64
			 " and %" PRIu64 " to %" PRIu64,
			 i, k, s->nodes[i].from, end_of(s, i), s->nodes[k].from, end_of(s, k));
}

static int begin(struct sweep *s, uint32_t i, struct frag_err *err)
{
	struct node *n = s->nodes;
	uint32_t below = NIL, above = NIL, last, first;

	split(n, s->root, n[i].from, &below, &above);
	for (last = below; last != NIL && n[last].right != NIL;)
		last = n[last].right;
	for (first = above; first != NIL && n[first].left != NIL;)
		first = n[first].left;
	if (last != NIL && end_of(s, last) > n[i].from)
		return fail_pair(s, last, i, err);
	if (first != NIL && end_of(s, i) > n[first].from)
		return fail_pair(s, first, i, err);
	n[i].left = n[i].right = NIL;
	s->root = join(n, join(n, below, i), above);
	return 0;
}

static void end(struct sweep *s, uint32_t i)
{
	uint32_t below = NIL, above = NIL, self = NIL, rest = NIL;

	split(s->nodes, s->root, s->nodes[i].from, &below, &above);
	split(s->nodes, above, s->nodes[i].from + 1, &self, &rest);
	FRAG_ASSERT(self == i);
	s->root = join(s->nodes, below, rest);
}

/* Order of the sweep: by moment, ends before beginnings. */
struct moment {
	uint64_t when;
	uint32_t buffer;
	uint32_t begins;
};

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins < y->begins ? -1 : 1;
	return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

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
					 " is no multiple of %" PRIu64,
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
			end(s, moments[k].buffer);
	}
	return 0;
}

int frag_place_check(const struct frag_buffers *b, const uint64_t *offsets, uint64_t align,
		     uint64_t height, struct frag_err *err)
{
	struct sweep s = { .b = b, .root = NIL };
	struct moment *moments;
	uint32_t heat = 2463534242u;
	int rc;

	FRAG_TRY(check_each(b, offsets, align, height, err));
	if (b->count >= NIL)
		return frag_fail(err, FRAG_ECHECK, "too many buffers to check");
	s.nodes = frag_host_calloc(b->count + 1, sizeof(*s.nodes));
	moments = frag_host_calloc(2 * b->count + 1, sizeof(*moments));
	if (!s.nodes || !moments) {
		rc = frag_fail_nomem(err, "check of a placement");
	} else {
		for (uint32_t i = 0; i < b->count; i++) {
			heat ^= heat << 13; /* xorshift32 */
			heat ^= heat >> 17;
			heat ^= heat << 5;
			s.nodes[i] = (struct node){ offsets[i], NIL, NIL, heat };
			moments[2 * i] = (struct moment){ b->list[i].lower, i, 1 };
			moments[2 * i + 1] = (struct moment){ b->list[i].upper, i, 0 };
		}
		qsort(moments, 2 * b->count, sizeof(*moments), compare_moments);
		rc = sweep(&s, moments, 2 * b->count, err);
	}
	frag_host_free(s.nodes);
	frag_host_free(moments);
	return rc;
}
