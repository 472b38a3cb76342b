/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks and pieces (see sim_arena.h).
 *
 * Invariants: the pieces of a chunk cover it without gap, in address order; two holes are never
 * neighbours; chunk->holes holds exactly the holes, `greatest` is the largest of them (0 = the
 * chunk is full) and is stored in its leaf.
 */
#include "sim_arena.h"

#include "lib/links.h"
#include "lib/tournament.h"

#define AGES_FIRST 64u
#define AGES_SPARE 4u /* a call opens its own chunk and, if it is the first, those of the context */

/* ---- ages: chunks in order of opening --------------------------------------- */

static void ages_set(struct ages *g, uint32_t leaf, uint64_t value)
{
	frag_tournament_set(g->max, g->leaves, leaf, value);
}

/* Leaf of the newest chunk with a hole of at least `bytes`. pre: there is one. */
static uint32_t ages_newest(const struct ages *g, uint64_t bytes)
{
	uint32_t i = 1;

	while (i < g->leaves) {
		i = 2 * i + 1;
		i -= g->max[i] < bytes;
	}
	return i - g->leaves;
}

/* Moves the open chunks of `old` to the first leaves of `g`, where all max are zero. */
static void ages_pack(struct ages *g, const struct ages *old)
{
	for (uint32_t i = 0; i < old->used; i++) {
		struct chunk *c = old->chunks[i];

		if (!c)
			continue;
		c->age = g->used++;
		g->chunks[c->age] = c;
		g->max[g->leaves + c->age] = c->greatest;
	}
	frag_tournament_build(g->max, g->leaves);
	g->open = g->used;
}

static void ages_release(struct ages *g)
{
	FRAG_FREE(g->max, g->chunks);
	*g = (struct ages){ 0 };
}

/* Makes room for the leaves of one call: packs, and doubles if more than half are open. */
static bool ages_reserve(struct ages *g)
{
	struct ages bigger = { .leaves = FRAG_MAX(g->leaves, AGES_FIRST) };

	if (FRAG_LIKELY(g->used + AGES_SPARE <= g->leaves))
		return true;
	if (g->open > bigger.leaves / 2)
		bigger.leaves *= 2;
	bigger.max = frag_host_calloc(2 * (size_t)bigger.leaves, sizeof(*bigger.max));
	bigger.chunks = frag_host_calloc(bigger.leaves, sizeof(struct chunk *));
	if (!bigger.max || !bigger.chunks) {
		ages_release(&bigger);
		return false;
	}
	ages_pack(&bigger, g);
	ages_release(g);
	*g = bigger;
	return true;
}

/* ---- pieces ----------------------------------------------------------------- */

void frag_simarena_init(struct arena *a)
{
	*a = (struct arena){ 0 };
	frag_slab_init(&a->chunks, sizeof(struct chunk));
	frag_slab_init(&a->pieces, sizeof(struct piece));
}

void frag_simarena_release(struct arena *a)
{
	ages_release(&a->ages);
	frag_slab_release(&a->chunks);
	frag_slab_release(&a->pieces);
}

bool frag_simarena_reserve(struct arena *a)
{
	/* the hole of a new chunk, and a hole on either side of a cut */
	return !frag_slab_reserve(&a->chunks, 1) && !frag_slab_reserve(&a->pieces, 3) &&
	       ages_reserve(&a->ages);
}

static void hole_insert(struct piece *p)
{
	p->live = false;
	p->by_size.key = p->bytes;
	p->by_size.tie = p->addr;
	p->by_size.weight = 0;
	frag_tree_insert(&p->chunk->holes, &p->by_size);
}

static void hole_remove(struct piece *p)
{
	frag_tree_remove(&p->chunk->holes, &p->by_size);
}

/* Updates a hole that moved or changed size. Most chunks have only one, which keeps its node. */
static void hole_moved(struct piece *p, frag_addr_t addr, uint64_t bytes)
{
	bool alone = p->chunk->holes.count == 1;

	if (!alone)
		hole_remove(p);
	p->addr = addr;
	p->bytes = bytes;
	if (!alone) {
		hole_insert(p);
		return;
	}
	p->by_size.key = bytes;
	p->by_size.tie = addr;
}

static void note_greatest_hole(struct arena *a, struct chunk *c)
{
	struct frag_tree_node *n =
		c->holes.count > 1 ? frag_tree_floor(&c->holes, UINT64_MAX) : c->holes.root;
	uint64_t greatest = n ? n->key : 0;

	if (greatest == c->greatest)
		return;
	c->greatest = greatest;
	ages_set(&a->ages, c->age, greatest);
}

static struct piece *piece_new(struct arena *a, struct chunk *c, frag_addr_t addr, uint64_t bytes)
{
	struct piece *p = frag_slab_alloc(&a->pieces);

	*p = (struct piece){ .addr = addr, .bytes = bytes, .chunk = c };
	return p;
}

/* Merges `gone` into `keep`, which directly precedes it. */
static void absorb(struct arena *a, struct piece *keep, struct piece *gone)
{
	keep->bytes += gone->bytes;
	FRAG_UNLINK_NEXT(keep);
	frag_slab_free(&a->pieces, gone);
}

