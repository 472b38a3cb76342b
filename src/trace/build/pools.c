/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every segment of the history is a node. Recorded addresses show which free
 * blocks there were at each malloc, whatever their pool, so:
 *
 *  - a malloc that took block c although a better fitting free block f of the
 *    same stream and kind existed: f's segment is of another pool than c's;
 *  - a malloc that took a new segment although f would have done: likewise;
 *  - a release of all cached memory that left a wholly free segment: that one
 *    is of another pool than all the released ones;
 *  - a stream has one expandable reservation per pool and kind at a time.
 *
 * These are edges "differ". Release order adds what belongs together: the
 * default pools give back large segments, then small ones, a private pool small, then
 * large, each by stream, size, address. So a sorted run of one kind is of one
 * pool unless an edge says no. Labels are then dealt out run by run.
 *
 * Source of the rules: PyTorch 2.11, get_free_block, release_cached_blocks.
 */
#include "pools_internal.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8192u		/* the edge matrix has NODES_MAX^2 bits: 8 MiB */
#define WORK_MAX (200ull << 20) /* looks at segments and blocks, some ns each; then no new edges */
#define MOVES_MAX (1ull << 30)	/* blocks moved in arrays, 1 ns each; then nothing more is learnt */

/* ---- edges --------------------------------------------------------------------- */

static inline void differ(struct frag_pool_inferrer *p, uint32_t x, uint32_t y)
{
	p->edges[x * p->row_words + y / 64] |= 1ull << (y % 64);
	p->edges[y * p->row_words + x / 64] |= 1ull << (x % 64);
}

/* ---- what the allocator did not do ---------------------------------------------- */

bool frag_pool_better(const struct frag_pool_inferrer *p, struct frag_pool_span f, uint64_t bytes,
		      struct frag_pool_span chosen)
{
	if (f.bytes < bytes || (bytes < p->max_split && f.bytes >= p->max_split) ||
	    (bytes >= p->max_split && f.bytes >= bytes + 20 * FRAG_MIB))
		return false;
	if (!chosen.bytes)
		return true;
	return f.bytes != chosen.bytes ? f.bytes < chosen.bytes : f.addr < chosen.addr;
}

/* Does n hold a free block that serves `bytes` and is better than `chosen` (bytes 0: none chosen)? */
static bool has_better(struct frag_pool_inferrer *p, struct frag_pool_node *n, uint64_t bytes,
		       struct frag_pool_span chosen)
{
	if (frag_pool_max_free(p, n) < bytes)
		return false;
	p->work += n->live_count;
	for (size_t i = 0; i <= n->live_count; i++)
		if (frag_pool_better(p, frag_pool_gap_at(n, i), bytes, chosen))
			return true;
	return false;
}

/* Edges from `number`, which served a request of `bytes`, to all that should have. */
static void blame(struct frag_pool_inferrer *p, uint32_t number, uint64_t bytes,
		  struct frag_pool_span chosen)
{
	const struct frag_pool_node *x = &p->nodes[number];

	if (x->expandable || p->work > WORK_MAX)
		return;
	if (p->narrow) {
		frag_pool_narrow(p, number, bytes, chosen);
		return;
	}
	p->work += p->alive_count;
	for (size_t i = 0; i < p->alive_count; i++) {
		uint32_t other = p->alive[i];
		struct frag_pool_node *y = &p->nodes[other];

		if (other != number && y->stream == x->stream && y->small == x->small &&
		    !y->expandable && has_better(p, y, bytes, chosen))
			differ(p, number, other);
	}
}

static uint64_t block_bytes(const struct frag_pool_inferrer *p, const struct frag_pool_node *n,
			    uint64_t rounded, struct frag_pool_span gap, frag_addr_t addr)
{
	uint64_t room = gap.addr + gap.bytes > addr ? gap.addr + gap.bytes - addr : 0;

	if (room < rounded || n->small || n->expandable)
		return rounded;
	return rounded >= p->max_split || room - rounded <= FRAG_MIB ? room : rounded;
}

/* An alloc from what was there already (grown false) or from the segment taken for it. */
static int serve(struct frag_pool_inferrer *p, size_t i, bool grown, bool may_blame)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	uint64_t rounded = frag_torch_round(e->bytes, p->roundup);
	uint32_t number = frag_pool_node_at(p, e->addr);
	struct frag_pool_node *n;
	struct frag_pool_span gap;

	if (number == UINT32_MAX || rounded > INT64_MAX)
		return 0;
	n = &p->nodes[number];
	p->entry_node[i] = number;
	gap = frag_pool_gap_at(n, frag_pool_span_above(n, e->addr));
	if (!grown && may_blame && gap.addr == e->addr && gap.bytes >= rounded)
		blame(p, number, rounded, gap);
	return frag_pool_put_live(p, n, e->addr, block_bytes(p, n, rounded, gap, e->addr));
}

