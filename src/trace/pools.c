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
#include "pools.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8192u		 /* the edge matrix has NODES_MAX^2 bits: 8 MiB */
#define WORK_MAX (400ull << 20)	 /* steps after which no further edges are looked for */
#define UNKNOWN UINT16_MAX
#define DEFAULT_POOL 0

struct span {
	frag_addr_t addr;
	uint64_t bytes;
};

struct node {
	frag_addr_t addr, end;
	uint16_t stream; /* dense index */
	uint16_t label;
	bool small, expandable;
	uint64_t mapped; /* expandable: bytes; the node goes when none are left */
	struct span *live; /* by address */
	uint32_t live_count, live_cap;
	uint64_t max_free; /* of the gaps; stale if dirty */
	bool dirty;
};

struct release { /* one released segment, in order */
	uint32_t node, group;
	bool full; /* part of a release of everything */
};

struct inferrer {
	const struct frag_raw_dev *raw;
	const uint16_t *stream_of;
	struct frag_err *err;
	struct node *nodes;
	size_t nodes_count, nodes_cap;
	uint32_t *alive; /* node numbers by address */
	size_t alive_count;
	uint32_t *entry_node; /* per entry, UINT32_MAX = none */
	uint64_t *edges;      /* bit matrix, row = node */
	size_t row_words;
	struct release *releases;
	size_t releases_count, releases_cap;
	uint32_t labels_count;
	uint64_t work, max_split;
	const uint32_t *roundup;
	bool releases_are_full; /* no setting that releases only some segments */
};

/* ---- edges --------------------------------------------------------------------- */

static inline void differ(struct inferrer *p, uint32_t x, uint32_t y)
{
	p->edges[x * p->row_words + y / 64] |= 1ull << (y % 64);
	p->edges[y * p->row_words + x / 64] |= 1ull << (x % 64);
}

static inline bool is_edge(const struct inferrer *p, uint32_t x, uint32_t y)
{
	return p->edges[x * p->row_words + y / 64] >> (y % 64) & 1;
}

/* ---- nodes --------------------------------------------------------------------- */

