/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of segments by constraints; see resolve.h. */
#include "resolve.h"

#include <string.h>

#include <frag/torch.h>

#include "lib/bisect.h"
#include "lib/grow.h"
#include "torch_rule_list.inc"

#define COLOURS (UINT16_MAX + 1u)

/* ---- instances ---- */

static int add_instance(struct pools *p, const struct pool_instance *i, uint32_t *out,
			struct frag_err *err)
{
	FRAG_TRY(FRAG_GROW(p->list, p->count, p->cap, "resolve: segments", err));
	*out = (uint32_t)p->count;
	p->list[p->count] = *i;
	p->list[p->count].same = *out;
	p->list[p->count].first_edge = p->list[p->count].last_edge = POOLS_NONE;
	p->count++;
	return 0;
}

/* Live instances while walking, sorted by address. */
struct live {
	uint32_t *at;
	size_t count, cap;
};

static size_t live_place(const struct pools *p, const struct live *l, frag_addr_t addr)
{
	size_t i;

	FRAG_BISECT(i, 0, l->count, p->list[l->at[i]].addr <= addr);
	return i;
}

static uint32_t live_find(const struct pools *p, const struct live *l, frag_addr_t addr)
{
	size_t i = live_place(p, l, addr);

	if (!i)
		return POOLS_NONE;
	i = l->at[i - 1];
	return addr - p->list[i].addr < p->list[i].bytes ? (uint32_t)i : POOLS_NONE;
}

static int live_add(const struct pools *p, struct live *l, uint32_t i, struct frag_err *err)
{
	size_t place = live_place(p, l, p->list[i].addr);

	FRAG_TRY(FRAG_GROW(l->at, l->count, l->cap, "resolve: live segments", err));
	memmove(l->at + place + 1, l->at + place, (l->count - place) * sizeof(*l->at));
	l->at[place] = i;
	l->count++;
	return 0;
}

static void live_remove(const struct pools *p, struct live *l, uint32_t i)
{
	size_t place = live_place(p, l, p->list[i].addr);

	if (!place || l->at[place - 1] != i)
		return;
	memmove(l->at + place - 1, l->at + place, (l->count - place) * sizeof(*l->at));
	l->count--;
}

static int birth(struct pools *p, struct live *l, const struct frag_evidence *e, uint32_t *out,
		 struct frag_err *err)
{
	bool map = e->kind == FRAG_SEEN_SEGMENT_MAP;
	struct pool_instance i = { .addr = e->addr,
				   .bytes = map ? p->range_bytes : e->bytes,
				   .born = e->before,
				   .died = UINT64_MAX,
				   .stream = e->stream,
				   .expandable = map,
				   .small = !map && e->bytes == 2 * FRAG_MIB };

	FRAG_TRY(add_instance(p, &i, out, err));
	return live_add(p, l, *out, err);
}

static int walk_seen(struct pools *p, struct live *l, size_t s, struct frag_err *err)
{
	const struct frag_evidence *e = &p->td->seen[s];
	uint32_t i = live_find(p, l, e->addr);

	switch (e->kind) {
	case FRAG_SEEN_SEGMENT_ALLOC:
		FRAG_TRY(birth(p, l, e, &i, err));
		break;
	case FRAG_SEEN_SEGMENT_MAP:
		if (i == POOLS_NONE || !p->list[i].expandable)
			FRAG_TRY(birth(p, l, e, &i, err));
		p->list[i].mapped += e->bytes;
		break;
	case FRAG_SEEN_SEGMENT_UNMAP:
	case FRAG_SEEN_SEGMENT_FREE:
		if (i == POOLS_NONE)
			break;
		p->list[i].mapped -= FRAG_MIN(p->list[i].mapped, e->bytes);
		if (e->kind == FRAG_SEEN_SEGMENT_FREE || !p->list[i].mapped) {
			p->list[i].died = e->before + 1;
			live_remove(p, l, i);
		}
		break;
	default:
		return 0;
	}
	p->of_seen[s] = i;
	return 0;
}

static int start_from_initial(struct pools *p, struct live *l, struct frag_err *err)
{
	const struct frag_initial_state *initial = &p->td->initial;

	for (size_t s = 0; s < initial->segments_count; s++) {
		const struct frag_initial_segment *g = &initial->segments[s];
		struct pool_instance n = { .addr = g->addr,
					   .bytes = g->bytes,
					   .mapped = g->bytes,
					   .died = UINT64_MAX,
					   .stream = (uint16_t)g->stream,
					   .expandable = g->expandable,
					   .small = g->small,
					   .known = p->td->pools_named,
					   .pool = g->pool };
		uint32_t i = live_find(p, l, g->addr);

		if (g->expandable && i != POOLS_NONE) {
			p->list[i].mapped += g->bytes;
			p->of_initial[s] = i;
			continue;
		}
		if (g->expandable) {
			n.addr = g->range_addr ? g->range_addr : g->addr;
			n.bytes = p->range_bytes;
		}
		FRAG_TRY(add_instance(p, &n, &i, err));
		FRAG_TRY(live_add(p, l, i, err));
		p->of_initial[s] = i;
	}
	p->initial_count = p->count;
	return 0;
}

