/* SPDX-License-Identifier: Apache-2.0 */
/* Finding memory that can move, and giving back what is not needed. The steps are in vm.h. */
#include "vm.h"

#define SCAN_MAX 4096u /* handles looked at per request when many cannot move */

void vm_spare_put(struct vm *v, struct vm_class *c, struct vm_handle *h)
{
	h->next = c->spare[h->span];
	c->spare[h->span] = h;
	c->spare_count[h->span]++;
	v->spare_bytes += c->page << h->span;
}

void vm_spare_pop(struct vm *v, struct vm_class *c, unsigned span)
{
	c->spare[span] = c->spare[span]->next;
	c->spare_count[span]--;
	v->spare_bytes -= c->page << span;
}

static void claim_add(struct vm *v, struct vm_block *b, struct vm_handle *h)
{
	h->from = b;
	h->next = v->claims[h->span];
	v->claims[h->span] = h;
}

/* ---- claiming what free blocks do not need ---- */

/* Pages wholly inside a free block, as [from, to), cut at the end of the table. */
static void inner_pages(const struct vm_block *b, size_t *from, size_t *to)
{
	const struct vm_arena *a = b->arena;

	*from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	*to = FRAG_MIN((b->addr - a->base + b->size) >> a->shift, a->pages_count);
}

/* The last handle wholly inside [from, *to); *to becomes its first page. NULL: there is none. */
static struct vm_page *handle_before(const struct vm_arena *a, size_t from, size_t *to)
{
	size_t end = *to;

	while (end > from) {
		struct vm_page *pg = &a->pages[end - 1];

		if (!pg->backed) {
			end--;
			continue;
		}
		if (end - from <= pg->index)
			return NULL;
		end -= pg->index + 1u;
		if (end + ((size_t)1 << pg->span) <= *to) {
			*to = end;
			return pg - pg->index;
		}
	}
	return NULL;
}

/* Claims in arena `a` for `to` until `least` pages are left to find, highest addresses first. */
static void claim_from(struct vm *v, struct vm_arena *a, const struct vm_arena *to,
		       struct vm_need *n, size_t least, size_t *scan)
{
	/* the stream itself keeps the order of old and new work on this memory */
	bool early = v->params->alias && a->stream == to->stream;
	struct frag_bset_node *at = frag_bset_last(&a->whole);

	for (; at; at = frag_bset_prev(&a->whole, at)) {
		struct vm_block *b = at->value;
		struct vm_page *pg;
		size_t from, end;

		inner_pages(b, &from, &end);
		while ((pg = handle_before(a, from, &end))) {
			if (vm_need_left(n) <= least || !*scan)
				return;
			--*scan;
			if (pg->place->handle->from || !vm_need_fits(n, pg->span) ||
			    (!early && !vm_is_done(a, pg)))
				continue;
			claim_add(v, b, pg->place->handle);
			vm_need_fill(n, pg->span);
		}
	}
}

/* Claims for arena `to`: from itself, then from others with such pages. */
int vm_claim(struct vm *v, struct vm_arena *to, struct vm_need *n, size_t least,
	     struct frag_err *err)
{
	size_t scan = SCAN_MAX;

	FRAG_TRY(vm_epoch_close(v, to, err));
	if (!v->params->alias) /* else its own memory may move early */
		FRAG_TRY(vm_epoch_update(v, to, err));
	claim_from(v, to, to, n, least, &scan);
	for (struct vm_arena *a = v->arenas; a && vm_need_left(n) > least; a = a->next) {
		if (a == to || a->shift != to->shift || a->pool != to->pool)
			continue;
		FRAG_TRY(vm_epoch_close(v, a, err));
		FRAG_TRY(vm_epoch_update(v, a, err));
		claim_from(v, a, to, n, least, &scan);
	}
	return 0;
}

void vm_unclaim(struct vm *v)
{
	for (unsigned k = 0; k < VM_SPANS; k++) {
		for (; v->claims[k]; v->claims[k] = v->claims[k]->next)
			v->claims[k]->from = NULL;
	}
}