/* Position in `alive` of the first node with addr > at. */
static size_t alive_above(const struct inferrer *p, frag_addr_t at)
{
	size_t low = 0, high = p->alive_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->nodes[p->alive[mid]].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t node_at(const struct inferrer *p, frag_addr_t at)
{
	size_t i = alive_above(p, at);

	if (!i || at >= p->nodes[p->alive[i - 1]].end)
		return UINT32_MAX;
	return p->alive[i - 1];
}

/* pre: fewer than nodes_cap nodes. */
static uint32_t add_node(struct inferrer *p, struct node n)
{
	size_t i = alive_above(p, n.addr);
	uint32_t number = (uint32_t)p->nodes_count;

	n.dirty = true;
	n.label = UNKNOWN;
	p->nodes[p->nodes_count++] = n;
	memmove(p->alive + i + 1, p->alive + i, (p->alive_count - i) * sizeof(*p->alive));
	p->alive[i] = number;
	p->alive_count++;
	return number;
}

static void end_node(struct inferrer *p, uint32_t number)
{
	size_t i = alive_above(p, p->nodes[number].addr);

	/* several may start at one address in a hostile file: look for ours */
	while (i && p->alive[i - 1] != number)
		i--;
	if (!i)
		return;
	memmove(p->alive + i - 1, p->alive + i, (p->alive_count - i) * sizeof(*p->alive));
	p->alive_count--;
}

static size_t span_above(const struct node *n, frag_addr_t at)
{
	size_t low = 0, high = n->live_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (n->live[mid].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The free gap that begins where span i - 1 ends (0: at the start of the segment). */
static struct span gap_at(const struct node *n, size_t i)
{
	frag_addr_t from = i ? n->live[i - 1].addr + n->live[i - 1].bytes : n->addr;
	frag_addr_t to = i < n->live_count ? n->live[i].addr : n->end;

	return (struct span){ from, to > from ? to - from : 0 };
}

static int put_live(struct inferrer *p, struct node *n, frag_addr_t addr, uint64_t bytes)
{
	size_t i = span_above(n, addr);
	size_t cap = n->live_cap;

	FRAG_TRY(frag_grow(&n->live, n->live_count, &cap, sizeof(*n->live), "pools", p->err));
	n->live_cap = (uint32_t)cap;
	memmove(n->live + i + 1, n->live + i, (n->live_count - i) * sizeof(*n->live));
	n->live[i] = (struct span){ addr, bytes };
	p->work += n->live_count++ - i;
	n->dirty = true;
	return 0;
}

static void take_live(struct inferrer *p, frag_addr_t addr)
{
	uint32_t number = node_at(p, addr);
	struct node *n;
	size_t i;

	if (number == UINT32_MAX)
		return;
	n = &p->nodes[number];
	i = span_above(n, addr);
	if (!i || n->live[i - 1].addr != addr)
		return;
	memmove(n->live + i - 1, n->live + i, (n->live_count - i) * sizeof(*n->live));
	p->work += n->live_count-- - i;
	n->dirty = true;
}

static uint64_t max_free(struct inferrer *p, struct node *n)
{
	if (!n->dirty)
		return n->max_free;
	n->dirty = false;
	n->max_free = 0;
	for (size_t i = 0; i <= n->live_count; i++)
		n->max_free = FRAG_MAX(n->max_free, gap_at(n, i).bytes);
	p->work += n->live_count + 1;
	return n->max_free;
}

/* ---- what the allocator did not do ---------------------------------------------- */

static bool better(struct span a, struct span b)
{
	return a.bytes != b.bytes ? a.bytes < b.bytes : a.addr < b.addr;
}

/* Does n hold a free block that serves `bytes` and is better than `chosen` (bytes 0: none chosen)? */
static bool has_better(struct inferrer *p, struct node *n, uint64_t bytes, struct span chosen)
{
	if (max_free(p, n) < bytes)
		return false;
	p->work += n->live_count;
	for (size_t i = 0; i <= n->live_count; i++) {
		struct span f = gap_at(n, i);

		if (f.bytes < bytes || (bytes < p->max_split && f.bytes >= p->max_split) ||
		    (bytes >= p->max_split && f.bytes >= bytes + 20 * FRAG_MIB))
			continue;
		if (!chosen.bytes || better(f, chosen))
			return true;
	}
	return false;
}

/* Edges from `number`, which served a request of `bytes`, to all that should have. */
static void blame(struct inferrer *p, uint32_t number, uint64_t bytes, struct span chosen)
{
	const struct node *x = &p->nodes[number];

	if (x->expandable || p->work > WORK_MAX)
		return;
	p->work += p->alive_count;
	for (size_t i = 0; i < p->alive_count; i++) {
		uint32_t other = p->alive[i];
		struct node *y = &p->nodes[other];

		if (other != number && y->stream == x->stream && y->small == x->small &&
		    !y->expandable && has_better(p, y, bytes, chosen))
			differ(p, number, other);
	}
}

static uint64_t block_bytes(const struct inferrer *p, const struct node *n, uint64_t rounded,
			    struct span gap, frag_addr_t addr)
{
	uint64_t room = gap.addr + gap.bytes > addr ? gap.addr + gap.bytes - addr : 0;

	if (room < rounded || n->small || n->expandable)
		return rounded;
	return rounded >= p->max_split || room - rounded <= FRAG_MIB ? room : rounded;
}

/* An alloc from what was there already (grown false) or from the segment taken for it. */
static int serve(struct inferrer *p, size_t i, bool grown, bool may_blame)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	uint64_t rounded = frag_torch_round(e->bytes, p->roundup);
	uint32_t number = node_at(p, e->addr);
	struct node *n;
	struct span gap;

	if (number == UINT32_MAX || rounded > INT64_MAX)
		return 0;
	n = &p->nodes[number];
	p->entry_node[i] = number;
	gap = gap_at(n, span_above(n, e->addr));
	if (!grown && may_blame && gap.addr == e->addr && gap.bytes >= rounded)
		blame(p, number, rounded, gap);
	return put_live(p, n, e->addr, block_bytes(p, n, rounded, gap, e->addr));
}

/* ---- segment entries ---------------------------------------------------------------- */

static void new_segment(struct inferrer *p, size_t i, uint64_t rounded, bool may_blame)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	struct node n = { .addr = e->addr, .end = e->addr + e->bytes, .stream = p->stream_of[e->stream],
			  .small = rounded ? rounded <= FRAG_MIB : e->bytes == FRAG_PAGE };
	uint32_t number = add_node(p, n);

	p->entry_node[i] = number;
	if (rounded && may_blame)
		blame(p, number, rounded, (struct span){ 0, 0 });
}

/* Pages join the reservation they touch, or begin one. */
static void map_pages(struct inferrer *p, size_t i, uint64_t rounded)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	size_t above = alive_above(p, e->addr);
	struct node n = { .addr = e->addr, .end = e->addr + e->bytes, .stream = p->stream_of[e->stream],
			  .small = rounded && rounded <= FRAG_MIB, .expandable = true,
			  .mapped = e->bytes };
	uint32_t number;

	for (size_t k = above ? above - 1 : 0; k < p->alive_count && k <= above; k++) {
		struct node *o = &p->nodes[p->alive[k]];

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
		end_node(p, number);
		o->addr = e->addr;
		above = alive_above(p, o->addr);
		memmove(p->alive + above + 1, p->alive + above,
			(p->alive_count - above) * sizeof(*p->alive));
		p->alive[above] = number;
		p->alive_count++;
		p->entry_node[i] = number;
		return;
	}
	number = add_node(p, n);
	p->entry_node[i] = number;
	for (size_t k = 0; k < p->alive_count; k++) {
		const struct node *o = &p->nodes[p->alive[k]];

		if (p->alive[k] != number && o->expandable && o->stream == n.stream &&
		    o->small == n.small)
			differ(p, number, p->alive[k]);
	}
}

