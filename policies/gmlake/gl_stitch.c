/* SPDX-License-Identifier: Apache-2.0 */
/* Stitched blocks of `gmlake`, see gl.h. */
#include "gl.h"

static int is_done(struct gl *g, const struct gl_stitch *s, bool *done, struct frag_err *err)
{
	*done = true;
	if (!s->event.fence)
		return 0;
	return frag_dev_fence_done(g->env.dev, s->event.fence, g->params->lag_us * 1000, done, err);
}

/* Of one stream the free ones, or the others. */
static int collect_stream(struct gl *g, struct gl_stream *t, bool free_ones, uint64_t enough,
			  uint64_t *got, struct frag_err *err)
{
	struct gl_stitch *s, *newer;
	bool done;

	for (s = t->oldest; s; s = newer) {
		newer = s->newer;
		if (gl_stitch_is_free(s) != free_ones)
			continue;
		FRAG_TRY(is_done(g, s, &done, err));
		if (!done)
			return 0;
		*got += s->bytes;
		FRAG_TRY(gl_stitch_drop(g, s, err));
		if (*got >= enough)
			return 0;
	}
	return 0;
}

int gl_collect(struct gl *g, unsigned round, uint64_t need, struct frag_err *err)
{
	uint64_t got = 0, enough = round < 2 && need ? need << (2 * (round + 1)) : UINT64_MAX;
	uint32_t i;

	for (i = 0; i < g->streams_count; i++)
		FRAG_TRY(collect_stream(g, &g->streams[i], false, enough, &got, err));
	for (i = 0; round && i < g->streams_count; i++)
		FRAG_TRY(collect_stream(g, &g->streams[i], true, UINT64_MAX, &got, err));
	return 0;
}

int gl_stitch_trim(struct gl *g, struct frag_err *err)
{
	while (g->stitched_bytes > g->params->auto_gc) {
		struct gl_stitch *s = NULL;
		uint32_t i;

		for (i = 0; i < g->streams_count; i++) {
			struct gl_stitch *o = g->streams[i].oldest;

			if (o && (!s || o->event.number < s->event.number))
				s = o;
		}
		if (!s)
			return 0;
		FRAG_TRY(gl_stitch_drop(g, s, err));
	}
	return 0;
}

void gl_drop_stitches(struct gl *g)
{
	struct gl_extent *e;
	uint32_t i;

	/* active ones are in no list */
	for (const struct gl_seg *seg = gl_seg_from(g, 0); seg; seg = gl_seg_next(g, seg))
		for (e = seg->extents; e; e = e->next)
			if (e->stitch->state == GL_LIVE || e->stitch->state == GL_WAITING) {
				e->stitch->state = GL_DEAD;
				FRAG_QUEUE_ADD(&g->streams[e->stitch->stream], e->stitch);
			}
	for (i = 0; i < g->streams_count; i++) {
		struct gl_stitch *s;

		while ((s = g->streams[i].oldest) != NULL) {
			if (!gl_stitch_drop(g, s, NULL) || !gl_stitch_drop(g, s, NULL))
				continue;
			FRAG_QUEUE_REMOVE(&g->streams[s->stream], s);
			frag_host_free(s);
		}
	}
}

/* ---- making ------------------------------------------------------------------------------- */

static struct gl_stitch *stitch_alloc(uint32_t stream, uint64_t bytes, uint32_t extents)
{
	struct gl_stitch *s = frag_host_calloc(1, sizeof(*s) + extents * sizeof(s->extents[0]));

	if (!s)
		return NULL;
	s->bytes = bytes;
	s->pages = (uint32_t)(bytes / GL_PAGE);
	s->stream = stream;
	s->free_pages = s->pages;
	s->state = GL_DEAD;
	return s;
}

static void add_extent(struct gl_stitch *s, const struct gl_piece *p, uint64_t bytes)
{
	s->extents[s->extents_count++] = (struct gl_extent){
		.seg = p->seg,
		.from = gl_page_of(p),
		.count = (uint32_t)(bytes / GL_PAGE),
	};
	if (p->event.number > s->event.number)
		s->event = p->event;
}

/* Reserves and maps; up to three tries, with a collection of old stitches between them. */
static int map_all(struct gl *g, struct gl_stitch *s, struct frag_err *err)
{
	struct frag_device *dev = g->env.dev;
	unsigned round;
	uint32_t i, k;
	int rc = FRAG_OOM;

	for (round = 0; round < 3 && rc == FRAG_OOM; round++) {
		if (round)
			FRAG_TRY(gl_collect(g, round - 1, s->bytes, err));
		rc = frag_dev_reserve(dev, s->bytes, 0, &s->addr, err);
	}
	if (rc)
		return rc;
	for (i = 0; i < s->extents_count; i++) {
		const struct gl_extent *e = &s->extents[i];

		for (k = 0; k < e->count; k++) {
			frag_addr_t at = s->addr + s->mapped * GL_PAGE;

			FRAG_TRY(frag_dev_map(dev, at, GL_PAGE, e->seg->handles[e->from + k], err));
			s->mapped++;
			FRAG_TRY(frag_dev_set_access(dev, at, GL_PAGE, err));
		}
	}
	return 0;
}

/*
 * Maps a stitch whose extents are all free and makes it known: inactive, newest. Otherwise it
 * is gone, or, when the driver fails on that too, dead. 0 and *known, or an error.
 */
