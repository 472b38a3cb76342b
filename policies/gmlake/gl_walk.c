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
	const struct gl_piece *p;

	if (v->segment)
		v->segment(v->ctx, seg->addr, seg->bytes, seg->stream);
	for (p = seg->first; v->block && p; p = p->next)
		v->block(v->ctx, p->addr, p->bytes, state_of(p), seg->busy ? 0 : p->bytes);
}

static void visit_small(const struct frag_seg *seg, const struct frag_visitor *v)
{
	if (v->segment)
		v->segment(v->ctx, seg->addr, seg->bytes, seg->stream);
	if (v->block)
		frag_pieces_visit(seg->first, v, frag_seg_is_idle(seg));
}

/* The rest of a segment that the driver failed to take back. */
static void visit_going(const struct gl_seg *seg, const struct frag_visitor *v)
{
	uint64_t bytes = seg->created * GL_PAGE;

	if (v->segment)
		v->segment(v->ctx, seg->addr, bytes, seg->stream);
	if (v->block)
		v->block(v->ctx, seg->addr, bytes, FRAG_STATE_FREE, bytes);
}

static const struct gl_seg *going_after(const struct gl *g, frag_addr_t addr)
{
	const struct gl_seg *best = NULL, *seg;

	for (seg = g->going; seg; seg = seg->chain)
		if (seg->created && seg->addr > addr && (!best || seg->addr < best->addr))
			best = seg;
	return best;
}

/* Three ordered sequences become one. */
void gl_visit(void *self, const struct frag_visitor *v)
{
	struct gl *g = self;
	const struct gl_seg *going = going_after(g, 0);
	size_t i = 0, k = 0;

	gl_sort(g);
	frag_heap_sort(&g->small);
	for (;;) {
		frag_addr_t a = i < g->segs_count ? g->segs[i]->addr : UINT64_MAX;
		frag_addr_t b = k < g->small.segs_count ? g->small.segs[k]->addr : UINT64_MAX;
		frag_addr_t c = going ? going->addr : UINT64_MAX;

		if (FRAG_MIN(a, FRAG_MIN(b, c)) == UINT64_MAX)
			return;
		if (a < b && a < c) {
			visit_large(g->segs[i++], v);
		} else if (b < c) {
			visit_small(g->small.segs[k++], v);
		} else {
			visit_going(going, v);
			going = going_after(g, c);
		}
	}
}

void gl_usage(void *self, struct frag_usage *out)
{
	const struct gl *g = self;
	uint32_t i;

	*out = (struct frag_usage){
		.allocated_bytes = g->small.live_bytes + g->live_bytes,
		.waiting_bytes = g->small.waiting_bytes + g->waiting_bytes,
		.free_bytes = g->small.free_bytes + g->large_bytes - g->live_bytes -
			      g->waiting_bytes + g->going_bytes,
		.releasable_bytes = g->small.idle_bytes + g->idle_bytes + g->going_bytes,
		.segments_count = g->small.segs_count + g->segs_count + g->going_count,
		.blocks_count = g->small.pieces_count + frag_slab_live(&g->pieces) + g->going_count,
	};
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
	for (i = 0; i < g->streams_count; i++) {
		uint64_t most = FRAG_MAX(frag_bset_largest(&g->streams[i].small),
					 frag_bset_largest(&g->streams[i].large));

		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, most);
	}
}

/* ---- check -------------------------------------------------------------------------------- */

struct tally {
	uint64_t live, waiting, idle, bytes, stitched;
	uint64_t owned_pages, used_pages; /* of pieces with an owner; of stitches */
	size_t pieces, free_pieces, stitches;
};

static const char *check_piece(const struct gl *g, const struct gl_piece *p, struct tally *t)
{
	const struct gl_seg *seg = p->seg;
	uint32_t i = gl_page_of(p);

	if (!p->bytes || (p->addr | p->bytes) % GL_PAGE)
		return "piece is not whole pages";
	if (seg->at[i] != p || gl_piece_at(seg, i + (uint32_t)(p->bytes / GL_PAGE) - 1) != p)
		return "table of pieces wrong";
	t->pieces++;
	if (p->state != FRAG_STATE_FREE) {
		*(state_of(p) == FRAG_STATE_WAITING ? &t->waiting : &t->live) += p->bytes;
		t->owned_pages += p->owner ? p->bytes / GL_PAGE : 0;
		return NULL;
	}
	t->free_pieces++;
	if (p->owner)
		return "free piece has an owner";
	if (!g->paper && p->next && p->next->state == FRAG_STATE_FREE)
		return "free neighbours";
	if (!frag_bset_has(&g->streams[seg->stream].large, p->bytes, p->addr, p))
		return "free piece is not in its set";
	return NULL;
}

/* Pages of an extent that are free. */
static uint32_t free_pages(const struct gl_extent *e)
{
	uint32_t at = e->from, to = e->from + e->count, n = 0;

	while (at < to) {
		const struct gl_piece *p = gl_piece_at(e->seg, at);
		uint32_t end = FRAG_MIN(to, gl_page_of(p) + (uint32_t)(p->bytes / GL_PAGE));

		if (p->state == FRAG_STATE_FREE)
			n += end - at;
		at = end;
	}
	return n;
}

