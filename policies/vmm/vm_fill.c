/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for a piece of address space: claimed or new, then mapped.
 *
 * The driver charges per handle, almost regardless of its size (measured on an H200: about
 * 45 us to map, set access and unmap 2 to 64 MiB), so the more a process holds, the larger its
 * new handles are.
 */
#include "vm.h"

/* Everything that the held block b lacks, and the pages `ahead` of it, nothing provided. */
static void need_count(struct vm_need *n, const struct vm_block *b, size_t ahead)
{
	const struct vm_arena *a = b->arena;

	*n = (struct vm_need){ .size = b->size, .ahead = ahead != 0 };
	vm_touched(a, b->addr, b->size, &n->from, &n->to);
	n->to += ahead;
	for (size_t p = n->from; p < n->to; p++) {
		size_t begin = p;

		while (p < n->to && !a->pages[p].backed)
			p++;
		for (unsigned k = 0; k < VM_SPANS; k++)
			n->slots[k] += (p - begin) >> k;
	}
}

/* ---- getting memory ---- */

static int create_handle(struct vm *v, struct vm_class *c, unsigned k, struct frag_err *err)
{
	uint64_t bytes = c->page << k;
	struct vm_handle *h;
	int rc;

	if (frag_env_over_limit(&v->env, bytes))
		return FRAG_OOM;
	h = frag_slab_alloc(&v->handles);
	FRAG_CHECK_ALLOC(h, "vmm: handles", err);
	*h = (struct vm_handle){ .span = (uint8_t)k };
	rc = frag_dev_create(v->dev, bytes, &h->id, err);
	if (rc) {
		frag_slab_free(&v->handles, h);
		return rc;
	}
	vm_spare_put(v, c, h);
	v->new_handles++;
	return 0;
}

static void use_spares(const struct vm_class *c, struct vm_need *n)
{
	for (unsigned k = VM_SPANS; k-- > 0;) {
		while (n->spare[k] < c->spare_count[k] && vm_need_fits(n, k)) {
			vm_need_fill(n, k);
			n->spare[k]++;
		}
	}
}

#define AHEAD_PART 32 /* growing ahead: at most such a part of what is held */

/*
 * The budget. A part of the time that passes may be spent in the driver; what is not spent is
 * saved, up to a limit, and what is spent beyond is a debt. The calls are priced by these constants
 * and not by the clock, so that the same trace makes the same calls on every card.
 */
#define NEW_NS 37000  /* create, map, grant: 2 to 20 MiB on an H200 */
#define MOVE_NS 26000 /* map, grant */
#define DROP_NS 17000 /* unmap */
#define SAVED_NS_MAX 40000000
#define RICH_NS 15000000      /* each such piece of what is saved halves new handles … */
#define RICH_MAX 2	      /* … at most this many times */
#define DEBT_NS 20000000      /* each such piece of debt doubles them, the first at once … */
#define DEBT_MAX 4	      /* … at most this many times */
#define OVERDRAWN_NS 28000000 /* with such a debt the slack is at its largest */

static void budget_update(struct vm *v)
{
	struct vm_budget *b = &v->budget;
	uint64_t spent =
		v->new_handles * NEW_NS + v->moved_handles * MOVE_NS + v->dropped_places * DROP_NS;

	b->credit_ns += (double)(v->dev->now_ns - b->at_ns) * v->params->budget -
			(double)(spent - b->spent_ns);
	b->credit_ns = FRAG_MIN(b->credit_ns, SAVED_NS_MAX);
	b->at_ns = v->dev->now_ns;
	b->spent_ns = spent;
}

/* How often to double the size of new handles; below zero: how often to halve it. */
static int grain(const struct vm *v)
{
	double ns = v->budget.credit_ns;

	return ns < 0 ? (int)FRAG_MIN(1 - ns / DEBT_NS, DEBT_MAX)
		      : -(int)FRAG_MIN(ns / RICH_NS, RICH_MAX);
}

/*
 * Span of new handles. A handle that a live block touches stays, so that each edge of what is live
 * costs half a handle: small ones lose little. The more is held, asked for at once, or owed,
 * the larger they are. Small requests live in few pages: theirs are small.
 */