/* ---- segment entries ---------------------------------------------------------------- */

static void new_segment(struct frag_pool_inferrer *p, size_t i, uint64_t rounded, bool may_blame)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	struct frag_pool_node n = { .addr = e->addr,
				    .end = e->addr + e->bytes,
				    .stream = p->stream_of[e->stream],
				    .small =
					    rounded ? rounded <= FRAG_MIB : e->bytes == FRAG_PAGE };
	uint32_t number = frag_pool_add_node(p, n);

	p->entry_node[i] = number;
	if (rounded && may_blame)
		blame(p, number, rounded, (struct frag_pool_span){ 0, 0 });
}

/* Pages join the reservation they touch, or begin one. */
static void map_pages(struct frag_pool_inferrer *p, size_t i, uint64_t rounded)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	size_t above = frag_pool_alive_above(p, e->addr);
	struct frag_pool_node n = { .addr = e->addr,
				    .end = e->addr + e->bytes,
				    .stream = p->stream_of[e->stream],
				    .small = rounded && rounded <= FRAG_MIB,
				    .expandable = true,
				    .mapped = e->bytes };
	uint32_t number;

	for (size_t k = above ? above - 1 : 0; k < p->alive_count && k <= above; k++) {
		struct frag_pool_node *o = &p->nodes[p->alive[k]];

		if (!o->expandable || o->stream != n.stream || e->addr > o->end || n.end < o->addr)
			continue;
		o->end = FRAG_MAX(o->end, n.end);
		o->mapped += e->bytes;
		if (e->addr >= o->addr) {
			p->entry_node[i] = p->alive[k];
			return;
		}
		/* grows downwards: keep `alive` sorted */
		number = p->alive[k];
		frag_pool_end_node(p, number);
		o->addr = e->addr;
		above = frag_pool_alive_above(p, o->addr);
		memmove(p->alive + above + 1, p->alive + above,
			(p->alive_count - above) * sizeof(*p->alive));
		p->alive[above] = number;
		p->alive_count++;
		p->entry_node[i] = number;
		return;
	}
	number = frag_pool_add_node(p, n);
	p->entry_node[i] = number;
	for (size_t k = 0; k < p->alive_count && !p->narrow; k++) {
		const struct frag_pool_node *o = &p->nodes[p->alive[k]];

		if (p->alive[k] != number && o->expandable && o->stream == n.stream &&
		    o->small == n.small)
			differ(p, number, p->alive[k]);
	}
}

static int release_segment(struct frag_pool_inferrer *p, size_t i, uint32_t group, bool full)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	uint32_t number = frag_pool_node_at(p, e->addr);
	struct frag_pool_node *n;

	if (number == UINT32_MAX)
		return 0;
	n = &p->nodes[number];
	p->entry_node[i] = number;
	if (n->expandable) {
		n->mapped -= FRAG_MIN(n->mapped, e->bytes);
		if (n->mapped)
			return 0; /* the rest of the reservation lives on */
	}
	frag_pool_end_node(p, number);
	FRAG_TRY(frag_grow(&p->releases, p->releases_count, &p->releases_cap, sizeof(*p->releases),
			   "pools", p->err));
	p->releases[p->releases_count++] = (struct frag_pool_release){ number, group, full };
	return 0;
}

/* Segments that are wholly free behind a full release are of other pools than those released. */
static void blame_left(struct frag_pool_inferrer *p, size_t first_release)
{
	if (first_release == p->releases_count || !p->releases[first_release].full || p->narrow)
		return;
	p->work += p->alive_count;
	for (size_t i = 0; i < p->alive_count; i++) {
		const struct frag_pool_node *n = &p->nodes[p->alive[i]];

		if (n->live_count || n->expandable)
			continue;
		for (size_t k = first_release; k < p->releases_count; k++)
			differ(p, p->releases[k].node, p->alive[i]);
	}
}

/* ---- walking the history ---------------------------------------------------------------- */

struct stretch { /* entries between two operations, as in build.c */
	size_t first, last;
	bool allocs, closed; /* entry `last` is the alloc; is the alloc or oom */
	bool grows, releases, completes;
};

static struct stretch find_stretch(const struct frag_raw_dev *raw, size_t first)
{
	struct stretch g = { .first = first, .last = first };

