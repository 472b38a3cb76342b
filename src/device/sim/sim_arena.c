/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks and pieces (see sim_arena.h).
 *
 * Invariants: the pieces of a chunk cover it without gap, in address order; two holes are never
 * neighbours; the tree of holes holds exactly these, the weight of by_age is the largest of them
 * (0 = the chunk is full). A page of a heap has a live piece.
 */
#include "sim_arena.h"

#include "lib/links.h"

#define HEAP_UNIT 512u

/* ---- pieces ----------------------------------------------------------------- */

void frag_simarena_init(struct arena *a, bool heap)
{
	*a = (struct arena){ .heap = heap };
	frag_slab_init(&a->chunks, sizeof(struct chunk));
	frag_slab_init(&a->pieces, sizeof(struct piece));
}

void frag_simarena_release(struct arena *a)
{
	frag_slab_release(&a->chunks);
	frag_slab_release(&a->pieces);
}

bool frag_simarena_reserve(struct arena *a)
{
	/* the hole of a new chunk, and a hole on either side of a cut */
	return !frag_slab_reserve(&a->chunks, 1) && !frag_slab_reserve(&a->pieces, 3);
}

static struct frag_tree *holes_of(struct arena *a, struct piece *p)
{
	return a->heap ? &a->holes : &p->chunk->holes;
}

static void hole_insert(struct arena *a, struct piece *p)
{
	p->live = false;
	p->by_size.key = p->bytes;
	p->by_size.tie = a->heap ? a->holes.ticks : p->addr;
	p->by_size.weight = 0;
	frag_tree_insert(holes_of(a, p), &p->by_size);
}

static void hole_remove(struct arena *a, struct piece *p)
{
	frag_tree_remove(holes_of(a, p), &p->by_size);
}

static void note_greatest_hole(struct arena *a, struct chunk *c)
{
	struct frag_tree_node *n = frag_tree_floor(&c->holes, UINT64_MAX);
	uint64_t greatest = n ? n->key : 0;

	if (!a->heap && greatest != c->by_age.weight)
		frag_tree_update(&a->ages, &c->by_age, c->by_age.key, greatest);
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

struct chunk *frag_simarena_open(struct arena *a, frag_addr_t addr, uint64_t bytes)
{
	struct chunk *c = frag_slab_alloc(&a->chunks);

	*c = (struct chunk){ .addr = addr,
			     .bytes = bytes,
			     .by_age = { .key = a->ages.ticks, .weight = bytes } };
	c->first = piece_new(a, c, addr, bytes);
	hole_insert(a, c->first);
	if (!a->heap)
		frag_tree_insert(&a->ages, &c->by_age);
	return c;
}

void frag_simarena_close(struct arena *a, struct chunk *c)
{
	FRAG_ASSERT(!c->live_count && !c->first->next);
	if (a->heap)
		hole_remove(a, c->first);
	else
		frag_tree_remove(&a->ages, &c->by_age);
	frag_slab_free(&a->pieces, c->first);
	frag_slab_free(&a->chunks, c);
}

struct chunk *frag_simarena_find(const struct arena *a, uint64_t bytes)
{
	struct frag_tree_node *n = frag_tree_last_fit(&a->ages, bytes);

	return n ? FRAG_TREE_OF(n, struct chunk, by_age) : NULL;
}

/* Takes [addr, addr + bytes) out of the hole p, which keeps the part before it. */
static struct piece *cut_from(struct arena *a, struct piece *p, frag_addr_t addr, uint64_t bytes)
{
	struct chunk *c = p->chunk;
	frag_addr_t end = p->addr + p->bytes;

	hole_remove(a, p);
	if (addr + bytes < end) {
		struct piece *rest = piece_new(a, c, addr + bytes, end - addr - bytes);

		FRAG_LINK_AFTER(p, rest);
		hole_insert(a, rest);
	}
	if (addr > p->addr) {
		struct piece *cut = piece_new(a, c, addr, bytes);

		p->bytes = addr - p->addr;
		hole_insert(a, p);
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
	hole_remove(a, last);
	last->bytes += bytes;
	c->bytes += bytes;
	hole_insert(a, last);
	note_greatest_hole(a, c);
	return true;
}

bool frag_simarena_give(struct arena *a, struct piece *p)
{
	struct chunk *c = p->chunk;

	FRAG_ASSERT(p->live);
	c->live_count--;
	p->live = false;
	if (p->next && !p->next->live) {
		hole_remove(a, p->next);
		absorb(a, p, p->next);
	}
	if (p->prev && !p->prev->live) {
		struct piece *before = p->prev;

		hole_remove(a, before);
		absorb(a, before, p);
		p = before;
	}
	hole_insert(a, p);
	note_greatest_hole(a, c);
	return !c->live_count;
}

/* ---- heap ------------------------------------------------------------------- */

void frag_simheap_open(struct arena *a, frag_addr_t addr, void *owner)
{
	frag_simarena_open(a, addr, FRAG_PAGE)->owner = owner;
}

/* Best fit, the oldest among equals; NULL if there is none. */
static struct frag_tree_node *best_hole(const struct arena *a, uint64_t bytes)
{
	return frag_tree_ceil(&a->holes, frag_round_up(bytes, HEAP_UNIT), 0);
}

bool frag_simheap_fits(const struct arena *a, uint64_t bytes)
{
	return best_hole(a, bytes) != NULL;
}

struct piece *frag_simheap_cut(struct arena *a, uint64_t bytes)
{
	struct piece *p = FRAG_TREE_OF(best_hole(a, bytes), struct piece, by_size);

	return cut_from(a, p, p->addr, frag_round_up(bytes, HEAP_UNIT));
}

void *frag_simheap_give(struct arena *a, struct piece *p)
{
	struct chunk *c = p->chunk;
	void *owner = c->owner;

	if (!frag_simarena_give(a, p))
		return NULL;
	frag_simarena_close(a, c);
	return owner;
}