static int introduce(struct gl *g, struct gl_stitch *s, bool *known, struct frag_err *err)
{
	int rc = map_all(g, s, err), undone;

	gl_link_extents(s);
	FRAG_QUEUE_ADD(&g->streams[s->stream], s);
	g->stitches_count++;
	g->stitched_bytes += s->bytes;
	*known = !rc;
	if (rc) {
		undone = gl_stitch_drop(g, s, rc == FRAG_OOM ? err : NULL);
		return rc == FRAG_OOM ? undone : rc;
	}
	gl_stitch_state(g, s, GL_INACTIVE);
	g->made_stitches++;
	return 0;
}

/* Free pieces from the largest down, not below `least`: how many until `bytes`, and their sum. */
static uint32_t gather(const struct gl *g, uint32_t stream, uint64_t bytes, uint64_t least,
		       const struct gl_piece *extra, struct gl_stitch *into, uint64_t *sum)
{
	const struct frag_bset *large = &g->streams[stream].large;
	const struct frag_bset_node *at = frag_bset_last(large);
	uint32_t n = 0;

	for (*sum = 0; at && *sum < bytes && at->by.key >= least; at = frag_bset_prev(large, at)) {
		const struct gl_piece *p = at->value;

		if (p == extra)
			continue;
		if (into)
			add_extent(into, p, FRAG_MIN(p->bytes, bytes - *sum));
		*sum += p->bytes;
		n++;
	}
	return n;
}

uint64_t gl_stitch_sum(const struct gl *g, uint32_t stream, uint64_t least)
{
	uint64_t sum;

	if (!least)
		return g->streams[stream].large_bytes;
	gather(g, stream, UINT64_MAX, least, NULL, NULL, &sum);
	return sum;
}

int gl_stitch_make(struct gl *g, uint32_t stream, uint64_t bytes, uint64_t least,
		   struct gl_piece *extra, struct gl_stitch **out, struct frag_err *err)
{
	uint64_t sum;
	uint32_t n = gather(g, stream, bytes, least, extra, NULL, &sum);
	struct gl_stitch *s;
	bool known;

	*out = NULL;
	if (sum + (extra ? extra->bytes : 0) < bytes || n + (extra != NULL) < 2)
		return 0;
	s = gl_room(g, 2) ? NULL : stitch_alloc(stream, bytes, n + 1);
	FRAG_CHECK_ALLOC(s, "stitches of gmlake", err);
	gather(g, stream, bytes, least, extra, s, &sum);
	if (sum < bytes)
		add_extent(s, extra, bytes - sum);
	FRAG_TRY(introduce(g, s, &known, err));
	if (!known)
		return 0;
	FRAG_TRY(gl_stitch_take(g, s, s->pages, err));
	*out = s;
	return 0;
}

int gl_stitch_keep(struct gl *g, struct gl_piece *p, struct frag_err *err)
{
	struct gl_stitch *s = gl_room(g, 2) ? NULL : stitch_alloc(p->seg->stream, p->bytes, 1);
	bool known;

	FRAG_CHECK_ALLOC(s, "stitches of gmlake", err);
	add_extent(s, p, p->bytes);
	return introduce(g, s, &known, err);
}

/* ---- use ---------------------------------------------------------------------------------- */

/* Free pages of a segment come into use for a stitch; pieces are cut at the ends. */
static void claim(struct gl *g, struct gl_seg *seg, uint32_t from, uint32_t count,
		  struct gl_stitch *s)
{
	uint32_t to = from + count;

	while (from < to) {
		struct gl_piece *p = gl_piece_at(seg, from), *rest;
		uint32_t start = gl_page_of(p), pages;

		gl_free_erase(g, p);
		if (start < from) {
			rest = gl_split(g, p, (from - start) * GL_PAGE);
			gl_free_insert(g, p);
			p = rest;
		}
		pages = FRAG_MIN((uint32_t)(p->bytes / GL_PAGE), to - from);
		if (p->bytes > pages * GL_PAGE)
			gl_free_insert(g, gl_split(g, p, pages * GL_PAGE));
		gl_use(g, p, s);
		from += pages;
	}
}

int gl_stitch_take(struct gl *g, struct gl_stitch *s, uint32_t pages, struct frag_err *err)
{
	uint32_t left = pages, i;

	FRAG_CHECK_ALLOC(!gl_room(g, 2 * s->extents_count), "pieces of gmlake", err);
	gl_stitch_state(g, s, GL_LIVE);
	FRAG_QUEUE_REMOVE(&g->streams[s->stream], s);
	s->used_pages = pages;
	for (i = 0; i < s->extents_count; i++) {
		struct gl_extent *e = &s->extents[i];
		uint32_t n = FRAG_MIN(left, e->count);

		gl_busy(g, e->seg, 1);
		claim(g, e->seg, e->from, n, s);
		left -= n;
	}
	return 0;
}

void gl_stitch_free(struct gl *g, struct gl_stitch *s)
{
	uint32_t left = s->used_pages, i;

	for (i = 0; i < s->extents_count; i++) {
		struct gl_extent *e = &s->extents[i];
		uint32_t n = FRAG_MIN(left, e->count), at = e->from;

		while (at < e->from + n) {
			struct gl_piece *p = gl_piece_at(e->seg, at);

			at += (uint32_t)(p->bytes / GL_PAGE);
			if (s->event.number > p->event.number)
				p->event = s->event;
			gl_unuse(g, p);
		}
		gl_busy(g, e->seg, -1);
		left -= n;
	}
	s->used_pages = 0;
	gl_stitch_state(g, s, GL_INACTIVE);
	FRAG_QUEUE_ADD(&g->streams[s->stream], s);
}