	for (; g.last < raw->entries_count; g.last++) {
		unsigned a = (unsigned)raw->entries[g.last].action;

		if (a == FRAG_RAW_ALLOC || a == FRAG_RAW_OOM || a == FRAG_RAW_FREE ||
		    a == FRAG_RAW_FREE_REQUESTED) {
			g.allocs = a == FRAG_RAW_ALLOC;
			g.closed = g.allocs || a == FRAG_RAW_OOM;
			break;
		}
		g.grows |= a == FRAG_RAW_SEGMENT_ALLOC || a == FRAG_RAW_SEGMENT_MAP;
		g.releases |= a == FRAG_RAW_SEGMENT_FREE || a == FRAG_RAW_SEGMENT_UNMAP;
		g.completes |= a == FRAG_RAW_FREE_COMPLETED;
	}
	return g;
}

static void freed(struct frag_pool_inferrer *p, frag_addr_t addr)
{
	frag_pool_take_live(p, addr);
	if (p->narrow)
		frag_pool_narrow_gone(p, addr);
}

static int walk_stretch(struct frag_pool_inferrer *p, const struct stretch *g, uint32_t group)
{
	const struct frag_raw_entry *e = p->raw->entries;
	uint64_t rounded = g->allocs ? frag_torch_round(e[g->last].bytes, p->roundup) : 0;
	/* completions before a release may have come behind the search that failed */
	bool may_blame = !(g->releases && g->completes);
	bool full = p->releases_are_full || !g->grows, left_blamed = false;
	size_t first_release = p->releases_count;

	for (size_t i = g->first; i < g->last; i++) {
		switch (e[i].action) {
		case FRAG_RAW_FREE_COMPLETED:
			freed(p, e[i].addr);
			break;
		case FRAG_RAW_SEGMENT_FREE:
		case FRAG_RAW_SEGMENT_UNMAP:
			FRAG_TRY(release_segment(p, i, group, full));
			break;
		case FRAG_RAW_SEGMENT_ALLOC:
		case FRAG_RAW_SEGMENT_MAP:
			if (!left_blamed)
				blame_left(p, first_release);
			left_blamed = true;
			if (e[i].action == FRAG_RAW_SEGMENT_ALLOC)
				new_segment(p, i, rounded, may_blame);
			else
				map_pages(p, i, rounded);
			break;
		default:
			break;
		}
	}
	if (!left_blamed)
		blame_left(p, first_release);
	return g->allocs ? serve(p, g->last, g->grows, true) : 0;
}

static int walk(struct frag_pool_inferrer *p)
{
	const struct frag_raw_dev *raw = p->raw;
	bool no_completed = true;
	uint32_t group = 0;

	for (size_t i = 0; i < raw->entries_count; i++)
		no_completed &= raw->entries[i].action != FRAG_RAW_FREE_COMPLETED;
	for (size_t i = 0;
	     i < raw->entries_count && p->moves < MOVES_MAX && !(p->narrow && !p->narrow->left);) {
		unsigned action = (unsigned)raw->entries[i].action;
		struct stretch g;

		if (action == FRAG_RAW_FREE || action == FRAG_RAW_FREE_REQUESTED) {
			if (action == FRAG_RAW_FREE || no_completed)
				freed(p, raw->entries[i].addr);
			i++;
			continue;
		}
		g = find_stretch(raw, i);
		FRAG_TRY(walk_stretch(p, &g, group++));
		i = g.last + (g.closed ? 1 : 0);
	}
	return 0;
}

/* ---- result --------------------------------------------------------------------------------- */

static int load_initial(struct frag_pool_inferrer *p, const struct frag_initial_segment *segments,
			size_t count, const struct frag_initial_block *blocks,
			uint32_t *initial_node)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_initial_segment *s = &segments[i];
		struct frag_pool_node n = { .addr = s->addr,
					    .end = s->addr + s->bytes,
					    .stream = (uint16_t)s->stream,
					    .small = s->small,
					    .expandable = s->expandable,
					    .mapped = s->bytes };
		bool same = i > 0 && s->expandable && s[-1].expandable && s->range_addr &&
			    s->range_addr == s[-1].range_addr && s->small == s[-1].small;

		n.pool = s->pool;
		initial_node[i] = same ? initial_node[i - 1] : frag_pool_add_node(p, n);
		if (same) { /* another run of the reservation before */
			p->nodes[initial_node[i]].end = n.end;
			p->nodes[initial_node[i]].mapped += n.mapped;
		}
		for (size_t k = s->first_block; k < s->first_block + s->blocks_count; k++)
			FRAG_TRY(frag_pool_put_live(p, &p->nodes[initial_node[i]], blocks[k].addr,
						    blocks[k].bytes));
	}
	return 0;
}