static void name_finals(struct pools *p, const struct live *l)
{
	for (size_t s = 0; s < p->td->final_segments_count; s++) {
		const struct frag_final_segment *g = &p->td->final_segments[s];
		uint32_t i = live_find(p, l, g->addr);

		if (i == POOLS_NONE)
			continue;
		p->list[i].known = true;
		p->list[i].pool = g->pool;
	}
}

void pools_release(struct pools *p)
{
	FRAG_FREE(p->list, p->edges, p->of_seen, p->of_initial, p->colour_of);
	*p = (struct pools){ 0 };
}

uint32_t pools_at(const struct pools *p, frag_addr_t addr, uint64_t at)
{
	/* newest first: an address may have been used several times */
	for (size_t i = p->count; i-- > 0;) {
		const struct pool_instance *n = &p->list[i];

		if (addr >= n->addr && addr - n->addr < n->bytes && n->born <= at && at < n->died)
			return (uint32_t)i;
	}
	return POOLS_NONE;
}

/* ---- constraints ---- */

static uint32_t root(const struct pools *p, uint32_t a)
{
	while (p->list[a].same != a) {
		p->list[a].same = p->list[p->list[a].same].same; /* makes later searches shorter */
		a = p->list[a].same;
	}
	return a;
}

/* a, b: roots. Checks the edges of the root with fewer. */
static bool has_edge(const struct pools *p, uint32_t a, uint32_t b)
{
	uint32_t from = p->list[a].degree <= p->list[b].degree ? a : b;
	uint32_t to = from == a ? b : a;

	for (uint32_t e = p->list[from].first_edge; e != POOLS_NONE; e = p->edges[e].next)
		if (root(p, p->edges[e].other) == to)
			return true;
	return false;
}

/* pre: room for it. */
static void add_half(struct pools *p, uint32_t from, uint32_t to)
{
	struct pool_instance *n = &p->list[from];

	p->edges[p->edges_count] = (struct pool_edge){ to, n->first_edge };
	n->first_edge = (uint32_t)p->edges_count++;
	if (n->last_edge == POOLS_NONE)
		n->last_edge = n->first_edge;
	n->degree++;
}

int pools_differ(struct pools *p, uint32_t a, uint32_t b, bool *learnt, struct frag_err *err)
{
	*learnt = false;
	if (a == POOLS_NONE || b == POOLS_NONE)
		return 0;
	a = root(p, a);
	b = root(p, b);
	if (a == b || has_edge(p, a, b))
		return 0;
	FRAG_TRY(frag_grow(&p->edges, p->edges_count + 1, &p->edges_cap, sizeof(*p->edges),
			   "resolve: constraints", err));
	add_half(p, a, b);
	add_half(p, b, a);
	*learnt = true;
	return 0;
}

/* Adds the edges of b to a. */
static void join_edges(struct pools *p, uint32_t a, uint32_t b)
{
	struct pool_instance *x = &p->list[a], *y = &p->list[b];

	if (y->first_edge == POOLS_NONE)
		return;
	if (x->first_edge == POOLS_NONE)
		x->first_edge = y->first_edge;
	else
		p->edges[x->last_edge].next = y->first_edge;
	x->last_edge = y->last_edge;
	x->degree += y->degree;
}

static bool pools_same(struct pools *p, uint32_t a, uint32_t b)
{
	if (a == POOLS_NONE || b == POOLS_NONE)
		return false;
	a = root(p, a);
	b = root(p, b);
	if (a == b || has_edge(p, a, b))
		return false;
	if (a > b) {
		uint32_t t = a;

		a = b;
		b = t;
	}
	p->list[b].same = a;
	join_edges(p, a, b);
	p->list[a].pin_default |= p->list[b].pin_default;
	p->list[a].pin_private |= p->list[b].pin_private;
	if (p->list[b].known && !p->list[a].known) {
		p->list[a].known = true;
		p->list[a].pool = p->list[b].pool;
	}
	return true;
}

bool pools_pin(struct pools *p, uint32_t a, bool is_default)
{
	struct pool_instance *n;
	bool *pin;

	if (a == POOLS_NONE)
		return false;
	n = &p->list[root(p, a)];
	pin = is_default ? &n->pin_default : &n->pin_private;
	if (n->known || *pin || (is_default ? n->pin_private : n->pin_default))
		return false;
	*pin = true;
	return true;
}