static int release_segment(struct inferrer *p, size_t i, uint32_t group, bool full)
{
	const struct frag_raw_entry *e = &p->raw->entries[i];
	uint32_t number = node_at(p, e->addr);
	struct node *n;

	if (number == UINT32_MAX)
		return 0;
	n = &p->nodes[number];
	p->entry_node[i] = number;
	if (n->expandable) {
		n->mapped -= FRAG_MIN(n->mapped, e->bytes);
		if (n->mapped)
			return 0; /* the rest of the reservation lives on */
	}
	end_node(p, number);
	FRAG_TRY(frag_grow(&p->releases, p->releases_count, &p->releases_cap,
			   sizeof(*p->releases), "pools", p->err));
	p->releases[p->releases_count++] = (struct release){ number, group, full };
	return 0;
}

/* Segments that are wholly free behind a full release are of other pools than those released. */
static void blame_left(struct inferrer *p, size_t first_release)
{
	if (first_release == p->releases_count || !p->releases[first_release].full)
		return;
	p->work += p->alive_count;
	for (size_t i = 0; i < p->alive_count; i++) {
		const struct node *n = &p->nodes[p->alive[i]];

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

static int walk_stretch(struct inferrer *p, const struct stretch *g, uint32_t group)
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
			take_live(p, e[i].addr);
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

static int walk(struct inferrer *p)
{
	const struct frag_raw_dev *raw = p->raw;
	bool no_completed = true;
	uint32_t group = 0;

	for (size_t i = 0; i < raw->entries_count; i++)
		no_completed &= raw->entries[i].action != FRAG_RAW_FREE_COMPLETED;
	for (size_t i = 0; i < raw->entries_count;) {
		unsigned action = (unsigned)raw->entries[i].action;
		struct stretch g;

		if (action == FRAG_RAW_FREE || action == FRAG_RAW_FREE_REQUESTED) {
			if (action == FRAG_RAW_FREE || no_completed)
				take_live(p, raw->entries[i].addr);
			i++;
			continue;
		}
		g = find_stretch(raw, i);
		FRAG_TRY(walk_stretch(p, &g, group++));
		i = g.last + (g.closed ? 1 : 0);
	}
	return 0;
}

/* ---- labels -------------------------------------------------------------------------------- */

struct run { /* releases [first, last): one kind, in release order, no edges among them */
	size_t first, last;
	uint32_t group;
	bool small;
};

struct dealer {
	struct inferrer *p;
	uint64_t *members; /* per label: bit set of its nodes */
	size_t members_cap;
	struct run *runs;
	size_t runs_count, runs_cap;
	/* labels that the group at hand has used already */
	bool *used;
	size_t used_cap;
};

static int add_label(struct dealer *d, uint16_t *label)
{
	struct inferrer *p = d->p;
	size_t old = d->members_cap;

	FRAG_TRY(frag_grow(&d->members, p->labels_count, &d->members_cap,
			   p->row_words * sizeof(*d->members), "pools", p->err));
	if (old < d->members_cap)
		memset(d->members + old * p->row_words, 0,
		       (d->members_cap - old) * p->row_words * sizeof(*d->members));
	FRAG_TRY(frag_grow(&d->used, p->labels_count, &d->used_cap, sizeof(*d->used), "pools",
			   p->err));
	d->used[p->labels_count] = false;
	*label = (uint16_t)p->labels_count++;
	return 0;
}

static void set_label(struct dealer *d, uint32_t node, uint16_t label)
{
	d->p->nodes[node].label = label;
	d->members[label * d->p->row_words + node / 64] |= 1ull << (node % 64);
}

static bool node_fits(const struct dealer *d, uint32_t node, uint16_t label)
{
	const uint64_t *row = d->p->edges + node * d->p->row_words;
	const uint64_t *with = d->members + label * d->p->row_words;

	for (size_t w = 0; w < d->p->row_words; w++)
		if (row[w] & with[w])
			return false;
	return true;
}

static bool run_fits(const struct dealer *d, const struct run *r, uint16_t label)
{
	for (size_t i = r->first; i < r->last; i++)
		if (!node_fits(d, d->p->releases[i].node, label))
			return false;
	return true;
}

static void label_run(struct dealer *d, const struct run *r, uint16_t label)
{
	for (size_t i = r->first; i < r->last; i++)
		set_label(d, d->p->releases[i].node, label);
	d->used[label] = true;
}

/* A private pool for one run, or for two that belong together (b may be NULL). */
static int choose_private(struct dealer *d, const struct run *a, const struct run *b)
{
	uint16_t label;

	for (label = 1; label < d->p->labels_count; label++)
		if (!d->used[label] && run_fits(d, a, label) && (!b || run_fits(d, b, label)))
			break;
	if (label == d->p->labels_count) {
		if (label == FRAG_RAW_NO_POOL - 1)
			label = DEFAULT_POOL; /* hopeless */
		else
			FRAG_TRY(add_label(d, &label));
	}
	label_run(d, a, label);
	if (b)
		label_run(d, b, label);
	return 0;
}

static bool in_release_order(const struct inferrer *p, uint32_t x, uint32_t y)
{
	const struct node *a = &p->nodes[x], *b = &p->nodes[y];

	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->end - a->addr != b->end - b->addr)
		return a->end - a->addr < b->end - b->addr;
	return a->addr < b->addr;
}

static int find_runs(struct dealer *d)
{
	struct inferrer *p = d->p;

	for (size_t i = 0; i < p->releases_count; i++) {
		struct run *r = d->runs_count ? &d->runs[d->runs_count - 1] : NULL;
		uint32_t node = p->releases[i].node;
		bool joins = r && r->group == p->releases[i].group &&
			     r->small == p->nodes[node].small &&
			     in_release_order(p, p->releases[i - 1].node, node);

		for (size_t k = joins ? r->first : i; k < i && joins; k++)
			joins = !is_edge(p, p->releases[k].node, node);
		if (joins) {
			r->last = i + 1;
			continue;
		}
		FRAG_TRY(frag_grow(&d->runs, d->runs_count, &d->runs_cap, sizeof(*r), "pools",
				   p->err));
		d->runs[d->runs_count++] = (struct run){ i, i + 1, p->releases[i].group,
							 p->nodes[node].small };
	}
	return 0;
}

static uint16_t run_stream(const struct dealer *d, const struct run *r)
{
	return d->p->nodes[d->p->releases[r->first].node].stream;
}

/*
 * Runs of one group: default large, default small, then per private pool small,
 * large. Small runs between two large ones could end the default pools or
 * begin a private one: the stream decides.
 */
static int deal_group(struct dealer *d, size_t first, size_t last)
{
	bool default_done = false;

	memset(d->used, 0, d->p->labels_count * sizeof(*d->used));
	for (size_t i = first; i < last; i++) {
		const struct run *r = &d->runs[i], *next = i + 1 < last ? &d->runs[i + 1] : NULL;
		const struct run *after = i + 2 < last ? &d->runs[i + 2] : NULL;
		bool may_default = !default_done && run_fits(d, r, DEFAULT_POOL);

		if (r->small && next && !next->small) {
			FRAG_TRY(choose_private(d, r, next));
			i++;
		} else if (!may_default) {
			FRAG_TRY(choose_private(d, r, NULL));
		} else {
			label_run(d, r, DEFAULT_POOL);
			default_done = true;
			if (r->small || !next || !next->small ||
			    !run_fits(d, next, DEFAULT_POOL))
				continue;
			if (after && !after->small && run_stream(d, after) == run_stream(d, next) &&
			    run_stream(d, after) != run_stream(d, r))
				continue;
			label_run(d, next, DEFAULT_POOL);
			i++;
		}
	}
	return 0;
}

/* Segments that are there at the end name their pool. */
static void label_finals(struct dealer *d)
{
	const struct frag_raw_dev *raw = d->p->raw;

	for (size_t i = 0; i < raw->segments_count; i++) {
		uint32_t node = node_at(d->p, raw->segments[i].addr);

		if (node != UINT32_MAX && d->p->nodes[node].label == UNKNOWN)
			set_label(d, node, raw->segments[i].pool);
	}
}

static int deal(struct dealer *d)
{
	struct inferrer *p = d->p;
	uint16_t label;

	for (uint32_t i = 0; i < FRAG_MAX(p->raw->pools_count, 1u); i++)
		FRAG_TRY(add_label(d, &label));
	label_finals(d);
	FRAG_TRY(find_runs(d));
	for (size_t i = 0, k; i < d->runs_count; i = k) {
		for (k = i + 1; k < d->runs_count && d->runs[k].group == d->runs[i].group;)
			k++;
		FRAG_TRY(deal_group(d, i, k));
	}
	return 0;
}

/* ---- result --------------------------------------------------------------------------------- */

static int load_seed(struct inferrer *p, const struct frag_seed_segment *segments, size_t count,
		     const struct frag_seed_block *blocks, uint32_t *seed_node)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_seed_segment *s = &segments[i];
		struct node n = { .addr = s->addr, .end = s->addr + s->bytes,
				  .stream = (uint16_t)s->stream, .small = s->small,
				  .expandable = s->expandable, .mapped = s->bytes };
		bool same = i && s->expandable && s[-1].expandable && s->range_addr &&
			    s->range_addr == s[-1].range_addr && s->small == s[-1].small;

		seed_node[i] = same ? seed_node[i - 1] : add_node(p, n);
		if (same) { /* another run of the reservation before */
			p->nodes[seed_node[i]].end = n.end;
			p->nodes[seed_node[i]].mapped += n.mapped;
		}
		for (size_t k = s->first_block; k < s->first_block + s->blocks_count; k++)
			FRAG_TRY(put_live(p, &p->nodes[seed_node[i]], blocks[k].addr,
					  blocks[k].bytes));
	}
	return 0;
}