int frag_pools_reserve(struct frag_pool_inferrer *p, size_t initial)
{
	const struct frag_raw_dev *raw = p->raw;
	size_t n = initial + 1;

	for (size_t i = 0; i < raw->entries_count; i++)
		n += raw->entries[i].action == FRAG_RAW_SEGMENT_ALLOC ||
		     raw->entries[i].action == FRAG_RAW_SEGMENT_MAP;
	p->nodes_cap = n;
	if (n > NODES_MAX)
		return 0; /* too many to tell apart */
	p->row_words = (n + 63) / 64;
	p->nodes = frag_host_calloc(n, sizeof(*p->nodes));
	p->alive = frag_host_calloc(n + 1, sizeof(*p->alive));
	p->edges = frag_host_calloc(p->narrow ? 1 : n * p->row_words, sizeof(*p->edges));
	p->entry_node = frag_host_realloc(NULL, raw->entries_count, sizeof(*p->entry_node));
	if (!p->nodes || !p->alive || !p->edges || !p->entry_node)
		return frag_fail_nomem(p->err, "pools");
	memset(p->entry_node, 0xff, raw->entries_count * sizeof(*p->entry_node));
	return 0;
}

int frag_pools_walk(struct frag_pool_inferrer *p, const struct frag_initial_segment *segments,
		    size_t count, const struct frag_initial_block *blocks, uint32_t *initial_node)
{
	FRAG_TRY(load_initial(p, segments, count, blocks, initial_node));
	return walk(p);
}

static uint16_t label_of(const struct frag_pool_inferrer *p, uint32_t node)
{
	return node == UINT32_MAX || p->nodes[node].label == FRAG_POOL_UNKNOWN
		       ? 0
		       : p->nodes[node].label;
}

static int infer(struct frag_pool_inferrer *p, const struct frag_initial_segment *segments,
		 size_t count, const struct frag_initial_block *blocks, struct frag_pool_map *out)
{
	const struct frag_raw_dev *raw = p->raw;
	uint32_t *initial_node = frag_host_calloc(count, sizeof(*initial_node));
	int rc = initial_node ? 0 : frag_fail_nomem(p->err, "pools");

	if (!rc)
		rc = frag_pools_walk(p, segments, count, blocks, initial_node);
	if (!rc)
		rc = frag_pools_deal(p);
	out->entry_pool = frag_host_realloc(NULL, raw->entries_count, sizeof(*out->entry_pool));
	out->initial_pool = frag_host_realloc(NULL, count, sizeof(*out->initial_pool));
	if (!rc && (!out->entry_pool || !out->initial_pool))
		rc = frag_fail_nomem(p->err, "pools");
	for (size_t i = 0; i < raw->entries_count && !rc; i++)
		out->entry_pool[i] = label_of(p, p->entry_node[i]);
	for (size_t i = 0; i < count && !rc; i++)
		out->initial_pool[i] = label_of(p, initial_node[i]);
	out->invented = p->labels_count - FRAG_MAX(raw->pools_count, 1u);
	frag_host_free(initial_node);
	return rc;
}

void frag_pools_init(struct frag_pool_inferrer *p, const struct frag_raw_dev *raw,
		     const uint16_t *stream_of, struct frag_err *err)
{
	const struct frag_trace_settings *set = raw->settings;

	*p = (struct frag_pool_inferrer){
		.raw = raw, .stream_of = stream_of, .err = err, .max_split = UINT64_MAX
	};
	if (set && set->present) {
		p->max_split = set->max_split_bytes;
		p->roundup = set->roundup;
	}
	p->releases_are_full = p->max_split == UINT64_MAX && !(set && set->gc_threshold > 0);
}

void frag_pools_release(struct frag_pool_inferrer *p)
{
	for (size_t i = 0; i < p->nodes_count; i++)
		frag_host_free(p->nodes[i].live);
	frag_host_free(p->nodes);
	frag_host_free(p->alive);
	frag_host_free(p->edges);
	frag_host_free(p->entry_node);
	frag_host_free(p->releases);
}

int frag_pools_infer(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		     const struct frag_initial_segment *initial_segments,
		     size_t initial_segments_count, const struct frag_initial_block *initial_blocks,
		     struct frag_pool_map *out, struct frag_err *err)
{
	struct frag_pool_inferrer p;
	int rc;

	*out = (struct frag_pool_map){ 0 };
	frag_pools_init(&p, raw, stream_of, err);
	rc = frag_pools_reserve(&p, initial_segments_count);
	if (!rc && p.entry_node)
		rc = infer(&p, initial_segments, initial_segments_count, initial_blocks, out);
	frag_pools_release(&p);
	if (rc)
		frag_pool_map_release(out);
	return rc;
}

void frag_pool_map_release(struct frag_pool_map *map)
{
	frag_host_free(map->entry_pool);
	frag_host_free(map->initial_pool);
	*map = (struct frag_pool_map){ 0 };
}
