/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting and joining of spans; see spans.h. */
#include "spans.h"

#include "lib/links.h"

void frag_spans_begin(struct frag_slab *slab, struct frag_spans *s, void *owner, frag_addr_t addr,
		      uint64_t bytes)
{
	s->first = frag_slab_alloc(slab);
	*s->first = (struct frag_span){ .fit = { .key = addr, .weight = bytes },
					.owner = owner,
					.state = FRAG_STATE_FREE };
	frag_tree_insert(&s->free, &s->first->fit);
}

/* Cuts a span to `bytes`; the rest is free, and in no tree. */
static struct frag_span *cut(struct frag_slab *slab, struct frag_span *n, uint64_t bytes)
{
	struct frag_span *rest = frag_slab_alloc(slab);

	*rest = (struct frag_span){ .fit = { .key = n->fit.key + bytes,
					     .weight = n->fit.weight - bytes },
				    .owner = n->owner,
				    .state = FRAG_STATE_FREE };
	FRAG_LINK_AFTER(n, rest);
	n->fit.weight = bytes;
	return rest;
}

struct frag_span *frag_spans_take_at(struct frag_slab *slab, struct frag_spans *s, frag_addr_t addr,
				     uint64_t bytes)
{
	struct frag_span *n = (struct frag_span *)frag_tree_floor(&s->free, addr), *front = n;

	if (!n || addr - n->fit.key + bytes > n->fit.weight)
		return NULL;
	frag_tree_remove(&s->free, &n->fit);
	if (addr > front->fit.key) {
		n = cut(slab, front, addr - front->fit.key);
		frag_tree_insert(&s->free, &front->fit);
	}
	if (n->fit.weight > bytes)
		frag_tree_insert(&s->free, &cut(slab, n, bytes)->fit);
	n->state = FRAG_STATE_LIVE;
	s->used_count++;
	return n;
}

struct frag_span *frag_spans_take(struct frag_slab *slab, struct frag_spans *s, uint64_t bytes)
{
	struct frag_tree_node *fit = frag_tree_first_fit(&s->free, bytes);

	return fit ? frag_spans_take_at(slab, s, fit->key, bytes) : NULL;
}

/* `n` takes in the span behind it, which is in no tree. */
static void absorb_next(struct frag_slab *slab, struct frag_span *n)
{
	struct frag_span *gone = n->next;

	n->fit.weight += gone->fit.weight;
	FRAG_UNLINK_NEXT(n);
	frag_slab_free(slab, gone);
}

void frag_spans_give(struct frag_slab *slab, struct frag_spans *s, struct frag_span *n)
{
	n->state = FRAG_STATE_FREE;
	if (n->next && n->next->state == FRAG_STATE_FREE) {
		frag_tree_remove(&s->free, &n->next->fit);
		absorb_next(slab, n);
	}
	if (n->prev && n->prev->state == FRAG_STATE_FREE) {
		n = n->prev;
		frag_tree_remove(&s->free, &n->fit);
		absorb_next(slab, n);
	}
	frag_tree_insert(&s->free, &n->fit);
	s->used_count--;
}
