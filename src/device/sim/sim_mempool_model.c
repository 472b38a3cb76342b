/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a cudaMemPool works inside: driver 580.159.04 on an H200. The model matches every address and
 * every reserved byte of the recordings: with one stream 18 curves of six workloads and 32 random
 * runs, with two and four idle streams 28 random runs and every call of five workloads
 * (docs/measuring.md).
 *
 * Space. One unlimited range of addresses, used from the bottom, in pages of 32 MiB that are mapped
 * or not. A piece is live, recent (freed since the last flush of its stream) or idle (free longer,
 * or never used; the unlimited tail is idle). Recent pieces merge only with recent neighbours of
 * their stream, idle ones only with idle ones. An idle piece is full if all its pages are mapped,
 * else part.
 *
 * Allocation (bytes rounded up to 512), the first that fits:
 *   1. best fit among the recent pieces of the stream;
 *   2. best fit among the full idle pieces;
 *   3. best fit among the recent pieces of another stream that it has passed, the first stream
 *      that has one: the default stream, then the others as they came to the pool;
 *   4. flush (recent pieces become idle, newest first), then best fit over all
 *      idle pieces, the tail among them.
 * The low end is handed out. Ties of size go to the piece that got its size first. In case 4
 * unmapped pages of the range get memory: first wholly free mapped pages of idle pieces, highest
 * address first, then new ones.
 *
 * A synchronise flushes piece by piece, newest first, and after each one returns wholly free pages,
 * highest first, while the pool holds more than the threshold. If nothing was freed since the last
 * flush, nothing is released.
 *
 * A flush in case 4 goes over the streams in the same order; it takes all pieces that the card has
 * passed, because a page cannot move away from pending work, although the stream itself may reuse
 * the piece in place. An idle card has passed all pieces of the own stream (as in the recordings);
 * after a synchronise, those that it covers. A pool without opportunistic reuse also keeps flushed
 * pieces apart by stream; that is not modelled.
 *
 * Invariants: blocks cover the range without gaps; an unmapped page lies completely in one idle
 * block (a page with one live or recent byte stays mapped); `takeable` is the sum over `whole`.
 * O(log blocks) per call, plus a bit per page of the request, plus the flushed pieces, plus the
 * large enough pieces of another stream that the card has not passed.
 */
#include "sim_mempool.h"

#include <string.h>

#include "lib/links.h"

#define UNIT 512u
#define POOL_PAGE (32 * FRAG_MIB)

static struct pool_block *sized(struct frag_tree_node *n)
{
	return n ? FRAG_TREE_OF(n, struct pool_block, by_size) : NULL;
}

static bool is_mapped(const struct pool *p, uint64_t page)
{
	return page < p->top && (p->mapped[page / 64] >> (page % 64) & 1);
}

static void set_mapped(struct pool *p, uint64_t page, bool on)
{
	uint64_t bit = 1ull << (page % 64);

	if (on)
		p->mapped[page / 64] |= bit;
	else
		p->mapped[page / 64] &= ~bit;
}

/* The smallest piece that fits; among equals, the one that got its size first. */
static struct pool_block *best_fit(const struct frag_tree *t, uint64_t bytes)
{
	return sized(frag_tree_ceil(t, bytes, 0));
}

static void index_size(struct frag_tree *t, struct pool_block *b, bool resized, uint64_t *ticks)
{
	if (resized)
		b->by_size.tie = ++*ticks;
	b->by_size.key = b->bytes;
	b->by_size.weight = 0;
	frag_tree_insert(t, &b->by_size);
}

/* ---- recent pieces ---------------------------------------------------------- */

static void recent_add(struct pool *p, struct pool_block *b, uint32_t stream)
{
	struct pool_stream *s = &p->streams[stream];

	b->state = POOL_RECENT;
	b->stream = stream;
	b->newer = NULL;
	b->older = s->newest;
	if (b->older)
		b->older->newer = b;
	s->newest = b;
	p->recent_count++;
	index_size(&s->recent, b, true, &p->ticks);
}

static void recent_remove(struct pool *p, struct pool_block *b)
{
	struct pool_stream *s = &p->streams[b->stream];

	frag_tree_remove(&s->recent, &b->by_size);
	p->recent_count--;
	if (b->newer)
		b->newer->older = b->older;
	else
		s->newest = b->older;
	if (b->older)
		b->older->newer = b->newer;
}

/* ---- idle pieces ------------------------------------------------------------ */

/* Mapped pages completely inside an idle piece. */
static uint64_t takeable(const struct pool *p, const struct pool_block *b)
{
	uint64_t first = (b->addr + p->page_bytes - 1) / p->page_bytes;
	uint64_t end = FRAG_MIN((b->addr + b->bytes) / p->page_bytes, p->top);

	return end > first ? end - first - b->unmapped : 0;
}

