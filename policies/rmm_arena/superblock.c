/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting and joining of superblocks and spans; whose they are is the policy's affair. */
#include "superblock.h"

#include "lib/links.h"

void ra_heap_init(struct ra_heap *h)
{
	*h = (struct ra_heap){ 0 };
	frag_slab_init(&h->spans, sizeof(struct frag_span));
	frag_slab_init(&h->supers, sizeof(struct ra_super));
}

void ra_heap_release(struct ra_heap *h)
{
	frag_slab_release(&h->spans);
	frag_slab_release(&h->supers);
}

int ra_heap_room(struct ra_heap *h, struct frag_err *err)
{
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&h->spans, 2) && !frag_slab_reserve(&h->supers, 1),
			 "rmm-arena: superblocks", err);
	return 0;
}

/* An empty superblock behind `prev`, in the global arena. pre: room. */
static struct ra_super *super_new(struct ra_heap *h, struct ra_super *prev, frag_addr_t addr,
				  uint64_t bytes)
{
	struct ra_super *s = frag_slab_alloc(&h->supers);

	*s = (struct ra_super){ .fit = { .key = addr, .weight = bytes },
				.bytes = bytes,
				.owner = &h->global };
	if (prev)
		FRAG_LINK_AFTER(prev, s);
	else
		h->first = s;
	frag_spans_begin(&h->spans, &s->spans, s, addr, bytes);
	frag_tree_insert(&h->global.supers, &s->fit);
	return s;
}

int ra_heap_start(struct ra_heap *h, frag_addr_t addr, uint64_t bytes, struct frag_err *err)
{
	FRAG_TRY(ra_heap_room(h, err));
	super_new(h, NULL, addr, bytes);
	return 0;
}

/* The largest free span has changed. */
static void super_refresh(struct ra_super *s)
{
	uint64_t largest = frag_tree_max(&s->spans.free);

	if (largest != s->fit.weight)
		frag_tree_update(&s->owner->supers, &s->fit, s->fit.key, largest);
}

struct ra_super *ra_heap_fit(struct ra_heap *h, uint64_t size)
{
	struct ra_super *s = (struct ra_super *)frag_tree_first_fit(&h->global.supers, size);
	uint64_t head = FRAG_MAX(size, RA_SUPERBLOCK_MIN), bytes;

	if (!s || !ra_super_is_empty(s) || s->bytes < head + RA_SUPERBLOCK_MIN)
		return s;
	bytes = s->bytes;
	s->bytes = head;
	frag_tree_update(&s->spans.free, &s->spans.first->fit, s->fit.key, head);
	super_refresh(s);
	super_new(h, s, s->fit.key + head, bytes - head);
	return s;
}

void ra_super_move(struct ra_super *s, struct ra_arena *to)
{
	frag_tree_remove(&s->owner->supers, &s->fit);
	s->owner = to;
	frag_tree_insert(&to->supers, &s->fit);
}

struct frag_span *ra_super_take(struct ra_heap *h, struct ra_super *s, uint64_t size)
{
	struct frag_span *n = frag_spans_take(&h->spans, &s->spans, size);

	FRAG_ASSERT(n);
	super_refresh(s);
	return n;
}

void ra_super_give(struct ra_heap *h, struct frag_span *n)
{
	struct ra_super *s = n->owner;

	frag_spans_give(&h->spans, &s->spans, n);
	super_refresh(s);
}

static bool joins(const struct ra_heap *h, const struct ra_super *s)
{
	return s && s->owner == &h->global && ra_super_is_empty(s);
}

/* Two empty neighbours become one. */
static void join_next(struct ra_heap *h, struct ra_super *s)
{
	struct ra_super *gone = s->next;

	frag_tree_remove(&h->global.supers, &gone->fit);
	s->bytes += gone->bytes;
	FRAG_UNLINK_NEXT(s);
	frag_tree_update(&s->spans.free, &s->spans.first->fit, s->fit.key, s->bytes);
	frag_slab_free(&h->spans, gone->spans.first);
	frag_slab_free(&h->supers, gone);
	super_refresh(s);
}

void ra_heap_coalesce(struct ra_heap *h, struct ra_super *s)
{
	if (!ra_super_is_empty(s))
		return;
	if (joins(h, s->next))
		join_next(h, s);
	if (joins(h, s->prev))
		join_next(h, s->prev);
}

/* ---- check ------------------------------------------------------------------------ */

int ra_heap_check(const struct ra_heap *h, struct frag_err *err)
{
	for (const struct ra_super *s = h->first; s; s = s->next) {
		size_t used = 0, listed = 0;

		for (const struct frag_span *n = s->spans.first; n; n = n->next) {
			used += n->state != FRAG_STATE_FREE;
			listed += n->state == FRAG_STATE_FREE;
		}
		if (used != s->spans.used_count || listed != s->spans.free.count ||
		    s->fit.weight != frag_tree_max(&s->spans.free) ||
		    (joins(h, s) && joins(h, s->next)))
			return frag_fail(err, FRAG_ECHECK,
					 "superblock 0x%llx differs from its spans",
					 (unsigned long long)s->fit.key);
	}
	return 0;
}