/* ---- colours ---- */

uint16_t pools_of(const struct pools *p, uint32_t instance)
{
	return instance == POOLS_NONE ? 0 : p->list[root(p, instance)].pool;
}

static int add_pool(struct frag_trace_dev *td, struct frag_err *err)
{
	struct frag_pool_id *pools =
		frag_host_realloc(td->pools, td->pools_count + 1, sizeof(*pools));

	FRAG_CHECK_ALLOC(pools, "resolve: pools", err);
	/* not a recorded id: no program gets such a pair */
	pools[td->pools_count] = (struct frag_pool_id){ UINT64_MAX, td->pools_count };
	td->pools = pools;
	td->pools_count++;
	return 0;
}

/* Colours that instance i must not have: those of earlier neighbours, and of later fixed ones. */
static void mark_taken(struct pools *p, uint32_t i)
{
	for (uint32_t e = p->list[i].first_edge; e != POOLS_NONE; e = p->edges[e].next) {
		uint32_t other = root(p, p->edges[e].other);

		if (p->list[other].pin_default && !p->list[other].known)
			p->colour_of[0] = i;
		else if (other < i || p->list[other].known)
			p->colour_of[p->list[other].pool] = i;
	}
}

static int colour_one(struct pools *p, uint32_t i, struct frag_err *err)
{
	struct pool_instance *n = &p->list[i];
	uint16_t colour = n->pin_private ? 1 : 0;

	if (n->known)
		return 0;
	if (n->pin_default) {
		colour = 0;
	} else {
		mark_taken(p, i);
		while (p->colour_of[colour] == i && colour < UINT16_MAX - 1)
			colour++;
	}
	while (colour >= p->td->pools_count)
		FRAG_TRY(add_pool(p->td, err));
	n->pool = colour;
	return 0;
}

static void name_instance(struct pools *p, uint32_t i, uint16_t pool)
{
	if (p->list[i].known)
		return;
	p->list[i].known = true;
	p->list[i].pool = pool;
}

/* name: instances get the pool that the file names for their requests; otherwise requests get the
 * pool of their instance. */
static int walk_events(struct pools *p, bool name, struct frag_err *err)
{
	struct frag_trace_dev *td = p->td;
	FRAG_AUTO_FREE uint16_t *of_slot = NULL;
	struct live l = { 0 };
	size_t s = 0;
	int rc = 0;

	FRAG_TRY_CALLOC(of_slot, td->slots_count, "resolve: slots", err);
	for (size_t i = 0; i < td->initial.segments_count && !name; i++)
		td->initial_segments[i].pool = pools_of(p, p->of_initial[i]);
	for (size_t i = 0; i < p->initial_count && !rc; i++)
		rc = live_add(p, &l, (uint32_t)i, err);
	for (size_t e = 0; e < td->events_count && !rc; e++) {
		struct frag_event *ev = &td->events[e];

		for (; s < td->seen_count && td->seen[s].before <= e && !rc; s++) {
			uint32_t i = p->of_seen[s];

			if (i == POOLS_NONE)
				continue;
			if (frag_seen_is_release(&td->seen[s])) {
				if (p->list[i].died == td->seen[s].before + 1)
					live_remove(p, &l, i);
			} else if (live_find(p, &l, td->seen[s].addr) != i) {
				rc = live_add(p, &l, i, err);
			}
		}
		if (ev->kind == FRAG_EV_ALLOC) {
			uint32_t i = live_find(p, &l, td->addrs[e]);

			if (i != POOLS_NONE && name)
				name_instance(p, i, ev->pool);
			else if (i != POOLS_NONE)
				ev->pool = pools_of(p, i);
			of_slot[ev->slot] = ev->pool;
		} else if (ev->kind < FRAG_EV_TRIM) {
			ev->pool = of_slot[ev->slot];
		}
	}
	frag_host_free(l.at);
	return rc;
}

/* Up to 2.4, expandable_segments applies only to the default pools. */
static void pin_by_kind(struct pools *p)
{
	bool ranges = false;

	for (uint32_t i = 0; i < p->count; i++)
		ranges |= p->list[i].expandable;
	if (!ranges || !p->td->source_release ||
	    p->td->source_release >= FRAG_TORCH_SINCE_PRIVATE_RANGES)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		pools_pin(p, i, p->list[i].expandable);
}

int pools_init(struct pools *p, struct frag_trace_dev *td, uint64_t device_total_bytes,
	       struct frag_err *err)
{
	struct live l = { 0 };
	int rc;