static struct frag_tree *idle_tree(struct pool *p, const struct pool_block *b)
{
	return b->unmapped || !b->next ? &p->part : &p->full;
}

static void idle_add(struct pool *p, struct pool_block *b, bool resized)
{
	uint64_t pages = takeable(p, b);

	b->state = POOL_IDLE;
	b->in_whole = pages > 0;
	p->takeable += pages;
	index_size(idle_tree(p, b), b, resized, &p->ticks);
	if (!b->in_whole)
		return;
	b->by_addr.key = b->addr;
	b->by_addr.tie = b->by_addr.weight = 0;
	frag_tree_insert(&p->whole, &b->by_addr);
}

static void idle_remove(struct pool *p, struct pool_block *b)
{
	p->takeable -= takeable(p, b);
	frag_tree_remove(idle_tree(p, b), &b->by_size);
	if (b->in_whole)
		frag_tree_remove(&p->whole, &b->by_addr);
}

/* Merges two neighbours that are in no index. */
static struct pool_block *join(struct pool *p, struct pool_block *a, struct pool_block *b)
{
	a->bytes += b->bytes;
	a->unmapped += b->unmapped;
	FRAG_UNLINK_NEXT(a);
	frag_slab_free(&p->blocks, b);
	return a;
}

static void recent_to_idle(struct pool *p, struct pool_block *b)
{
	struct pool_block *prev = b->prev, *next = b->next;

	recent_remove(p, b);
	b->unmapped = 0;
	if (next && next->state == POOL_IDLE) {
		idle_remove(p, next);
		b = join(p, b, next);
	}
	if (prev && prev->state == POOL_IDLE) {
		idle_remove(p, prev);
		b = join(p, prev, b);
	}
	idle_add(p, b, true);
}

/* Newest first, because the order later decides ties of size. */
static void flush_stream(struct pool *p, uint32_t stream, uint64_t stale_ns)
{
	struct pool_block *b = stream < p->streams_count ? p->streams[stream].newest : NULL;

	while (b) {
		struct pool_block *older = b->older;

		if (b->freed_ns <= stale_ns)
			recent_to_idle(p, b);
		b = older;
	}
}

static void flush(struct pool *p, uint32_t stream, struct pool_passed passed)
{
	for (uint32_t i = 0; p->recent_count && i < p->order_count; i++) {
		uint64_t until = p->order[i] == stream ? passed.own_ns : passed.others_ns;

		if (until)
			flush_stream(p, p->order[i], until);
	}
}

/* ---- pages ------------------------------------------------------------------ */

/* Highest mapped page at or below `page`. pre: there is one. */
static uint64_t last_mapped(const struct pool *p, uint64_t page)
{
	uint64_t w = page / 64, bits = p->mapped[w] & (~0ull >> (63 - page % 64));

	while (!bits)
		bits = p->mapped[--w];
	return w * 64 + frag_log2(bits);
}

/* Takes up to n wholly free pages from the highest idle piece that has some. */
static uint64_t take_pages(struct pool *p, uint64_t n)
{
	struct frag_tree_node *node = frag_tree_floor(&p->whole, UINT64_MAX);
	struct pool_block *b = FRAG_TREE_OF(node, struct pool_block, by_addr);
	uint64_t page = FRAG_MIN((b->addr + b->bytes) / p->page_bytes, p->top);

	n = FRAG_MIN(n, takeable(p, b));
	idle_remove(p, b);
	for (uint64_t i = 0; i < n; i++) {
		page = last_mapped(p, page - 1);
		set_mapped(p, page, false);
	}
	b->unmapped += n;
	idle_add(p, b, false);
	p->pages -= n;
	return n;
}

/* Makes the page table long enough. False: host memory exhausted. */
static bool table_covers(struct pool *p, uint64_t pages)
{
	size_t words = (size_t)(pages / 64 + 1);
	uint64_t *table;

	if (words <= p->mapped_words)
		return true;
	table = frag_host_realloc(p->mapped, words * 2, sizeof(*table));
	if (!table)
		return false;
	memset(table + p->mapped_words, 0, (words * 2 - p->mapped_words) * sizeof(*table));
	p->mapped = table;
	p->mapped_words = words * 2;
	return true;
}

static uint64_t count_unmapped(const struct pool *p, uint64_t first, uint64_t end)
{
	uint64_t n = 0;

	for (uint64_t i = first; i < end; i++)
		n += !is_mapped(p, i);
	return n;
}

/* ---- allocation ------------------------------------------------------------- */