/* Do the first pages of a stitch belong to it alone? */
static bool owns_its_pages(const struct gl_stitch *s)
{
	uint32_t left = s->used_pages, i, k;

	for (i = 0; i < s->extents_count; i++)
		for (k = 0; k < s->extents[i].count && left; k++, left--)
			if (gl_piece_at(s->extents[i].seg, s->extents[i].from + k)->owner != s)
				return false;
	return !left;
}

static const char *check_stitch(const struct gl *g, const struct gl_stitch *s, struct tally *t)
{
	uint32_t n = 0, pages = 0, i;
	bool free_one;

	for (i = 0; i < s->extents_count; i++) {
		n += free_pages(&s->extents[i]);
		pages += s->extents[i].count;
	}
	t->stitches++;
	t->stitched += s->bytes;
	t->used_pages += s->used_pages;
	if (!owns_its_pages(s))
		return "page of a stitch belongs to another block";
	if (pages != s->pages || s->bytes != pages * GL_PAGE)
		return "extents do not cover their stitch";
	if (n != s->free_pages)
		return "free pages of a stitch miscounted";
	if (s->state != GL_DEAD && s->mapped != s->pages)
		return "stitch is not mapped throughout";
	if (s->used_pages && s->state != GL_LIVE && s->state != GL_WAITING)
		return "inactive stitch has pages in use";
	free_one = s->state == GL_INACTIVE && n == s->pages;
	if (frag_bset_has(&g->streams[s->stream].stitches, s->bytes, s->addr, s) != free_one)
		return "set of free stitches wrong";
	return NULL;
}

static const char *check_seg(const struct gl *g, const struct gl_seg *seg, struct tally *t)
{
	const struct gl_piece *p, *prev = NULL;
	const struct gl_extent *e;
	frag_addr_t at = seg->addr;
	uint32_t busy = 0;
	const char *bad = NULL;

	for (p = seg->first; p && !bad; prev = p, p = p->next) {
		if (p->addr != at || p->prev != prev || p->seg != seg)
			return "chain of pieces broken";
		at += p->bytes;
		busy += p->state != FRAG_STATE_FREE;
		bad = check_piece(g, p, t);
	}
	if (bad || at != seg->addr + seg->bytes)
		return bad ? bad : "pieces do not cover their segment";
	for (e = seg->extents; e && !bad; e = e->next) {
		if (e->seg != seg || e->from + e->count > seg->pages ||
		    (e->next && e->next->prev != e))
			return "chain of extents broken";
		busy += e->stitch->state == GL_LIVE || e->stitch->state == GL_WAITING;
		if (e == &e->stitch->extents[0])
			bad = check_stitch(g, e->stitch, t);
	}
	if (!bad && busy != seg->busy)
		bad = "use of a segment miscounted";
	t->bytes += seg->bytes;
	t->idle += busy ? 0 : seg->bytes;
	return bad;
}

static const char *check_streams(const struct gl *g, const struct tally *t)
{
	size_t small = 0, large = 0;
	uint32_t i;

	for (i = 0; i < g->streams_count; i++) {
		const struct gl_stream *s = &g->streams[i];
		const struct gl_stitch *o, *older = NULL;
		const char *bad = frag_bset_broken(&s->small);

		bad = bad ? bad : frag_bset_broken(&s->large);
		bad = bad ? bad : frag_bset_broken(&s->stitches);
		if (bad)
			return bad;
		small += frag_bset_count(&s->small);
		large += frag_bset_count(&s->large);
		for (o = s->oldest; o; older = o, o = o->newer)
			if (o->older != older || o->state < GL_INACTIVE || o->stream != i)
				return "list of inactive stitches broken";
		if (s->newest != older)
			return "list of inactive stitches has the wrong end";
	}
	if (small != g->small.free_count || large != t->free_pieces)
		return "a set has too much in it";
	return NULL;
}

static bool small_indexed(void *ctx, const struct frag_piece *p)
{
	const struct gl *g = ctx;

	return !frag_piece_free_next(p) &&
	       frag_bset_has(&g->streams[p->seg->stream].small, p->bytes, p->addr, p);
}

int gl_check(void *self, struct frag_err *err)
{
	struct gl *g = self;
	struct tally t = { 0 };
	const char *bad = NULL;
	size_t i;

	for (i = 0; i < g->segs_count && !bad; i++)
		bad = check_seg(g, g->segs[i], &t);
	if (!bad)
		bad = check_streams(g, &t);
	if (!bad && (t.owned_pages != t.used_pages || t.live != g->live_bytes ||
		     t.waiting != g->waiting_bytes || t.bytes != g->large_bytes ||
		     t.idle != g->idle_bytes || t.pieces != frag_slab_live(&g->pieces) ||
		     t.stitches != g->stitches_count || t.stitched != g->stitched_bytes))
		bad = "counters differ from the sums over the pieces";
	if (bad)
		return frag_fail(err, FRAG_ECHECK, "gmlake: %s", bad);
	return frag_heap_check(&g->small, g->small.free_count, small_indexed, g, err);
}