	*p = (struct pools){ .td = td };
	p->range_bytes = frag_round_up(device_total_bytes + device_total_bytes / 8, 2 * FRAG_MIB);
	p->of_seen = frag_host_alloc(td->seen_count * sizeof(*p->of_seen));
	p->of_initial = frag_host_alloc(td->initial.segments_count * sizeof(*p->of_initial));
	p->colour_of = frag_host_alloc(COLOURS * sizeof(*p->colour_of));
	if (!p->of_seen || !p->of_initial || !p->colour_of) {
		pools_release(p);
		return frag_fail_nomem(err, "resolve: evidence");
	}
	memset(p->of_seen, 0xff, td->seen_count * sizeof(*p->of_seen));
	rc = start_from_initial(p, &l, err);
	for (size_t s = 0; s < td->seen_count && !rc; s++)
		rc = walk_seen(p, &l, s, err);
	if (!rc)
		name_finals(p, &l);
	if (!rc)
		pin_by_kind(p);
	frag_host_free(l.at);
	if (!rc && td->pools_named)
		rc = walk_events(p, true, err);
	if (rc)
		pools_release(p);
	return rc;
}

/* Pools named in the final snapshot; further ones are added as needed. */
static uint32_t named_pools(const struct frag_trace_dev *td)
{
	uint32_t named = td->pools_named ? td->pools_count : 1;

	for (size_t i = 0; i < td->final_segments_count; i++)
		named = FRAG_MAX(named, td->final_segments[i].pool + 1u);
	return FRAG_MIN(named, td->pools_count);
}

int pools_colour(struct pools *p, struct frag_err *err)
{
	p->td->pools_count = named_pools(p->td);
	memset(p->colour_of, 0xff, COLOURS * sizeof(*p->colour_of));
	for (uint32_t i = 0; i < p->count; i++)
		if (root(p, i) == i)
			FRAG_TRY(colour_one(p, i, err));
	return walk_events(p, false, err);
}

/* ---- learning from the order of releases ---- */

static bool goes_on(const struct pools *p, size_t a, size_t b)
{
	const struct frag_evidence *x = &p->td->seen[a], *y = &p->td->seen[b];
	uint32_t i = p->of_seen[a], j = p->of_seen[b];

	if (i == POOLS_NONE || j == POOLS_NONE || p->list[i].small != p->list[j].small ||
	    x->kind != y->kind)
		return false;
	if (x->stream != y->stream)
		return x->stream < y->stream;
	return x->bytes != y->bytes ? x->bytes < y->bytes : x->addr < y->addr;
}

static bool link_run(struct pools *p, size_t from, size_t to)
{
	bool learnt = false;

	for (size_t s = from; s + 1 < to; s++)
		learnt |= pools_same(p, p->of_seen[s], p->of_seen[s + 1]);
	return learnt;
}

/* One ordered stretch: a list of small or of large segments. Returns its end. */
static size_t stretch_end(const struct pools *p, size_t s, size_t end)
{
	for (s++; s < end && goes_on(p, s - 1, s); s++)
		;
	return s;
}

static bool is_small(const struct pools *p, size_t s)
{
	return p->of_seen[s] != POOLS_NONE && p->list[p->of_seen[s]].small;
}

/*
 * Small followed by large is a private pool. Large followed by small are the default pools, unless
 * the small ones belong to following large ones.
 */
bool pools_learn_run(struct pools *p, size_t first, size_t end)
{
	bool learnt = false;
	size_t s = first;

	while (s < end) {
		size_t second = stretch_end(p, s, end), third = second, last;
		bool small = is_small(p, s), pair;

		learnt |= link_run(p, s, second);
		if (second < end)
			third = stretch_end(p, second, end);
		pair = second < end && is_small(p, second) != small;
		if (pair && !small && third < end && !is_small(p, third))
			pair = false;
		last = second;
		if (pair) {
			learnt |= link_run(p, second, third);
			learnt |= pools_same(p, p->of_seen[s], p->of_seen[second]);
			learnt |= pools_pin(p, p->of_seen[s], !small);
			last = third;
		}
		s = last;
	}
	return learnt;
}

int pools_learn_breaks(struct pools *p, size_t first, size_t end, bool *learnt,
		       struct frag_err *err)
{
	for (size_t s = first; s + 1 < end; s++) {
		uint32_t a = p->of_seen[s], b = p->of_seen[s + 1];
		bool one;

		if (a == POOLS_NONE || b == POOLS_NONE || p->list[a].small != p->list[b].small ||
		    p->td->seen[s].kind != FRAG_SEEN_SEGMENT_FREE ||
		    p->td->seen[s + 1].kind != FRAG_SEEN_SEGMENT_FREE || goes_on(p, s, s + 1))
			continue;
		FRAG_TRY(pools_differ(p, a, b, &one, err));
		*learnt |= one;
	}
	return 0;
}
