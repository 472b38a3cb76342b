/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for a piece of address space: claimed or new, then mapped.
 *
 * The driver's price is one per handle, almost whatever its size (measured on an
 * H200: about 45 us to map, set access and unmap 2 to 64 MiB), so the more a
 * process holds, the larger are its new handles.
 */
#include "vm_move.h"

/* Everything that the held block b lacks, nothing provided. */
static void need_count(struct vm_need *n, const struct vm_block *b)
{
	const struct vm_arena *a = b->arena;

	*n = (struct vm_need){ .size = b->size };
	vm_touched(a, b->addr, b->size, &n->from, &n->to);
	for (size_t p = n->from; p < n->to; p++) {
		size_t begin = p;

		while (p < n->to && !a->pages[p].handle)
			p++;
		for (unsigned k = 0; k < VM_SPANS; k++)
			n->slots[k] += (p - begin) >> k;
	}
}

/* ---- getting memory ---- */

static int create_handle(struct vm *v, struct vm_class *c, unsigned k, struct frag_err *err)
{
	uint64_t bytes = c->page << k;
	struct vm_spares *s = &c->spare[k];

	FRAG_TRY(vm_spare_room(s, err));
	if (v->dev->reserved_bytes > v->env.limit_bytes ||
	    v->env.limit_bytes - v->dev->reserved_bytes < bytes)
		return FRAG_OOM;
	FRAG_TRY(frag_dev_create(v->dev, bytes, &s->list[s->count], err));
	s->count++;
	v->spare_bytes += bytes;
	v->new_handles++;
	return 0;
}

static void use_spares(const struct vm_class *c, struct vm_need *n)
{
	for (unsigned k = VM_SPANS; k-- > 0;) {
		while (n->spare[k] < c->spare[k].count && vm_need_fits(n, k)) {
			vm_need_fill(n, k);
			n->spare[k]++;
		}
	}
}

/*
 * Span of new handles: the more is held, or asked for at once, the larger they are. Two pages
 * come early, because they halve the price of growing and cost little room.
 */
static unsigned new_span(const struct vm *v, const struct vm_class *c, uint64_t size)
{
	uint64_t part = v->dev->reserved_bytes / v->params->coarse, most;
	unsigned k = 0;

	most = FRAG_MAX(FRAG_MAX(part, FRAG_MIN(4 * part, 2 * c->page)),
			size / v->params->coarse_request);
	most = FRAG_MIN(most, v->params->max_page);
	while (k + 1 < VM_SPANS && c->page << (k + 1) <= most)
		k++;
	return k;
}

/* How many of the pages that are left would be more than the live peak and the slack allow. */
static size_t excess(const struct vm *v, const struct vm_class *c, const struct vm_need *n)
{
	uint64_t now = v->live_bytes + v->waiting_bytes + n->size;
	uint64_t peak = FRAG_MAX(v->live_peak_bytes, now);
	double slack = FRAG_MAX((double)peak * v->params->slack, (double)v->params->slack_bytes);
	double target = (double)peak + slack;
	double left = (double)vm_need_left(n);
	double over = ((double)v->dev->reserved_bytes - target) / (double)c->page + left;

	return over <= 0 ? 0 : over >= left ? vm_need_left(n) : (size_t)over + 1;
}

/* New handles for all that is left, smaller ones where the driver refuses large ones. */
static int create_rest(struct vm *v, struct vm_class *c, struct vm_need *n, struct frag_err *err)
{
	unsigned k = new_span(v, c, n->size);

	while (vm_need_left(n)) {
		int rc;

		while (!vm_need_fits(n, k))
			k--;
		rc = create_handle(v, c, k, err);
		if (rc == FRAG_OOM && k) {
			k--;
			continue;
		}
		FRAG_TRY(rc);
		use_spares(c, n);
	}
	return 0;
}

/*
 * Provides all that is lacking. Below the target new memory is taken, because what
 * stays mapped where it is saves moving later; above it free handles move.
 */
static int provide(struct vm *v, struct vm_arena *a, struct vm_need *n, struct frag_err *err)
{
	struct vm_class *c = &v->classes[a->cls];
	size_t more;

	use_spares(c, n);
	more = excess(v, c, n);
	if (more)
		FRAG_TRY(vm_claim(v, a, n, vm_need_left(n) - more, err));
	more = excess(v, c, n);
	if (more)
		FRAG_TRY(vm_make_room(v, more * c->page, err));
	return create_rest(v, c, n, err);
}

/* Everything that can move must, and what cannot be used goes back. */
static int squeeze(struct vm *v, struct vm_arena *a, struct vm_need *n, struct frag_err *err)
{
	for (unsigned k = 0; k < VM_CLASSES; k++)
		FRAG_TRY(vm_release_spares(v, &v->classes[k], k == a->cls ? n->spare : NULL, err));
	FRAG_TRY(vm_claim(v, a, n, 0, err));
	if (vm_need_left(n))
		FRAG_TRY(vm_make_room(v, (uint64_t)vm_need_left(n) << a->shift, err));
	return create_rest(v, &v->classes[a->cls], n, err);
}