/* Cuts the first bytes from b; b keeps the rest and its place in lists. */
static struct pool_block *cut(struct pool *p, struct pool_block *b, uint64_t bytes)
{
	struct pool_block *a = frag_slab_alloc(&p->blocks);

	*a = (struct pool_block){ .addr = b->addr, .bytes = bytes, .prev = b->prev, .next = b };
	if (a->prev)
		a->prev->next = a;
	b->prev = a;
	b->addr += bytes;
	b->bytes -= bytes;
	return a;
}

static struct pool_block *from_recent(struct pool *p, struct pool_block *b, uint64_t bytes)
{
	struct frag_tree *recent = &p->streams[b->stream].recent;
	struct pool_block *a;

	if (b->bytes == bytes) {
		recent_remove(p, b);
		return b;
	}
	frag_tree_remove(recent, &b->by_size);
	a = cut(p, b, bytes);
	index_size(recent, b, true, &p->ticks);
	return a;
}

/* Pages that part of an idle piece needs, and pages available for them. */
struct demand {
	uint64_t first, end; /* pages it touches */
	uint64_t holes;	     /* of these, unmapped ones that the table covers */
	uint64_t need;	     /* all unmapped ones */
	uint64_t movable;    /* wholly free pages elsewhere in the pool */
};

static struct demand demand_of(const struct pool *p, const struct pool_block *b, uint64_t bytes)
{
	struct demand d = {
		.first = b->addr / p->page_bytes,
		.end = (b->addr + bytes - 1) / p->page_bytes + 1,
	};
	struct pool_block rest = { .addr = b->addr + bytes, .bytes = b->bytes - bytes };
	uint64_t known = FRAG_MAX(d.first, FRAG_MIN(p->top, d.end));

	if (!b->unmapped && d.end <= p->top)
		return d;
	d.holes = count_unmapped(p, d.first, known);
	d.need = d.holes + d.end - known;
	rest.unmapped = b->unmapped - d.holes;
	d.movable = p->takeable - takeable(p, b) + takeable(p, &rest);
	return d;
}

/* Cuts from an idle piece and maps what is missing. pre: the table covers d->end. */
static struct pool_block *from_idle(struct pool *p, struct pool_block *b, uint64_t bytes,
				    const struct demand *d, struct pool_work *work)
{
	struct pool_block *a = b;

	idle_remove(p, b);
	p->top = FRAG_MAX(p->top, d->end);
	if (b->bytes != bytes) {
		a = cut(p, b, bytes);
		b->unmapped -= d->holes;
		idle_add(p, b, true);
	}
	work->moved_pages = FRAG_MIN(d->need, d->movable);
	work->fresh_pages = d->need - work->moved_pages;
	for (uint64_t left = work->moved_pages; left;)
		left -= take_pages(p, left);
	p->pages += d->need;
	for (uint64_t i = d->first; d->need && i < d->end; i++)
		set_mapped(p, i, true);
	return a;
}

/* Case 4: everything finished becomes idle, then the best fit of all. */
static int flush_and_cut(struct pool *p, uint64_t bytes, uint32_t stream, uint64_t pages_left,
			 struct pool_passed passed, struct pool_block **out, struct pool_work *work,
			 struct frag_err *err)
{
	struct pool_block *full, *part;
	struct demand d;

	flush(p, stream, passed);
	full = best_fit(&p->full, bytes);
	part = best_fit(&p->part, bytes);
	if (!part || (full && full->bytes < part->bytes) ||
	    (full && full->bytes == part->bytes && full->by_size.tie < part->by_size.tie))
		part = full;
	if (!part)
		return FRAG_OOM; /* the range of addresses is used up */
	d = demand_of(p, part, bytes);
	if (d.need > d.movable && d.need - d.movable > pages_left)
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(table_covers(p, d.end), "page table of a pool", err);
	*out = from_idle(p, part, bytes, &d, work);
	return 0;
}

/* Registers a stream that allocates or frees for the first time. */
static int meet_stream(struct pool *p, uint32_t stream, struct frag_err *err)
{
	uint32_t count = FRAG_MAX(stream + 1, 2 * p->streams_count);
	struct pool_stream *streams;
	uint32_t *order;

	if (stream >= p->streams_count) {
		order = frag_host_realloc(p->order, count, sizeof(*order));
		p->order = order ? order : p->order;
		streams = order ? frag_host_realloc(p->streams, count, sizeof(*streams)) : NULL;
		FRAG_CHECK_ALLOC(streams, "streams of a pool", err);
		memset(streams + p->streams_count, 0,
		       (count - p->streams_count) * sizeof(*streams));
		p->streams = streams;
		p->streams_count = count;
	}
	if (p->streams[stream].seen)
		return 0;
	p->streams[stream].seen = true;
	p->order[p->order_count++] = stream;
	if (!stream) { /* the default stream was there before any pool */
		memmove(p->order + 1, p->order, (p->order_count - 1) * sizeof(*p->order));
		p->order[0] = 0;
	}
	return 0;
}

