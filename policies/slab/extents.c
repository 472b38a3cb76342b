/* SPDX-License-Identifier: Apache-2.0 */
/* The page heap of the slab policy, see extents.h. */
#include "extents.h"

static void put(void *self, struct frag_piece *p)
{
	struct frag_extents *x = self;

	frag_bset_insert(&x->free, p->bytes, p->addr, p);
}

static void cut(void *self, struct frag_piece *p)
{
	struct frag_extents *x = self;

	frag_bset_erase(&x->free, p->bytes, p->addr);
}

void frag_extents_init(struct frag_extents *x, const struct frag_policy_env *env, uint64_t page,
		       uint64_t grow)
{
	static const struct frag_heap_index extents = { cut, put };

	*x = (struct frag_extents){ .page = page, .grow = grow };
	frag_heap_init(&x->heap, env, &extents, x);
	frag_bset_nodes_init(&x->nodes);
	frag_bset_init_shared(&x->free, &x->nodes);
}

void frag_extents_release(struct frag_extents *x)
{
	frag_heap_release(&x->heap);
	frag_slab_release(&x->nodes);
}

static struct frag_piece *find(const void *self, uint64_t bytes)
{
	const struct frag_extents *x = self;
	struct frag_bset_node *at = frag_bset_lower(&x->free, bytes, 0);

	return frag_bset_value(at);
}

/* Sets hold free extents and slabs, each a piece: two more cover one split and one segment. */
static int reserve(struct frag_extents *x)
{
	return frag_bset_nodes_reserve(&x->nodes, x->heap.pieces_count + 2)
		       ?: frag_heap_reserve(&x->heap, 2);
}

int frag_extents_take(struct frag_extents *x, uint64_t bytes, uint32_t stream,
		      struct frag_piece **out, enum frag_class *cls, struct frag_err *err)
{
	struct frag_piece *p;

	FRAG_CHECK_ALLOC(!reserve(x), "free extents", err);
	p = find(x, bytes);
	*cls = FRAG_CLASS_HIT;
	if (!p) {
		struct frag_heap_growth g = { .bytes = bytes,
					      .usual = frag_round_up(FRAG_MAX(bytes, x->grow),
								     x->page),
					      .least = bytes,
					      .stream = stream,
					      .find = find };

		FRAG_TRY(frag_heap_make_room(&x->heap, &g, &p, cls, err));
		FRAG_CHECK_ALLOC(!reserve(x), "free extents", err);
	}
	cut(x, p);
	if (p->bytes > bytes) {
		put(x, frag_heap_split(&x->heap, p, bytes));
		if (*cls == FRAG_CLASS_HIT)
			*cls = FRAG_CLASS_SPLIT;
	}
	p->link[0] = NULL;
	frag_heap_take(&x->heap, p);
	*out = p;
	return 0;
}

void frag_extents_give(struct frag_extents *x, struct frag_piece *p)
{
	put(x, frag_heap_give_merged(&x->heap, p, cut, x));
}

uint64_t frag_extents_largest(const struct frag_extents *x)
{
	return frag_bset_largest(&x->free);
}

static bool indexed(void *ctx, const struct frag_piece *p)
{
	const struct frag_extents *x = ctx;

	return !frag_piece_free_next(p) && frag_bset_has(&x->free, p->bytes, p->addr, p);
}

int frag_extents_check(struct frag_extents *x, struct frag_err *err)
{
	return frag_heap_check(&x->heap, frag_bset_count(&x->free), indexed, x, err);
}
