/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places: where handles are mapped.
 *
 * Memory that moves stays mapped at its old place as well: at first because work queued
 * before the free may still use that address, and then because it may come back, which costs no
 * call. Programs repeat themselves, so it often does. A parked place goes when its pages are wanted
 * for another handle, when its own handle has too many, or when that is released.
 *
 * Invariant: the pages of a parked place are wholly inside one free block.
 */
#include "vm.h"

/* ---- one place ---- */

static struct vm_page *pages_of(const struct vm_place *pl)
{
	return &pl->arena->pages[pl->page];
}

static size_t pages_count(const struct vm_place *pl)
{
	return (size_t)1 << pl->handle->span;
}

static bool is_parked(const struct vm_place *pl)
{
	return pl->handle->active != pl;
}

/*
 * May a parked mapping be removed? Not in a private pool: captured graphs use its addresses at
 * every replay. Two addresses of one memory do not harm a graph, just as reuse in place does not:
 * a graph, too, runs old work before new work.
 */
static bool may_drop(const struct vm_place *pl)
{
	return !pl->arena->pool && vm_is_done(pl->arena, pages_of(pl));
}

static void unlink_place(struct vm *v, struct vm_place *pl)
{
	struct vm_handle *h = pl->handle;
	struct vm_place **at = &h->places;
	struct vm_page *pg = pages_of(pl);

	for (size_t i = 0; i < pages_count(pl); i++)
		pg[i].place = NULL;
	while (*at != pl)
		at = &(*at)->next;
	*at = pl->next;
	h->places_count--;
	pl->arena->parked_count--;
	frag_slab_free(&v->places, pl);
}

int vm_place_drop(struct vm *v, struct vm_place *pl, struct frag_err *err)
{
	struct vm_arena *a = pl->arena;

	FRAG_TRY(frag_dev_unmap(v->dev, a->base + ((uint64_t)pl->page << a->shift),
				vm_page_bytes(a) << pl->handle->span, err));
	unlink_place(v, pl);
	v->dropped_places++;
	return 0;
}

/* A handle with too many places loses its oldest one that can go. */
static int limit_places(struct vm *v, struct vm_handle *h, struct frag_err *err)
{
	struct vm_place *oldest = NULL;

	if (h->places_count < VM_PLACES)
		return 0;
	for (struct vm_place *pl = h->places; pl; pl = pl->next)
		if (is_parked(pl) && may_drop(pl))
			oldest = pl;
	return oldest ? vm_place_drop(v, oldest, err) : 0;
}

int vm_place_map(struct vm *v, struct vm_arena *a, size_t page, struct vm_handle *h,
		 struct vm_place **out, struct frag_err *err)
{
	frag_addr_t addr = a->base + ((uint64_t)page << a->shift);
	uint64_t bytes = vm_page_bytes(a) << h->span;
	struct vm_place *pl;
	int rc;

	FRAG_TRY(limit_places(v, h, err));
	pl = frag_slab_alloc(&v->places);
	FRAG_CHECK_ALLOC(pl, "vmm: places", err);
	rc = frag_dev_map(v->dev, addr, bytes, h->id, err);
	if (rc) {
		frag_slab_free(&v->places, pl);
		return rc;
	}
	*pl = (struct vm_place){ .handle = h, .arena = a, .page = page, .next = h->places };
	h->places = pl;
	h->places_count++;
	a->parked_count++;
	for (size_t i = 0; i < pages_count(pl); i++) {
		struct vm_page *pg = &a->pages[page + i];

		pg->place = pl;
		pg->span = h->span;
		pg->index = (uint8_t)i;
	}
	rc = frag_dev_set_access(v->dev, addr, bytes, err);
	if (rc) {
		/* useless now; if the call fails, it goes when the pages are wanted */
		if (!frag_dev_unmap(v->dev, addr, bytes, NULL))
			unlink_place(v, pl);
		return rc;
	}
	pl->access = true;
	*out = pl;
	return 0;
}

void vm_place_park(struct vm *v, struct vm_block *b, struct vm_place *pl)
{
	struct vm_page *pg = pages_of(pl);

	vm_free_erase(v, b);
	for (size_t i = 0; i < pages_count(pl); i++)
		pg[i].backed = false;
	pl->handle->from = NULL;
	pl->handle->active = NULL;
	pl->arena->parked_count++;
	b->unmapped += pages_count(pl);
	v->mapped_bytes -= vm_page_bytes(pl->arena) << pl->handle->span;
	vm_free_insert(v, b);
}

/* ---- coming back ---- */