/* Case 3. NULL: none. */
static struct pool_block *passed_fit(const struct pool *p, uint64_t bytes, uint32_t stream,
				     uint64_t stale_ns)
{
	for (uint32_t i = 0; stale_ns && p->recent_count && i < p->order_count; i++) {
		const struct frag_tree *t = &p->streams[p->order[i]].recent;
		struct pool_block *b = p->order[i] == stream ? NULL : best_fit(t, bytes);

		while (b && b->freed_ns > stale_ns)
			b = sized(frag_tree_ceil(t, b->by_size.key, b->by_size.tie + 1));
		if (b)
			return b;
	}
	return NULL;
}

int frag_simmempool_alloc(struct pool *p, uint64_t bytes, uint32_t stream, uint64_t pages_left,
			  struct pool_passed passed, uint64_t *addr, struct pool_work *work,
			  struct frag_err *err)
{
	struct pool_block *b;
	uint64_t size;

	*work = (struct pool_work){ 0 };
	if (bytes > p->window_bytes)
		return FRAG_OOM;
	size = frag_round_up(bytes, UNIT);
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&p->blocks, 1) && !frag_addr_map_reserve(&p->live),
			 "blocks of a pool", err);
	FRAG_TRY(meet_stream(p, stream, err));
	b = best_fit(&p->streams[stream].recent, size);
	if (b) {
		b = from_recent(p, b, size);
	} else if ((b = best_fit(&p->full, size))) {
		struct demand d = demand_of(p, b, size);

		b = from_idle(p, b, size, &d, work);
	} else if ((b = passed_fit(p, size, stream, passed.others_ns))) {
		b = from_recent(p, b, size);
	} else {
		FRAG_TRY(flush_and_cut(p, size, stream, pages_left, passed, &b, work, err));
	}
	b->state = POOL_LIVE;
	b->unmapped = 0;
	b->asked = bytes;
	p->used_bytes += bytes;
	frag_addr_map_put(&p->live, b->addr + UNIT, b); /* a key is never zero */
	*addr = b->addr;
	return 0;
}

static bool is_recent_of(const struct pool_block *b, uint32_t stream)
{
	return b && b->state == POOL_RECENT && b->stream == stream;
}

int frag_simmempool_free(struct pool *p, uint64_t addr, uint32_t stream, uint64_t now_ns,
			 uint64_t *asked, struct frag_err *err)
{
	struct pool_block *b;

	FRAG_TRY(meet_stream(p, stream, err));
	*asked = 0;
	b = frag_addr_map_take(&p->live, addr + UNIT);
	if (!b)
		return 0;
	*asked = b->asked;
	p->used_bytes -= b->asked;
	if (is_recent_of(b->next, stream)) {
		recent_remove(p, b->next);
		b = join(p, b, b->next);
	}
	if (is_recent_of(b->prev, stream)) {
		recent_remove(p, b->prev);
		b = join(p, b->prev, b);
	}
	b->freed_ns = now_ns;
	recent_add(p, b, stream);
	return 0;
}

uint64_t frag_simmempool_trim(struct pool *p, uint64_t keep_pages)
{
	uint64_t before = p->pages;

	while (p->pages > keep_pages && p->whole.root)
		take_pages(p, p->pages - keep_pages);
	return before - p->pages;
}

uint64_t frag_simmempool_sync(struct pool *p, uint32_t stream, uint64_t keep_pages)
{
	uint64_t given = 0;

	/* after each piece: older ones have not merged yet, which decides what stays */
	while (stream < p->streams_count && p->streams[stream].newest) {
		recent_to_idle(p, p->streams[stream].newest);
		given += frag_simmempool_trim(p, keep_pages);
	}
	return given;
}

int frag_simmempool_init(struct pool *p, uint64_t window_bytes, struct frag_err *err)
{
	struct pool_block *tail;

	*p = (struct pool){ .page_bytes = POOL_PAGE, .window_bytes = window_bytes };
	frag_slab_init(&p->blocks, sizeof(struct pool_block));
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&p->blocks, 1), "blocks of a pool", err);
	tail = frag_slab_alloc(&p->blocks);
	*tail = (struct pool_block){ .bytes = window_bytes };
	idle_add(p, tail, true);
	return 0;
}

void frag_simmempool_release(struct pool *p)
{
	frag_slab_release(&p->blocks);
	frag_addr_map_release(&p->live);
	FRAG_FREE(p->streams, p->order, p->mapped);
}
