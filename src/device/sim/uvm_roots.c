/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The physical memory under a card's managed memory (see uvm_roots.h).
 *
 * Invariants: a chunk is in the free list of its size, or cut, or in use; cut->used_count parts of
 * a cut chunk are not free, and it is not 0; used_count counts the roots that are cut and those in
 * use as a whole.
 */
#include "uvm_roots.h"

#define GROUP_PAGES (unsigned)(UVM_GROUP / UVM_PAGE)

/* Memory cut into equal parts: a root into groups, or one of these into pages. */
struct uvm_cut {
	struct uvm_chunk *whole; /* NULL: a root */
	uint32_t used_count;
	struct uvm_chunk parts[];
};

static unsigned parts_count(const struct uvm_cut *cut)
{
	return cut->whole ? GROUP_PAGES : UVM_GROUPS;
}

static enum uvm_chunk_size parts_size(const struct uvm_cut *cut)
{
	return cut->whole ? UVM_CHUNK_PAGE : UVM_CHUNK_GROUP;
}

void frag_uvmroots_init(struct uvm_roots *m)
{
	const size_t part = sizeof(struct uvm_chunk);

	*m = (struct uvm_roots){ 0 };
	frag_slab_init(&m->cut_slab[UVM_CHUNK_GROUP], sizeof(struct uvm_cut) + UVM_GROUPS * part);
	frag_slab_init(&m->cut_slab[UVM_CHUNK_PAGE], sizeof(struct uvm_cut) + GROUP_PAGES * part);
}

void frag_uvmroots_release(struct uvm_roots *m)
{
	for (unsigned i = 0; i < UVM_CHUNK_SIZES; i++)
		frag_slab_release(&m->cut_slab[i]);
	frag_uvmroots_init(m);
}

bool frag_uvmroots_reserve(struct uvm_roots *m)
{
	/* up to 31 groups and 15 pages, which start at most one root and one of its groups */
	return !frag_slab_reserve(&m->cut_slab[UVM_CHUNK_GROUP], 1) &&
	       !frag_slab_reserve(&m->cut_slab[UVM_CHUNK_PAGE], 1);
}

void frag_uvmroots_take(struct uvm_roots *m, uint64_t count)
{
	if (count > m->spare_count)
		m->spare_count += frag_round_up(count - m->spare_count, UVM_BATCH);
	m->spare_count -= count;
	m->used_count += count;
}

/* ---- chunks -------------------------------------------------------------------- */

static void append_free(struct uvm_roots *m, struct uvm_chunk *c)
{
	struct uvm_chunks *free = &m->free[parts_size(c->cut)];

	c->prev = free->last;
	c->next = NULL;
	*(free->last ? &free->last->next : &free->first) = c;
	free->last = c;
}

static void remove_free(struct uvm_roots *m, struct uvm_chunk *c)
{
	struct uvm_chunks *free = &m->free[parts_size(c->cut)];

	*(c->prev ? &c->prev->next : &free->first) = c->next;
	*(c->next ? &c->next->prev : &free->last) = c->prev;
}

static struct uvm_chunk *use_first(struct uvm_roots *m, enum uvm_chunk_size size)
{
	struct uvm_chunk *c = m->free[size].first;

	remove_free(m, c);
	c->cut->used_count++;
	return c;
}

/* whole: a larger chunk that is in use; NULL: a root. */
static void cut_up(struct uvm_roots *m, struct uvm_chunk *whole)
{
	struct frag_slab *slab = &m->cut_slab[whole ? UVM_CHUNK_PAGE : UVM_CHUNK_GROUP];
	struct uvm_cut *cut = frag_slab_alloc(slab);

	cut->whole = whole;
	cut->used_count = 0;
	for (unsigned i = 0; i < parts_count(cut); i++) {
		cut->parts[i].cut = cut;
		append_free(m, &cut->parts[i]);
	}
}

static void need_free(struct uvm_roots *m, enum uvm_chunk_size size)
{
	if (m->free[size].first)
		return;
	if (size == UVM_CHUNK_PAGE) {
		need_free(m, UVM_CHUNK_GROUP);
		cut_up(m, use_first(m, UVM_CHUNK_GROUP));
	} else {
		frag_uvmroots_take(m, 1);
		cut_up(m, NULL);
	}
}

void frag_uvmroots_take_chunk(struct uvm_roots *m, enum uvm_chunk_size size,
			      struct uvm_chunks *list)
{
	struct uvm_chunk *c;

	need_free(m, size);
	c = use_first(m, size);
	c->next = NULL;
	*(list->last ? &list->last->next : &list->first) = c;
	list->last = c;
}

/* Merges a cut chunk with only free parts. Returns the chunk. */
static struct uvm_chunk *merge(struct uvm_roots *m, struct uvm_cut *cut)
{
	struct uvm_chunk *whole = cut->whole;

	for (unsigned i = 0; i < parts_count(cut); i++)
		remove_free(m, &cut->parts[i]);
	frag_slab_free(&m->cut_slab[parts_size(cut)], cut);
	return whole;
}

/* True: it was the last part in use of its cut chunk. */
static bool unuse(struct uvm_roots *m, struct uvm_chunk *c)
{
	append_free(m, c);
	return !--c->cut->used_count;
}

static void give_chunk(struct uvm_roots *m, struct uvm_chunk *c)
{
	if (!unuse(m, c))
		return;
	c = merge(m, c->cut);
	if (!c) {
		frag_uvmroots_give(m, 1);
		return;
	}
	if (unuse(m, c)) {
		merge(m, c->cut);
		frag_uvmroots_give(m, 1);
	} else if (m->spare_count) {
		/* after any merge, the driver looks for a root that it can return */
		m->spare_count--;
	}
}

void frag_uvmroots_give_chunks(struct uvm_roots *m, struct uvm_chunks *list)
{
	struct uvm_chunk *c = list->first;

	while (c) {
		struct uvm_chunk *next = c->next;

		give_chunk(m, c);
		c = next;
	}
	*list = (struct uvm_chunks){ 0 };
}