static int reserve(struct inferrer *p, size_t seeds)
{
	const struct frag_raw_dev *raw = p->raw;
	size_t n = seeds + 1;

	for (size_t i = 0; i < raw->entries_count; i++)
		n += raw->entries[i].action == FRAG_RAW_SEGMENT_ALLOC ||
		     raw->entries[i].action == FRAG_RAW_SEGMENT_MAP;
	p->nodes_cap = n;
	if (n > NODES_MAX)
		return 0; /* too many to tell apart */
	p->row_words = (n + 63) / 64;
	p->nodes = frag_host_calloc(n, sizeof(*p->nodes));
	p->alive = frag_host_calloc(n + 1, sizeof(*p->alive));
	p->edges = frag_host_calloc(n * p->row_words, sizeof(*p->edges));
	p->entry_node = frag_host_realloc(NULL, raw->entries_count, sizeof(*p->entry_node));
	if (!p->nodes || !p->alive || !p->edges || !p->entry_node)
		return frag_fail_nomem(p->err, "pools");
	memset(p->entry_node, 0xff, raw->entries_count * sizeof(*p->entry_node));
	return 0;
}

static uint16_t label_of(const struct inferrer *p, uint32_t node)
{
	return node == UINT32_MAX || p->nodes[node].label == UNKNOWN ? DEFAULT_POOL
								      : p->nodes[node].label;
}