/* The driver is out of memory: squeeze, first without, then with waiting for the device. */
static int provide_hard(struct vm *v, struct vm_block *b, struct vm_need *n, struct frag_err *err)
{
	int rc = provide(v, b->arena, n, err);

	if (rc == FRAG_OOM)
		rc = squeeze(v, b->arena, n, err);
	if (rc != FRAG_OOM)
		return rc;
	/* frees come in while waiting, and blocks merge: begin again */
	vm_unclaim(v);
	if (v->env.sync)
		v->env.sync(v->env.sync_ctx);
	FRAG_TRY(vm_settle(v, err));
	need_count(n, b);
	use_spares(&v->classes[b->arena->cls], n);
	return squeeze(v, b->arena, n, err);
}

/* ---- mapping ---- */

/* One handle of span k becomes visible at page p. */
static int map_handle(struct vm *v, struct vm_arena *a, size_t p, unsigned k, uint64_t handle,
		      struct frag_err *err)
{
	frag_addr_t addr = a->base + ((uint64_t)p << a->shift);
	uint64_t bytes = vm_page_bytes(a) << k;
	int rc;

	FRAG_TRY(frag_dev_map(v->dev, addr, bytes, handle, err));
	for (size_t i = 0; i < (size_t)1 << k; i++) {
		a->pages[p + i].span = (uint8_t)k;
		a->pages[p + i].index = (uint8_t)i;
	}
	rc = frag_dev_set_access(v->dev, addr, bytes, err);
	if (rc) {
		if (frag_dev_unmap(v->dev, addr, bytes, NULL))
			vm_stale_add(a, p); /* later, then */
		return rc;
	}
	for (size_t i = 0; i < (size_t)1 << k; i++)
		a->pages[p + i].handle = handle;
	v->mapped_bytes += bytes;
	return 0;
}

/* Takes the next provided handle of span k to page p: claimed ones first, then spare ones. */
static int place(struct vm *v, struct vm_arena *a, size_t p, unsigned k, struct frag_err *err)
{
	struct vm_claims *c = &v->claims[k];
	struct vm_spares *s = &v->classes[a->cls].spare[k];
	struct vm_claim m;
	struct vm_arena *old;

	if (!c->count) {
		FRAG_TRY(map_handle(v, a, p, k, s->list[s->count - 1], err));
		s->count--;
		v->spare_bytes -= vm_page_bytes(a) << k;
		return 0;
	}
	m = c->list[c->count - 1];
	old = m.b->arena;
	FRAG_TRY(map_handle(v, a, p, k, old->pages[m.page].handle, err));
	c->count--;
	v->moved_handles++;
	if (!vm_is_done(old, &old->pages[m.page])) {
		/* work queued on the memory is as young at the new place */
		vm_young(v, a, p, (size_t)1 << k);
		v->early_moves++;
	}
	vm_forget(v, m.b, m.page);
	vm_stale_add(old, m.page);
	return 0;
}

/* Fills the gaps with what was provided, large handles first. */
static int fill(struct vm *v, struct vm_block *b, struct vm_need *n, struct frag_err *err)
{
	struct vm_arena *a = b->arena;

	for (size_t p = n->from; p < n->to;) {
		size_t end = p;
		unsigned k = VM_SPANS - 1;

		if (a->pages[p].handle) {
			p++;
			continue;
		}
		while (end < n->to && !a->pages[end].handle)
			end++;
		while ((size_t)1 << k > end - p || !(v->claims[k].count + n->spare[k])) {
			FRAG_ASSERT(k);
			k--;
		}
		n->spare[k] -= !v->claims[k].count;
		FRAG_TRY(place(v, a, p, k, err));
		b->unmapped -= (size_t)1 << k;
		p += (size_t)1 << k;
	}
	return 0;
}

int vm_back(struct vm *v, struct vm_block *b, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	size_t from, to;
	struct vm_need n;
	int rc;

	vm_touched(a, b->addr, b->size, &from, &to);
	FRAG_TRY(vm_pages_room(a, to, err));
	FRAG_TRY(vm_stale_room(a, to - from, err));
	b->state = VM_HELD;
	need_count(&n, b);
	rc = provide_hard(v, b, &n, err);
	if (!rc)
		rc = fill(v, b, &n, err);
	/* what was mapped before a failure stays: it is free memory at another place now */
	vm_unclaim(v);
	return rc;
}

void vm_drop_pages(struct vm *v)
{
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		for (size_t p = 0; p < a->pages_count; p++) {
			const struct vm_page *pg = &a->pages[p];
			uint64_t bytes = vm_page_bytes(a) << pg->span;

			if ((!pg->handle && !pg->stale) || pg->index)
				continue;
			frag_dev_unmap(v->dev, a->base + ((uint64_t)p << a->shift), bytes, NULL);
			if (pg->handle)
				frag_dev_release(v->dev, pg->handle, bytes, NULL);
		}
	}
	for (unsigned k = 0; k < VM_CLASSES; k++)
		vm_release_spares(v, &v->classes[k], NULL, NULL);
	for (unsigned k = 0; k < VM_SPANS; k++) {
		for (unsigned c = 0; c < VM_CLASSES; c++)
			frag_host_free(v->classes[c].spare[k].list);
		frag_host_free(v->claims[k].list);
	}
}
