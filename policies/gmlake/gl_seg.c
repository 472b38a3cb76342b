/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of `gmlake` and their pieces, see gl.h. */
#include "gl.h"
#include "environment.h"

/* ---- pieces ------------------------------------------------------------------------------- */

struct gl_piece *gl_split(struct gl *g, struct gl_piece *p, uint64_t bytes)
{
	struct gl_piece *rest = frag_slab_alloc(&g->pieces);

	*rest = (struct gl_piece){
		.addr = p->addr + bytes,
		.bytes = p->bytes - bytes,
		.seg = p->seg,
		.event = p->event,
		.state = FRAG_STATE_FREE,
	};
	FRAG_LINK_AFTER(p, rest);
	p->bytes = bytes;
	p->seg->at[gl_page_of(rest)] = rest;
	return rest;
}

static void join(struct gl *g, struct gl_piece *p)
{
	struct gl_piece *q = p->next;

	p->seg->at[gl_page_of(q)] = NULL;
	p->bytes += q->bytes;
	FRAG_UNLINK_NEXT(p);
	if (q->event.number > p->event.number)
		p->event = q->event;
	frag_slab_free(&g->pieces, q);
}

void gl_use(struct gl *g, struct gl_piece *p, struct gl_stitch *owner)
{
	p->state = FRAG_STATE_LIVE;
	p->owner = owner;
	gl_busy(g, p->seg, 1);
	if (FRAG_UNLIKELY(p->seg->extents != NULL))
		gl_toggle(g, p->seg, gl_page_of(p), (uint32_t)(p->bytes / GL_PAGE), -1);
}

void gl_unuse(struct gl *g, struct gl_piece *p)
{
	struct gl_piece *q = p->next;

	p->state = FRAG_STATE_FREE;
	p->owner = NULL;
	gl_busy(g, p->seg, -1);
	if (FRAG_UNLIKELY(p->seg->extents != NULL))
		gl_toggle(g, p->seg, gl_page_of(p), (uint32_t)(p->bytes / GL_PAGE), 1);
	if (!g->paper && q && q->state == FRAG_STATE_FREE) {
		gl_free_erase(g, q);
		join(g, p);
	}
	q = p->prev;
	if (!g->paper && q && q->state == FRAG_STATE_FREE) {
		gl_free_erase(g, q);
		join(g, q);
		p = q;
	}
	gl_free_insert(g, p);
}

/* ---- segments ----------------------------------------------------------------------------- */

/* Takes a segment apart. After a failure, the next call goes on from there. Frees `seg`. */
static int dismantle(struct gl *g, struct gl_seg *seg, struct frag_err *err)
{
	struct frag_device *dev = g->env.dev;

	if (seg->mapped)
		FRAG_TRY(frag_dev_unmap(dev, seg->addr, seg->mapped * GL_PAGE, err));
	seg->mapped = 0;
	for (; seg->created; seg->created--)
		FRAG_TRY(frag_dev_release(dev, seg->handles[seg->created - 1], GL_PAGE, err));
	if (seg->addr)
		FRAG_TRY(frag_dev_unreserve(dev, seg->addr, seg->bytes, err));
	frag_host_free(seg);
	return 0;
}

/* Counts the memory of a segment that is going. */
static void count_going(struct gl *g, const struct gl_seg *seg, int sign)
{
	if (!seg->created)
		return;
	g->segs_count += (size_t)sign;
	g->going_count += (uint64_t)sign;
	g->going_bytes += (uint64_t)sign * seg->created * GL_PAGE;
}

/* Gives back a segment that is not among the others, now or, if the driver fails, later. */
static int send_off(struct gl *g, struct gl_seg *seg, struct frag_err *err)
{
	int rc = dismantle(g, seg, err);

	if (rc) {
		count_going(g, seg, 1);
		frag_bset_insert(&g->segs, seg->addr, 0, seg);
	}
	return rc;
}

static struct gl_seg *seg_alloc(uint32_t stream, uint64_t bytes)
{
	size_t pages = (size_t)(bytes / GL_PAGE);
	struct gl_seg *seg = frag_host_calloc(1, sizeof(*seg) + 2 * pages * 8);

	if (!seg)
		return NULL;
	seg->bytes = bytes;
	seg->pages = (uint32_t)pages;
	seg->stream = stream;
	seg->at = (struct gl_piece **)(seg->handles + pages);
	return seg;
}