static int infer(struct inferrer *p, struct dealer *d, const struct frag_seed_segment *segments,
		 size_t count, const struct frag_seed_block *blocks, struct frag_pool_map *out)
{
	const struct frag_raw_dev *raw = p->raw;
	uint32_t *seed_node = frag_host_calloc(count, sizeof(*seed_node));
	int rc = seed_node ? 0 : frag_fail_nomem(p->err, "pools");

	if (!rc)
		rc = load_seed(p, segments, count, blocks, seed_node);
	if (!rc)
		rc = walk(p);
	if (!rc)
		rc = deal(d);
	out->entry_pool = frag_host_realloc(NULL, raw->entries_count, sizeof(*out->entry_pool));
	out->seed_pool = frag_host_realloc(NULL, count, sizeof(*out->seed_pool));
	if (!rc && (!out->entry_pool || !out->seed_pool))
		rc = frag_fail_nomem(p->err, "pools");
	for (size_t i = 0; i < raw->entries_count && !rc; i++)
		out->entry_pool[i] = label_of(p, p->entry_node[i]);
	for (size_t i = 0; i < count && !rc; i++)
		out->seed_pool[i] = label_of(p, seed_node[i]);
	out->invented = p->labels_count - FRAG_MAX(raw->pools_count, 1u);
	frag_host_free(seed_node);
	return rc;
}

