/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `gmlake`: visit, check, usage. */
#include "gl.h"

static enum frag_block_state state_of(const struct gl_piece *p)
{
	if (p->owner)
		return p->owner->state == GL_WAITING ? FRAG_STATE_WAITING : FRAG_STATE_LIVE;
	return p->state;
}

static void visit_large(const struct gl_seg *seg, const struct frag_visitor *v)
{
	const struct gl_piece *p = seg->first;
	/* the driver failed to take the rest of one that is going */
	uint64_t bytes = p ? seg->bytes : seg->created * GL_PAGE;

	if (v->segment && bytes)
		v->segment(v->ctx, seg->addr, bytes, seg->stream);
	if (v->block && bytes && !p)
		v->block(v->ctx, seg->addr, bytes, FRAG_STATE_FREE, bytes);
	for (; v->block && p; p = p->next)
		v->block(v->ctx, p->addr, p->bytes, state_of(p), seg->busy ? 0 : p->bytes);
}

void gl_visit(void *self, const struct frag_visitor *v)
{
	struct gl *g = self;
	const struct frag_heap *small = &g->small.heap;
	const struct gl_seg *seg = gl_seg_from(g, 0);
	size_t k = 0;

	frag_heap_sort(&g->small.heap);
	while (seg || k < small->segs_count) {
		if (seg && (k == small->segs_count || seg->addr < small->segs[k]->addr)) {
			visit_large(seg, v);
			seg = gl_seg_next(g, seg);
		} else {
			frag_heap_visit_seg(small, small->segs[k++], v);
		}
	}
}

void gl_usage(void *self, struct frag_usage *out)
{
	const struct gl *g = self;
	const struct frag_heap *small = &g->small.heap;
	uint64_t largest = frag_best_largest(&g->small);

	for (uint32_t i = 0; i < g->streams_count; i++)
		largest = FRAG_MAX(largest, frag_bset_largest(&g->streams[i].large));
	*out = (struct frag_usage){
		.allocated_bytes = small->live_bytes + g->live_bytes,
		.waiting_bytes = small->waiting_bytes + g->waiting_bytes,
		.free_bytes = small->free_bytes + g->large_bytes - g->live_bytes -
			      g->waiting_bytes + g->going_bytes,
		.releasable_bytes = small->idle_bytes + g->idle_bytes + g->going_bytes,
		.largest_free_bytes = largest,
		.segments_count = small->segs_count + g->segs_count,
		.blocks_count = small->pieces_count + frag_slab_live(&g->pieces) + g->going_count,
	};
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
}

/* ---- check -------------------------------------------------------------------------------- */

/* Pages of a stitch that are free; its first ones in use must be its own: else UINT32_MAX. */
static uint32_t free_pages(const struct gl_stitch *s)
{
	uint32_t left = s->used_pages, n = 0;

	for (uint32_t i = 0; i < s->extents_count; i++)
		for (uint32_t k = 0; k<s->extents[i].count; k++, left -= left> 0) {
			const struct gl_piece *p =
				gl_piece_at(s->extents[i].seg, s->extents[i].from + k);

			if (left && p->owner != s)
				return UINT32_MAX;
			n += p->state == FRAG_STATE_FREE;
		}
	return n;
}

static const char *check_stitch(const struct gl *g, const struct gl_stitch *s)
{
	if (free_pages(s) != s->free_pages)
		return "free pages of a stitch miscounted, or used by another block";
	if (s->state != GL_DEAD && s->mapped != s->pages)
		return "stitch is not mapped throughout";
	if (frag_bset_has(&g->streams[s->stream].stitches, s->bytes, s->addr, s) !=
	    gl_stitch_is_free(s))
		return "set of free stitches wrong";
	return NULL;
}

static const char *check_seg(const struct gl *g, const struct gl_seg *seg, size_t *free_pieces)
{
	const char *bad = NULL;
	uint32_t busy = 0;

	for (const struct gl_piece *p = seg->first; p && !bad; p = p->next) {
		bool is_free = p->state == FRAG_STATE_FREE;

		busy += !is_free;
		*free_pieces += is_free;
		if (gl_piece_at(seg, gl_page_of(p) + (uint32_t)(p->bytes / GL_PAGE) - 1) != p)
			bad = "table of pieces wrong";
		else if (is_free && (p->owner || !frag_bset_has(&g->streams[seg->stream].large,
								p->bytes, p->addr, p)))
			bad = "free piece is not in its set";
		else if (is_free && !g->paper && p->next && p->next->state == FRAG_STATE_FREE)
			bad = "free neighbours";
	}
	for (const struct gl_extent *e = seg->extents; e && !bad; e = e->next) {
		busy += e->stitch->state == GL_LIVE || e->stitch->state == GL_WAITING;
		bad = e == &e->stitch->extents[0] ? check_stitch(g, e->stitch) : NULL;
	}
	return bad || busy == seg->busy ? bad : "use of a segment miscounted";
}

int gl_check(void *self, struct frag_err *err)
{
	struct gl *g = self;
	size_t large = 0, free_pieces = 0;
	const char *bad = NULL;

	for (const struct gl_seg *seg = gl_seg_from(g, 0); seg && !bad; seg = gl_seg_next(g, seg))
		bad = check_seg(g, seg, &free_pieces);
	for (uint32_t i = 0; i < g->streams_count; i++)
		large += frag_bset_count(&g->streams[i].large);
	if (!bad && large != free_pieces)
		bad = "a set has too much in it";
	if (bad)
		return frag_fail(err, FRAG_ECHECK, "gmlake: %s", bad);
	return frag_best_op_check(&g->small, err);
}