/* Creates and maps the pages, each on its own, as GMLake does. */
static int fill(struct gl *g, struct gl_seg *seg, struct frag_err *err)
{
	struct frag_device *dev = g->env.dev;
	uint32_t i;

	for (; seg->created < seg->pages; seg->created++)
		FRAG_TRY(frag_dev_create(dev, GL_PAGE, &seg->handles[seg->created], err));
	for (i = 0; i < seg->pages; i++) {
		frag_addr_t at = seg->addr + i * GL_PAGE;

		FRAG_TRY(frag_dev_map(dev, at, GL_PAGE, seg->handles[i], err));
		seg->mapped++;
		FRAG_TRY(frag_dev_set_access(dev, at, GL_PAGE, err));
	}
	return 0;
}

static int room_for_seg(struct gl *g)
{
	return frag_bset_reserve(&g->segs, frag_bset_count(&g->segs) + 1) ?: gl_room(g, 2);
}

static struct gl_piece *add_seg(struct gl *g, struct gl_seg *seg)
{
	struct gl_piece *p = frag_slab_alloc(&g->pieces);

	*p = (struct gl_piece){
		.addr = seg->addr, .bytes = seg->bytes, .seg = seg, .state = FRAG_STATE_FREE
	};
	seg->first = p;
	seg->at[0] = p;
	frag_bset_insert(&g->segs, seg->addr, 0, seg);
	g->segs_count++;
	g->large_bytes += seg->bytes;
	g->idle_bytes += seg->bytes;
	frag_env_journal(&g->env, FRAG_SEGMENT_ALLOC, seg->addr, seg->bytes, seg->stream);
	return p;
}

/*
 * GMLake creates the pages first; here address space comes first, so that what a failure
 * leaves half done has its place.
 */
int gl_seg_new(struct gl *g, uint32_t stream, uint64_t bytes, struct gl_piece **out, bool *no_space,
	       struct frag_err *err)
{
	struct gl_seg *seg;
	int rc;

	*no_space = false;
	if (bytes > g->env.device_total_bytes || frag_env_over_limit(&g->env, bytes))
		return FRAG_OOM;
	seg = room_for_seg(g) ? NULL : seg_alloc(stream, bytes);
	FRAG_CHECK_ALLOC(seg, "segments of gmlake", err);
	rc = frag_dev_reserve(g->env.dev, bytes, 0, &seg->addr, err);
	*no_space = rc == FRAG_OOM;
	if (!rc)
		rc = fill(g, seg, err);
	if (rc) {
		int undone = send_off(g, seg, rc == FRAG_OOM ? err : NULL);

		return rc == FRAG_OOM && undone ? undone : rc;
	}
	*out = add_seg(g, seg);
	return 0;
}

/* Gives an idle segment back, and with it every stitch over it. */
static int seg_drop(struct gl *g, struct gl_seg *seg, struct frag_err *err)
{
	struct gl_piece *p, *next;

	FRAG_ASSERT(!seg->busy);
	while (seg->extents)
		FRAG_TRY(gl_stitch_drop(g, seg->extents->stitch, err));
	if (seg->mapped)
		FRAG_TRY(frag_dev_unmap(g->env.dev, seg->addr, seg->bytes, err));
	seg->mapped = 0;
	frag_env_journal(&g->env, FRAG_SEGMENT_FREE, seg->addr, seg->bytes, seg->stream);
	for (p = seg->first; p; p = next) {
		next = p->next;
		gl_free_erase(g, p);
		frag_slab_free(&g->pieces, p);
	}
	seg->first = NULL;
	g->large_bytes -= seg->bytes;
	g->idle_bytes -= seg->bytes;
	g->segs_count--;
	frag_bset_erase(&g->segs, seg->addr, 0);
	return send_off(g, seg, err);
}

int gl_release_idle(struct gl *g, struct frag_err *err)
{
	struct gl_seg *seg, *next;

	for (seg = gl_seg_from(g, 0); seg && (g->idle_bytes || g->going_count); seg = next) {
		next = gl_seg_next(g, seg);
		if (!seg->first) {
			count_going(g, seg, -1);
			frag_bset_erase(&g->segs, seg->addr, 0);
			FRAG_TRY(send_off(g, seg, err));
		} else if (!seg->busy) {
			FRAG_TRY(seg_drop(g, seg, err));
		}
	}
	return 0;
}

int gl_release_all(struct gl *g, struct frag_err *err)
{
	if (g->env.sync)
		g->env.sync(g->env.sync_ctx);
	FRAG_TRY(gl_release_idle(g, err));
	return frag_heap_drop_idle(&g->small.heap, err);
}

/* At the end: gives everything back; a call that fails is tried once more. pre: no stitches. */
void gl_drop_segs(struct gl *g)
{
	struct gl_seg *seg, *next;

	for (seg = gl_seg_from(g, 0); seg; seg = next) {
		next = gl_seg_next(g, seg);
		if (dismantle(g, seg, NULL) && dismantle(g, seg, NULL))
			frag_host_free(seg);
	}
	frag_bset_release(&g->segs);
}