int frag_pools_infer(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		     const struct frag_seed_segment *seed_segments, size_t seed_segments_count,
		     const struct frag_seed_block *seed_blocks,
		     struct frag_pool_map *out, struct frag_err *err)
{
	const struct frag_trace_settings *set = raw->settings;
	struct inferrer p = { .raw = raw, .stream_of = stream_of, .err = err,
			      .max_split = UINT64_MAX };
	struct dealer d = { .p = &p };
	int rc;

	*out = (struct frag_pool_map){ 0 };
	if (set && set->present) {
		p.max_split = set->max_split_bytes;
		p.roundup = set->roundup;
	}
	p.releases_are_full = p.max_split == UINT64_MAX && !(set && set->gc_threshold > 0);
	rc = reserve(&p, seed_segments_count);
	if (!rc && p.nodes_cap <= NODES_MAX)
		rc = infer(&p, &d, seed_segments, seed_segments_count, seed_blocks, out);
	for (size_t i = 0; i < p.nodes_count; i++)
		frag_host_free(p.nodes[i].live);
	frag_host_free(p.nodes);
	frag_host_free(p.alive);
	frag_host_free(p.edges);
	frag_host_free(p.entry_node);
	frag_host_free(p.releases);
	frag_host_free(d.members);
	frag_host_free(d.runs);
	frag_host_free(d.used);
	if (rc)
		frag_pool_map_release(out);
	return rc;
}

void frag_pool_map_release(struct frag_pool_map *map)
{
	frag_host_free(map->entry_pool);
	frag_host_free(map->seed_pool);
	*map = (struct frag_pool_map){ 0 };
}