/* The free block that an active place lies wholly inside of; NULL: it is in use. */
static struct vm_block *idle_block(const struct vm_place *pl)
{
	struct vm_arena *a = pl->arena;
	frag_addr_t addr = a->base + ((uint64_t)pl->page << a->shift);
	struct frag_bset_node *at = frag_bset_below(&a->whole, 0, addr + 1);
	struct vm_block *b;

	if (!at)
		return NULL;
	b = at->value;
	return addr + (pages_count(pl) << a->shift) <= b->addr + b->size ? b : NULL;
}

/* Could the memory of a parked place come back for a piece that touches the pages [from, to)?
 * Then the free block that it leaves, else NULL. */
static struct vm_block *could_revive(const struct vm *v, const struct vm_place *pl, size_t from,
				     size_t to)
{
	const struct vm_place *now = pl->handle->active;
	bool early;

	if (!pl->access || !now || pl->handle->from)
		return NULL;
	if (now->arena == pl->arena && now->page < to && now->page + pages_count(now) > from)
		return NULL;
	early = v->params->alias && now->arena->stream == pl->arena->stream;
	if (!early && !vm_is_done(now->arena, pages_of(now)))
		return NULL;
	return idle_block(now);
}

bool vm_fit(struct vm *v, const struct vm_block *b, uint64_t size, bool strict, uint64_t *skip)
{
	const struct vm_arena *a = b->arena;
	size_t from, to;

	*skip = 0;
	if (!a->parked_count)
		return size <= b->size;
	vm_touched(a, b->addr, size, &from, &to);
	for (size_t p = from; p < to && p < a->pages_count;) {
		const struct vm_place *pl = a->pages[p].place;

		if (a->pages[p].backed || !pl) {
			p++;
			continue;
		}
		p = pl->page + pages_count(pl);
		if (may_drop(pl) || (!strict && could_revive(v, pl, from, to)))
			continue;
		v->unsure = true;
		/* begin again behind it */
		*skip = a->base + ((uint64_t)p << a->shift) - b->addr;
		if (*skip + size > b->size)
			return false;
		vm_touched(a, b->addr + *skip, size, &from, &to);
	}
	return *skip + size <= b->size;
}

static void activate(struct vm *v, struct vm_place *pl)
{
	struct vm_page *pg = pages_of(pl);

	FRAG_ASSERT(!pl->handle->active);
	pl->handle->active = pl;
	pl->arena->parked_count--;
	for (size_t i = 0; i < pages_count(pl); i++)
		pg[i].backed = true;
	v->mapped_bytes += vm_page_bytes(pl->arena) << pl->handle->span;
}

void vm_place_take(struct vm *v, struct vm_block *b, struct vm_place *pl)
{
	size_t end = pl->page + pages_count(pl), low, high, from, to;

	vm_touched(b->arena, b->addr, b->size, &from, &to);
	/* pages beside those of the piece are in its free neighbours, which count what they lack */
	low = pl->page < from ? from - pl->page : 0;
	high = end > to ? end - FRAG_MAX(to, pl->page) : 0;
	if (low)
		vm_free_erase(v, b->prev);
	if (high)
		vm_free_erase(v, b->next);
	activate(v, pl);
	b->unmapped -= pages_count(pl) - low - high;
	if (low) {
		b->prev->unmapped -= low;
		vm_free_insert(v, b->prev);
	}
	if (high) {
		b->next->unmapped -= high;
		vm_free_insert(v, b->next);
	}
}

/* The memory of a parked place comes back to it from the free block `leaves`. */
static void revive(struct vm *v, struct vm_block *b, struct vm_place *pl, struct vm_block *leaves)
{
	struct vm_place *old = pl->handle->active;
	bool young = !vm_is_done(old->arena, pages_of(old));

	vm_place_park(v, leaves, old);
	vm_place_take(v, b, pl);
	if (young)
		vm_young(v, pl->arena, pl->page, pages_count(pl));
	v->revived_handles++;
}

int vm_revive(struct vm *v, struct vm_block *b, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	bool blocked = false;
	size_t from, to;

	if (!a->parked_count)
		return 0;
	vm_touched(a, b->addr, b->size, &from, &to);
	for (size_t p = from; p < to;) {
		struct vm_place *pl = a->pages[p].place;
		struct vm_block *leaves;

		if (a->pages[p].backed || !pl) {
			p++;
			continue;
		}
		p = pl->page + pages_count(pl);
		leaves = could_revive(v, pl, from, to);
		if (leaves)
			revive(v, b, pl, leaves);
		else if (may_drop(pl))
			FRAG_TRY(vm_place_drop(v, pl, err));
		else
			blocked = true;
	}
	return blocked ? VM_BLOCKED : 0;
}
