/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold half of segheap.h: taking and giving back segments, walk, check.
 * The array of segments is sorted only when somebody walks it.
 */
#include "segheap.h"
#include "lib/grow.h"

#include <inttypes.h>
#include <stdlib.h>

void frag_heap_init(struct frag_heap *h, const struct frag_policy_env *env,
		    const struct frag_heap_index *index, void *ctx)
{
	*h = (struct frag_heap){
		.env = *env, .gives_back = true, .index = index, .index_ctx = ctx
	};
	frag_slab_init(&h->pieces, sizeof(struct frag_piece));
	frag_slab_init(&h->seg_slab, sizeof(struct frag_seg));
}

int frag_heap_create(const struct frag_policy_env *env, size_t bytes,
		     const struct frag_heap_index *index, const char *what, void **out,
		     struct frag_err *err)
{
	*out = frag_host_calloc(1, bytes);
	FRAG_CHECK_ALLOC(*out, what, err);
	frag_heap_init(*out, env, index, *out);
	return 0;
}

void frag_heap_release(struct frag_heap *h)
{
	size_t i;

	frag_heap_sort(h);
	for (i = 0; i < h->segs_count; i++) {
		struct frag_seg *seg = h->segs[i];

		/* a second try: a call that failed once should not leak the segment */
		if (frag_dev_free(h->env.dev, seg->addr, seg->bytes, NULL))
			frag_dev_free(h->env.dev, seg->addr, seg->bytes, NULL);
	}
	frag_host_free(h->segs);
	frag_slab_release(&h->pieces);
	frag_slab_release(&h->seg_slab);
	h->segs = NULL;
	h->segs_count = h->segs_cap = 0;
}

/* Room for one segment more, with its first piece. */
static int reserve_seg(struct frag_heap *h)
{
	if (FRAG_GROW(h->segs, h->segs_count, h->segs_cap, "segments", NULL) ||
	    frag_slab_reserve(&h->seg_slab, 1))
		return FRAG_ENOMEM;
	return frag_heap_reserve(h, 1);
}

static struct frag_piece *add_seg(struct frag_heap *h, frag_addr_t addr, uint64_t bytes,
				  uint32_t stream)
{
	struct frag_piece *p = frag_slab_alloc(&h->pieces);
	struct frag_seg *seg = frag_slab_alloc(&h->seg_slab);
	size_t n = h->segs_count++;

	*seg = (struct frag_seg){
		.addr = addr,
		.bytes = bytes,
		.first = p,
		.index = n,
		.stream = stream,
	};
	*p = (struct frag_piece){
		.addr = addr,
		.bytes = bytes,
		.seg = seg,
		.state = FRAG_STATE_FREE,
	};
	h->segs[n] = seg;
	if (n && h->segs[n - 1]->addr > addr)
		h->unsorted = true;
	h->pieces_count++;
	h->free_count++;
	h->free_bytes += bytes;
	frag_heap_idle_(h, seg, 1);
	return p;
}

int frag_heap_grow(struct frag_heap *h, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		   struct frag_err *err)
{
	frag_addr_t addr;

	if (frag_heap_over_limit(h, bytes))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve_seg(h), "segments of a policy", err);
	FRAG_TRY(frag_dev_alloc(h->env.dev, bytes, &addr, err));
	*out = add_seg(h, addr, bytes, stream);
	frag_env_journal(&h->env, FRAG_SEGMENT_ALLOC, addr, bytes, stream);
	return 0;
}

int frag_heap_drop(struct frag_heap *h, struct frag_seg *seg, struct frag_err *err)
{
	struct frag_piece *p = seg->first;
	size_t last = h->segs_count - 1;

	FRAG_ASSERT(frag_seg_is_idle(seg) && !p->next);
	FRAG_TRY(frag_dev_free(h->env.dev, seg->addr, seg->bytes, err));
	frag_env_journal(&h->env, FRAG_SEGMENT_FREE, seg->addr, seg->bytes, seg->stream);
	frag_heap_idle_(h, seg, -1);
	h->pieces_count--;
	h->free_count--;
	h->free_bytes -= seg->bytes;
	if (seg->index != last) {
		h->segs[seg->index] = h->segs[last];
		h->segs[seg->index]->index = seg->index;
		h->unsorted = true;
	}
	h->segs_count = last;
	frag_slab_free(&h->pieces, p);
	frag_slab_free(&h->seg_slab, seg);
	return 0;
}

int frag_heap_retire(struct frag_heap *h, struct frag_piece *p, struct frag_err *err)
{
	int rc = frag_heap_drop(h, p->seg, err);

	if (rc) {
		p->link[0] = h->left;
		h->left = p;
	}
	return rc;
}

static int retire_left(struct frag_heap *h, struct frag_err *err)
{
	while (h->left) {
		struct frag_piece *p = h->left;

		h->left = p->link[0];
		FRAG_TRY(frag_heap_retire(h, p, err));
	}
	return 0;
}

void frag_heap_keep(struct frag_heap *h, struct frag_seg *seg)
{
	FRAG_ASSERT(frag_seg_is_idle(seg) && !seg->kept);
	frag_heap_idle_(h, seg, -1);
	seg->kept = true;
}

FRAG_COMPARE(by_addr, struct frag_seg *, FRAG_ORDER((*x)->addr, (*y)->addr))