static unsigned new_span(struct vm *v, const struct vm_class *c, const struct vm_need *n)
{
	const struct vm_params *p = v->params;
	uint64_t part = v->dev->reserved_bytes / p->coarse, most;
	unsigned k = 0;
	int g;

	budget_update(v);
	g = grain(v);
	most = FRAG_MAX(FRAG_MAX(part, FRAG_MIN(4 * part, 2 * p->piece)), p->piece);
	most = FRAG_MAX(most, n->size / p->coarse_request);
	most = g < 0 ? most >> -g : most << g;
	if (n->ahead && g > 0)
		most = FRAG_MAX(most, p->ahead);
	if (c == &v->classes[0])
		most = FRAG_MIN(most, 2 * c->page);
	most = FRAG_MIN(most, p->max_page);
	while (k + 1 < VM_SPANS && c->page << (k + 1) <= most)
		k++;
	return k;
}

/*
 * What may be held beyond the live peak before anything moves. For a small program the bytes would
 * be a lot: a fifth of them, and a hundredth of its peak. Moving costs time: with a debt, more.
 */
static double slack_of(const struct vm *v, double peak)
{
	double bytes = (double)v->params->slack_bytes;
	double owed = FRAG_MAX(0, FRAG_MIN(1, -v->budget.credit_ns / OVERDRAWN_NS));

	bytes = FRAG_MIN(bytes, bytes / 5 + peak / 100) * (1 + 2 * owed);
	return FRAG_MAX(peak * v->params->slack * (1 + owed), bytes);
}

/* How many of the pages that are left would be more than the live peak and the slack allow. */
static size_t excess(struct vm *v, const struct vm_class *c, const struct vm_need *n)
{
	uint64_t now = v->live_bytes + v->waiting_bytes + n->size;
	double peak = (double)FRAG_MAX(v->live_peak_bytes, now);
	double left = (double)vm_need_left(n), target, over;

	budget_update(v);
	target = peak + slack_of(v, peak);
	over = ((double)v->dev->reserved_bytes - target) / (double)c->page + left;
	return over <= 0 ? 0 : over >= left ? vm_need_left(n) : (size_t)over + 1;
}

/* New handles for all that is left, smaller ones where the driver refuses large ones. */
static int create_rest(struct vm *v, struct vm_class *c, struct vm_need *n, struct frag_err *err)
{
	unsigned most = VM_SPANS - 1;

	while (vm_need_left(n)) {
		unsigned k = FRAG_MIN(most, new_span(v, c, n));
		int rc;

		while (!vm_need_fits(n, k))
			k--;
		rc = create_handle(v, c, k, err);
		if (rc == FRAG_OOM && k) {
			most = k - 1;
			continue;
		}
		FRAG_TRY(rc);
		use_spares(c, n);
	}
	return 0;
}

/*
 * Provides all missing memory. Below the target it takes new memory, because memory that
 * stays where it is need not move later; above it free handles move.
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

/* Moves everything that can move and gives back what cannot be used. */
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

	if (rc == FRAG_OOM) {
		if (n->ahead) {
			vm_unclaim(v);
			need_count(n, b, 0);
			use_spares(&v->classes[b->arena->cls], n);
		}
		rc = squeeze(v, b->arena, n, err);
	}
	if (rc != FRAG_OOM)
		return rc;
	/* frees come in while waiting, and blocks merge: begin again */
	vm_unclaim(v);
	if (v->env.sync)
		v->env.sync(v->env.sync_ctx);
	FRAG_TRY(vm_close_epochs(v, err));
	need_count(n, b, 0);
	use_spares(&v->classes[b->arena->cls], n);
	return squeeze(v, b->arena, n, err);
}

/* ---- mapping ---- */

/* Takes the next provided handle of span k to page p: claimed ones first, then spare ones. */
static int place(struct vm *v, struct vm_block *b, size_t p, unsigned k, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	struct vm_class *c = &v->classes[a->cls];
	struct vm_handle *h = v->claims[k];
	struct vm_place *pl, *old;

	if (!h) {
		FRAG_TRY(vm_place_map(v, a, p, c->spare[k], &pl, err));
		vm_spare_pop(v, c, k);
		vm_place_take(v, b, pl);
		return 0;
	}
	old = h->active;
	FRAG_TRY(vm_place_map(v, a, p, h, &pl, err));
	v->claims[k] = h->next;
	v->moved_handles++;
	if (!vm_is_done(old->arena, &old->arena->pages[old->page])) {
		/* work queued on the memory is as young at the new place */
		vm_young(v, a, p, (size_t)1 << k);
		v->early_moves++;
	}
	vm_place_park(v, h->from, old);
	vm_place_take(v, b, pl);
	return 0;
}