struct chunk *frag_simarena_open(struct arena *a, frag_addr_t addr, uint64_t bytes, void *owner)
{
	struct chunk *c = frag_slab_alloc(&a->chunks);

	*c = (struct chunk){ .addr = addr, .bytes = bytes, .owner = owner };
	c->first = piece_new(a, c, addr, bytes);
	hole_insert(c->first);
	c->greatest = bytes;
	c->age = a->ages.used++;
	a->ages.open++;
	a->ages.chunks[c->age] = c;
	ages_set(&a->ages, c->age, bytes);
	return c;
}

void frag_simarena_close(struct arena *a, struct chunk *c)
{
	FRAG_ASSERT(!c->live_count && !c->first->next);
	ages_set(&a->ages, c->age, 0);
	a->ages.chunks[c->age] = NULL;
	a->ages.open--;
	frag_slab_free(&a->pieces, c->first);
	frag_slab_free(&a->chunks, c);
}

struct chunk *frag_simarena_find(const struct arena *a, uint64_t bytes)
{
	const struct ages *g = &a->ages;

	return g->leaves && g->max[1] >= bytes ? g->chunks[ages_newest(g, bytes)] : NULL;
}

/* Cuts the low end of a longer hole; the rest stays the same hole. */
static struct piece *cut_low(struct arena *a, struct piece *hole, uint64_t bytes)
{
	struct piece *cut = piece_new(a, hole->chunk, hole->addr, bytes);

	FRAG_LINK_BEFORE(hole->chunk->first, hole, cut);
	hole_moved(hole, hole->addr + bytes, hole->bytes - bytes);
	cut->live = true;
	return cut;
}

/* Takes [addr, addr + bytes) out of the hole p, which keeps the part before it. */
static struct piece *cut_from(struct arena *a, struct piece *p, frag_addr_t addr, uint64_t bytes)
{
	struct chunk *c = p->chunk;
	frag_addr_t end = p->addr + p->bytes;

	if (addr == p->addr && bytes < p->bytes) {
		p = cut_low(a, p, bytes);
		c->live_count++;
		note_greatest_hole(a, c);
		return p;
	}
	hole_remove(p);
	if (addr + bytes < end) {
		struct piece *rest = piece_new(a, c, addr + bytes, end - addr - bytes);

		FRAG_LINK_AFTER(p, rest);
		hole_insert(rest);
	}
	if (addr > p->addr) {
		struct piece *cut = piece_new(a, c, addr, bytes);

		p->bytes = addr - p->addr;
		hole_insert(p);
		FRAG_LINK_AFTER(p, cut);
		p = cut;
	}
	p->bytes = bytes;
	p->live = true;
	c->live_count++;
	note_greatest_hole(a, c);
	return p;
}

struct piece *frag_simarena_cut(struct arena *a, struct chunk *c, uint64_t bytes)
{
	struct frag_tree_node *n = frag_tree_ceil(&c->holes, bytes, 0);
	struct piece *p;

	FRAG_ASSERT(n != NULL);
	p = FRAG_TREE_OF(n, struct piece, by_size);
	return cut_from(a, p, p->addr, bytes);
}

struct piece *frag_simarena_cut_at(struct arena *a, struct chunk *c, frag_addr_t addr,
				   uint64_t bytes)
{
	for (struct piece *p = c->first; p && p->addr <= addr; p = p->next) {
		if (!p->live && addr + bytes <= p->addr + p->bytes)
			return cut_from(a, p, addr, bytes);
	}
	return NULL;
}

bool frag_simarena_extend(struct arena *a, struct chunk *c, uint64_t bytes)
{
	struct piece *last = c->first;

	while (last->next)
		last = last->next;
	if (last->live)
		return false;
	hole_remove(last);
	last->bytes += bytes;
	c->bytes += bytes;
	hole_insert(last);
	note_greatest_hole(a, c);
	return true;
}

bool frag_simarena_give(struct arena *a, struct piece *p)
{
	struct chunk *c = p->chunk;

	FRAG_ASSERT(p->live);
	c->live_count--;
	if (p->next && !p->next->live && !(p->prev && !p->prev->live)) {
		/* the following hole grows downwards */
		struct piece *hole = p->next;

		hole->prev = p->prev;
		if (hole->prev)
			hole->prev->next = hole;
		else
			c->first = hole;
		hole_moved(hole, p->addr, hole->bytes + p->bytes);
		frag_slab_free(&a->pieces, p);
		note_greatest_hole(a, c);
		return !c->live_count;
	}
	p->live = false;
	if (p->next && !p->next->live) {
		hole_remove(p->next);
		absorb(a, p, p->next);
	}
	if (p->prev && !p->prev->live) {
		struct piece *before = p->prev;

		hole_remove(before);
		absorb(a, before, p);
		p = before;
	}
	hole_insert(p);
	note_greatest_hole(a, c);
	return !c->live_count;
}
