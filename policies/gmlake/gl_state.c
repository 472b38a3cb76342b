/* SPDX-License-Identifier: Apache-2.0 */
/* What segments, their pieces and the blocks stitched of them tell each other; see gl.h. */
#include "gl.h"

struct gl_piece *gl_piece_at(const struct gl_seg *seg, uint32_t page)
{
	while (!seg->at[page])
		page--;
	return seg->at[page];
}

void gl_busy(struct gl *g, struct gl_seg *seg, int change)
{
	uint32_t before = seg->busy;

	seg->busy += (uint32_t)change;
	if (!before && seg->busy)
		g->idle_bytes -= seg->bytes;
	if (before && !seg->busy)
		g->idle_bytes += seg->bytes;
}

void gl_free_insert(struct gl *g, struct gl_piece *p)
{
	struct gl_stream *t = &g->streams[p->seg->stream];

	frag_bset_insert(&t->large, p->bytes, p->addr, p);
	t->large_bytes += p->bytes;
}

void gl_free_erase(struct gl *g, struct gl_piece *p)
{
	struct gl_stream *t = &g->streams[p->seg->stream];

	frag_bset_erase(&t->large, p->bytes, p->addr);
	t->large_bytes -= p->bytes;
}

int gl_room(struct gl *g, size_t more)
{
	size_t n = frag_slab_live(&g->pieces) + g->stitches_count + more + 4;

	return frag_bset_nodes_reserve(&g->nodes, n) ?: frag_slab_reserve(&g->pieces, more);
}

/* ---- what the state of pages says about stitches ------------------------------------------ */

bool gl_stitch_is_free(const struct gl_stitch *s)
{
	return s->state == GL_INACTIVE && s->free_pages == s->pages;
}

static void count_pages(struct gl *g, struct gl_stitch *s, uint32_t pages, int sign)
{
	struct frag_bset *set = &g->streams[s->stream].stitches;
	bool before = gl_stitch_is_free(s);

	s->free_pages += (uint32_t)(sign * (int)pages);
	if (before && !gl_stitch_is_free(s))
		frag_bset_erase(set, s->bytes, s->addr);
	else if (!before && gl_stitch_is_free(s))
		frag_bset_insert(set, s->bytes, s->addr, s);
}

void gl_toggle(struct gl *g, struct gl_seg *seg, uint32_t from, uint32_t count, int sign)
{
	uint32_t to = from + count;
	struct gl_extent *e;

	for (e = seg->extents; e; e = e->next) {
		uint32_t lo = FRAG_MAX(from, e->from), hi = FRAG_MIN(to, e->from + e->count);

		if (lo < hi)
			count_pages(g, e->stitch, hi - lo, sign);
	}
}

void gl_stitch_state(struct gl *g, struct gl_stitch *s, enum gl_stitch_state state)
{
	struct frag_bset *set = &g->streams[s->stream].stitches;
	bool before = gl_stitch_is_free(s);

	s->state = state;
	if (before && !gl_stitch_is_free(s))
		frag_bset_erase(set, s->bytes, s->addr);
	else if (!before && gl_stitch_is_free(s))
		frag_bset_insert(set, s->bytes, s->addr, s);
}

/* ---- lists -------------------------------------------------------------------------------- */

void gl_link_extents(struct gl_stitch *s)
{
	uint32_t i;

	for (i = 0; i < s->extents_count; i++) {
		struct gl_extent *e = &s->extents[i];

		e->stitch = s;
		FRAG_LINK_FIRST(e->seg->extents, e);
	}
}

static void unlink_extents(struct gl_stitch *s)
{
	uint32_t i;

	for (i = 0; i < s->extents_count; i++)
		FRAG_UNLINK(s->extents[i].seg->extents, &s->extents[i]);
}

/* ---- dropping ----------------------------------------------------------------------------- */

int gl_stitch_drop(struct gl *g, struct gl_stitch *s, struct frag_err *err)
{
	gl_stitch_state(g, s, GL_DEAD);
	if (s->mapped)
		FRAG_TRY(frag_dev_unmap(g->env.dev, s->addr, s->mapped * GL_PAGE, err));
	s->mapped = 0;
	if (s->addr)
		FRAG_TRY(frag_dev_unreserve(g->env.dev, s->addr, s->bytes, err));
	unlink_extents(s);
	FRAG_QUEUE_REMOVE(&g->streams[s->stream], s);
	g->stitches_count--;
	g->stitched_bytes -= s->bytes;
	frag_host_free(s);
	return 0;
}