/* Fills the gaps with what was provided, large handles first. */
static int fill(struct vm *v, struct vm_block *b, struct vm_need *n, struct frag_err *err)
{
	struct vm_arena *a = b->arena;

	for (size_t p = n->from, end = p; p < n->to;) {
		unsigned k = VM_SPANS - 1;

		if (a->pages[p].backed) {
			p++;
			continue;
		}
		for (end = FRAG_MAX(end, p); end < n->to && !a->pages[end].backed;)
			end++;
		while ((size_t)1 << k > end - p || (!v->claims[k] && !n->spare[k])) {
			FRAG_ASSERT(k);
			k--;
		}
		n->spare[k] -= !v->claims[k];
		FRAG_TRY(place(v, b, p, k, err));
		p += (size_t)1 << k;
	}
	return 0;
}

/*
 * Growing ahead: where the space behind b has never been used, one handle for this request and the
 * next ones costs as much as one for this request alone. So many pages more than b needs
 * make its last gap a whole handle. It is no loss while the slack has room for it.
 */
static size_t grow_ahead(const struct vm *v, const struct vm_block *b)
{
	const struct vm_arena *a = b->arena;
	uint64_t most = FRAG_MIN(v->dev->reserved_bytes / AHEAD_PART, v->params->ahead);
	size_t from, to, gap = 0, want = 1;

	if (!b->next || b->next->next || b->next->state != VM_FREE)
		return 0;
	while (2 * want < (size_t)1 << VM_SPANS && (2 * want) << a->shift <= most)
		want *= 2;
	vm_touched(a, b->addr, b->size, &from, &to);
	while (gap < to - from && !a->pages[to - 1 - gap].backed)
		gap++;
	if (!gap || gap >= want || (to - gap + want) << a->shift > a->bytes)
		return 0;
	for (size_t p = to; p < to - gap + want && p < a->pages_count; p++)
		if (a->pages[p].place)
			return 0;
	return want - gap;
}

/* Which memory b needs. */
static int need(struct vm *v, struct vm_block *b, struct vm_need *n, struct frag_err *err)
{
	size_t ahead = grow_ahead(v, b);

	need_count(n, b, 0);
	if (!ahead)
		return 0;
	FRAG_TRY(vm_pages_room(b->arena, n->to + ahead, err));
	need_count(n, b, ahead);
	if (excess(v, &v->classes[b->arena->cls], n))
		need_count(n, b, 0);
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
	b->state = VM_HELD;
	FRAG_TRY(vm_revive(v, b, err));
	if (!b->unmapped)
		return 0;
	FRAG_TRY(need(v, b, &n, err));
	rc = provide_hard(v, b, &n, err) ?: fill(v, b, &n, err);
	/* what was mapped before a failure stays: it is free memory at another place now */
	vm_unclaim(v);
	return rc;
}

/* The driver takes a handle back when its last mapping is gone: so all of them first. */
static void drop_arena(struct vm *v, struct vm_arena *a)
{
	for (size_t p = 0; p < a->pages_count; p++) {
		struct vm_page *pg = &a->pages[p];
		struct vm_handle *h = pg->place ? pg->place->handle : NULL;
		uint64_t bytes = vm_page_bytes(a) << pg->span;

		if (!h || pg->index)
			continue;
		frag_dev_unmap(v->dev, a->base + ((uint64_t)p << a->shift), bytes, NULL);
		if (!--h->places_count)
			frag_dev_release(v->dev, h->id, bytes, NULL);
	}
}

void vm_drop_pages(struct vm *v)
{
	for (unsigned k = 0; k < VM_CLASSES; k++)
		vm_release_spares(v, &v->classes[k], NULL, NULL);
	for (struct vm_arena *a = v->arenas; a; a = a->next)
		drop_arena(v, a);
	frag_slab_release(&v->handles);
	frag_slab_release(&v->places);
}