void frag_heap_sort(struct frag_heap *h)
{
	size_t i;

	if (!h->unsorted)
		return;
	qsort(h->segs, h->segs_count, sizeof(h->segs[0]), by_addr);
	for (i = 0; i < h->segs_count; i++)
		h->segs[i]->index = i;
	h->unsorted = false;
}

/* The idle segments as a chain in address order; dropping one moves others in the array. */
static struct frag_seg *idle_chain(struct frag_heap *h)
{
	struct frag_seg *first = NULL, **last = &first;
	size_t i;

	frag_heap_sort(h);
	for (i = 0; i < h->segs_count; i++) {
		struct frag_seg *seg = h->segs[i];

		if (!frag_seg_is_idle(seg) || seg->kept)
			continue;
		*last = seg;
		last = &seg->chain;
	}
	*last = NULL;
	return first;
}

int frag_heap_drop_idle(struct frag_heap *h, struct frag_err *err)
{
	struct frag_seg *seg, *next;
	struct frag_piece *p;
	int rc;

	if (!h->index)
		return retire_left(h, err);
	if (!h->idle_count)
		return 0;
	for (seg = idle_chain(h); seg; seg = next) {
		next = seg->chain;
		for (p = seg->first; p; p = p->next)
			h->index->cut(h->index_ctx, p);
		while (seg->first->next)
			frag_heap_join(h, seg->first);
		rc = frag_heap_drop(h, seg, err);
		if (rc) {
			h->index->put(h->index_ctx, seg->first);
			return rc;
		}
	}
	return 0;
}

static int grow(struct frag_heap *h, const struct frag_heap_growth *g, struct frag_piece **out,
		struct frag_err *err)
{
	int rc = frag_heap_grow(h, g->usual, g->stream, out, err);

	if (rc == FRAG_OOM && g->least < g->usual)
		rc = frag_heap_grow(h, g->least, g->stream, out, err);
	if (!rc)
		h->index->put(h->index_ctx, *out);
	return rc;
}

int frag_heap_make_room(struct frag_heap *h, const struct frag_heap_growth *g,
			struct frag_piece **out, uint8_t *cls, struct frag_err *err)
{
	int rc = grow(h, g, out, err);

	*cls = FRAG_CLASS_GROW;
	if (rc != FRAG_OOM)
		return rc;
	*cls = FRAG_CLASS_RELEASE;
	if (h->env.sync) {
		h->env.sync(h->env.sync_ctx);
		*out = g->find(h->index_ctx, g->bytes);
		if (*out)
			return 0;
	}
	if (!h->idle_count)
		return FRAG_OOM;
	FRAG_TRY(frag_heap_drop_idle(h, err));
	return grow(h, g, out, err);
}

void frag_heap_op_destroy(void *self)
{
	frag_heap_release(self);
	frag_host_free(self);
}

int frag_heap_op_trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	return frag_heap_drop_idle(self, err);
}

void frag_heap_op_free_requested(void *self, const struct frag_block *block)
{
	frag_heap_wait(self, frag_piece_of(block));
}

void frag_heap_visit_seg(const struct frag_heap *h, const struct frag_seg *seg,
			 const struct frag_visitor *v)
{
	if (v->segment)
		v->segment(v->ctx, seg->addr, seg->bytes, seg->stream);
	if (v->block)
		frag_pieces_visit(seg->first, v,
				  h->gives_back && frag_seg_is_idle(seg) && !seg->kept);
}

void frag_heap_op_visit(void *self, const struct frag_visitor *v)
{
	struct frag_heap *h = self;

	frag_heap_sort(h);
	for (size_t i = 0; i < h->segs_count; i++)
		frag_heap_visit_seg(h, h->segs[i], v);
}

void frag_heap_op_usage(void *self, struct frag_usage *out)
{
	frag_heap_usage(self, 0, out);
}

void frag_heap_usage(const struct frag_heap *h, uint64_t largest_free_bytes, struct frag_usage *out)
{
	uint64_t releasable = h->gives_back ? h->idle_bytes : 0;

	*out = (struct frag_usage){
		.allocated_bytes = h->live_bytes,
		.waiting_bytes = h->waiting_bytes,
		.non_releasable_bytes = h->free_bytes - releasable,
		.releasable_bytes = releasable,
		.largest_free_bytes = largest_free_bytes,
		.free_bytes = h->free_bytes,
		.segments_count = h->segs_count,
		.blocks_count = h->pieces_count,
	};
}

int frag_heap_check(const struct frag_heap *h, size_t indexed,
		    bool (*index)(void *ctx, const struct frag_piece *p), void *ctx,
		    struct frag_err *err)
{
	size_t count = 0;

	for (const struct frag_piece *p = h->left; p; p = p->link[0])
		indexed++;
	for (size_t i = 0; i < h->segs_count; i++)
		for (const struct frag_piece *p = h->segs[i]->first; p; p = p->next) {
			if (!frag_piece_is_free(p))
				continue;
			if (index && !index(ctx, p))
				return frag_fail(err, FRAG_ECHECK,
						 "free piece at 0x%" PRIx64 " not in its index",
						 p->addr);
			count++;
		}
	return count == indexed
		       ? 0
		       : frag_fail(err, FRAG_ECHECK, "%zu free blocks are listed, %zu exist",
				   indexed, count);
}