/* ---- giving memory back ---- */

/* The first spare handle of a span goes back to the device. */
static int release_spare(struct vm *v, struct vm_class *c, unsigned span, struct frag_err *err)
{
	struct vm_handle *h = c->spare[span];

	while (h->places)
		FRAG_TRY(vm_place_drop(v, h->places, err));
	FRAG_TRY(frag_dev_release(v->dev, h->id, c->page << h->span, err));
	vm_spare_pop(v, c, span);
	frag_slab_free(&v->handles, h);
	v->released_handles++;
	return 0;
}

/* All spare handles of a class but those that `keep` (may be NULL) counts. */
int vm_release_spares(struct vm *v, struct vm_class *c, const size_t *keep, struct frag_err *err)
{
	for (unsigned k = 0; k < VM_SPANS; k++) {
		while (c->spare_count[k] > (keep ? keep[k] : 0))
			FRAG_TRY(release_spare(v, c, k, err));
	}
	return 0;
}

/* May every mapping of the handle go? */
static bool all_done(const struct vm_handle *h)
{
	for (const struct vm_place *pl = h->places; pl; pl = pl->next)
		if (!vm_is_done(pl->arena, &pl->arena->pages[pl->page]))
			return false;
	return true;
}

/* Unmaps and releases one handle that lies wholly inside the free block b. */
static int retire_handle(struct vm *v, struct vm_block *b, struct vm_handle *h,
			 struct frag_err *err)
{
	struct vm_class *c = &v->classes[b->arena->cls];

	for (struct vm_place *pl = h->places, *next; pl; pl = next) {
		next = pl->next;
		if (pl != h->active)
			FRAG_TRY(vm_place_drop(v, pl, err));
	}
	vm_place_park(v, b, h->active);
	vm_spare_put(v, c, h);
	return release_spare(v, c, h->span, err);
}

/* Gives handles of an arena back down to `goal` bytes, highest addresses first. */
static int retire(struct vm *v, struct vm_arena *a, uint64_t goal, size_t scan,
		  struct frag_err *err)
{
	struct frag_bset_node *at;

	FRAG_TRY(vm_epoch_close(v, a, err));
	FRAG_TRY(vm_epoch_update(v, a, err));
	at = frag_bset_last(&a->whole);
	while (at) {
		struct vm_block *b = at->value;
		frag_addr_t addr = b->addr;
		struct vm_page *pg;
		size_t from, end;

		inner_pages(b, &from, &end);
		while ((pg = handle_before(a, from, &end))) {
			if (v->dev->reserved_bytes <= goal || !scan)
				return 0;
			scan--;
			if (!pg->place->handle->from && all_done(pg->place->handle))
				FRAG_TRY(retire_handle(v, b, pg->place->handle, err));
		}
		/* the set may have changed: go on below */
		at = frag_bset_below(&a->whole, 0, addr);
	}
	return 0;
}

int vm_release(struct vm *v, uint16_t pool, struct frag_err *err)
{
	for (struct vm_arena *a = v->arenas; a; a = a->next)
		if (a->pool == pool)
			FRAG_TRY(retire(v, a, 0, SIZE_MAX, err));
	for (unsigned k = 0; k < VM_CLASSES; k++)
		FRAG_TRY(vm_release_spares(v, &v->classes[k], NULL, err));
	return 0;
}

/* Gives back handles that are not needed, or do not fit where they are needed, to make room for
 * others. Private pools keep theirs: a graph may use them. */
int vm_make_room(struct vm *v, uint64_t bytes, struct frag_err *err)
{
	uint64_t goal = v->dev->reserved_bytes > bytes ? v->dev->reserved_bytes - bytes : 0;

	for (struct vm_arena *a = v->arenas; a && v->dev->reserved_bytes > goal; a = a->next)
		if (!a->pool)
			FRAG_TRY(retire(v, a, goal, SCAN_MAX, err));
	return 0;
}
