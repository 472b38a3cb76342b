/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: where memory is mapped, which pages may move, and moving them.
 *
 * The cost of the driver's calls follows the number of handles (measured on an
 * H200: about 60 us to unmap, map and set access of one handle of 2 to 64 MiB), so
 * what is counted here are pages, and the page size grows with the class.
 */
#include "vm.h"

#include <string.h>

#define EPOCH_NS 1000000u /* a fence per millisecond of frees … */
#define EPOCH_FREES 256u  /* … or so many of them */
#define SCAN_MAX 4096u	  /* pages looked at per request when many are too young */

size_t vm_inner(const struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	uint64_t page = vm_page_bytes(a);
	uint64_t from = (addr - a->base + page - 1) >> a->shift;
	uint64_t to = (addr - a->base + size) >> a->shift;

	return to > from ? to - from : 0;
}

/* Pages that [addr, addr + size) touches, as [from, to). */
static void touched(const struct vm_arena *a, frag_addr_t addr, uint64_t size, size_t *from,
		    size_t *to)
{
	*from = (addr - a->base) >> a->shift;
	*to = (addr - a->base + size + vm_page_bytes(a) - 1) >> a->shift;
}

static bool is_mapped(const struct vm_arena *a, size_t page)
{
	return page < a->pages_count && a->pages[page].handle;
}

size_t vm_missing(const struct vm_block *b, uint64_t size)
{
	size_t from, to, n = 0;

	if (!b->unmapped)
		return 0;
	touched(b->arena, b->addr, size, &from, &to);
	for (size_t p = from; p < to; p++)
		n += !is_mapped(b->arena, p);
	return n;
}

static int pages_room(struct vm_arena *a, size_t want, struct frag_err *err)
{
	size_t cap = FRAG_MAX(want, 2 * a->pages_count);
	struct vm_page *pages;

	if (want <= a->pages_count)
		return 0;
	pages = frag_host_realloc(a->pages, cap, sizeof(*pages));
	if (!pages)
		return frag_fail_nomem(err, "vmm: pages");
	memset(pages + a->pages_count, 0, (cap - a->pages_count) * sizeof(*pages));
	a->pages = pages;
	a->pages_count = cap;
	return 0;
}

static int spare_room(struct vm_class *c, size_t more, struct frag_err *err)
{
	size_t want = c->spare_count + more;
	uint64_t *spare;

	if (want <= c->spare_cap)
		return 0;
	want = FRAG_MAX(want, 2 * c->spare_cap);
	spare = frag_host_realloc(c->spare, want, sizeof(*spare));
	if (!spare)
		return frag_fail_nomem(err, "vmm: spare pages");
	c->spare = spare;
	c->spare_cap = want;
	return 0;
}

/* ---- epochs ---- */

static int close_epoch(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	/* no room for another fence: the epoch just goes on */
	if (!a->epoch_frees || a->epoch - a->done_epoch >= VM_FENCES)
		return 0;
	FRAG_TRY(frag_dev_fence_record(v->dev, a->stream, &a->fences[a->epoch % VM_FENCES], err));
	a->epoch++;
	a->epoch_frees = 0;
	return 0;
}

static int update_done(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	bool done = true;

	while (a->done_epoch < a->epoch) {
		FRAG_TRY(frag_dev_fence_done(v->dev, a->fences[a->done_epoch % VM_FENCES],
					     v->params->lag_us * 1000, &done, err));
		if (!done)
			return 0;
		a->done_epoch++;
	}
	return 0;
}

int vm_touch(struct vm *v, struct vm_arena *a, frag_addr_t addr, uint64_t size,
	     struct frag_err *err)
{
	size_t from, to;

	touched(a, addr, size, &from, &to);
	for (size_t p = from; p < to; p++)
		a->pages[p].epoch = a->epoch;
	if (!a->epoch_frees++)
		a->epoch_ns = v->dev->now_ns;
	if (a->epoch_frees >= EPOCH_FREES || v->dev->now_ns - a->epoch_ns >= EPOCH_NS) {
		FRAG_TRY(update_done(v, a, err));
		return close_epoch(v, a, err);
	}
	return 0;
}

int vm_settle(struct vm *v, struct frag_err *err)
{
	FRAG_TRY(frag_dev_sync_all(v->dev, err));
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		a->epoch++;
		a->done_epoch = a->epoch;
		a->epoch_frees = 0;
	}
	return 0;
}

/* ---- taking pages from where they are not needed ---- */

/* Unmaps one page that lies wholly inside the free block b; its handle becomes spare. */
static int take_page(struct vm *v, struct vm_block *b, size_t page, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	struct vm_class *c = &v->classes[a->cls];

	FRAG_TRY(spare_room(c, 1, err));
	FRAG_TRY(frag_dev_unmap(v->dev, a->base + ((uint64_t)page << a->shift), c->page, err));
	vm_free_erase(v, b);
	c->spare[c->spare_count++] = a->pages[page].handle;
	a->pages[page].handle = 0;
	v->mapped_bytes -= c->page;
	b->unmapped++;
	vm_free_insert(v, b);
	return 0;
}

/* Takes up to `want` pages out of one free block, the highest first. */
static int take_from(struct vm *v, struct vm_block *b, size_t want, size_t *scan, size_t *got,
		     struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	size_t from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	size_t to = (b->addr - a->base + b->size) >> a->shift;

	for (size_t p = FRAG_MIN(to, a->pages_count); p-- > from && *got < want && *scan;) {
		if (!b->whole)
			return 0;
		if (!a->pages[p].handle)
			continue;
		--*scan;
		if (a->pages[p].epoch >= a->done_epoch)
			continue;
		FRAG_TRY(take_page(v, b, p, err));
		++*got;
	}
	return 0;
}

/* Moves up to `want` pages of a class to spare, from the highest addresses down. */
static int harvest(struct vm *v, unsigned cls, uint16_t pool, size_t want, size_t *got,
		   struct frag_err *err)
{
	size_t scan = SCAN_MAX;

	*got = 0;
	for (struct vm_arena *a = v->arenas; a && *got < want; a = a->next) {
		struct frag_bset_pos at;

		if (a->cls != cls || a->pool != pool)
			continue;
		FRAG_TRY(close_epoch(v, a, err));
		FRAG_TRY(update_done(v, a, err));
		at = frag_bset_last(&a->whole);
		while (at.leaf && *got < want && scan) {
			struct vm_block *b = frag_bset_value(at);
			frag_addr_t addr = b->addr;

			FRAG_TRY(take_from(v, b, want, &scan, got, err));
			/* the set may have changed: go on below */
			at = frag_bset_lower(&a->whole, 0, addr);
			at = at.leaf ? frag_bset_prev(at) : frag_bset_last(&a->whole);
		}
	}
	v->moved_pages += *got;
	return 0;
}

static int release_spare(struct vm *v, struct vm_class *c, size_t n, struct frag_err *err)
{
	while (n-- && c->spare_count) {
		FRAG_TRY(frag_dev_release(v->dev, c->spare[c->spare_count - 1], c->page, err));
		c->spare_count--;
		v->released_pages++;
	}
	return 0;
}

int vm_release(struct vm *v, uint16_t pool, struct frag_err *err)
{
	for (unsigned k = 0; k < VM_CLASSES; k++) {
		size_t got = 1;

		while (got)
			FRAG_TRY(harvest(v, k, pool, SIZE_MAX, &got, err));
		FRAG_TRY(release_spare(v, &v->classes[k], SIZE_MAX, err));
	}
	return 0;
}

/* Pages of other sizes that are not needed make room for new ones of this size. */
static int make_room(struct vm *v, unsigned cls, uint64_t bytes, struct frag_err *err)
{
	for (unsigned k = 0; k < VM_CLASSES; k++) {
		struct vm_class *c = &v->classes[k];
		size_t want = (bytes + c->page - 1) / c->page, got = 0;

		if (k == cls)
			continue;
		if (c->spare_count < want)
			FRAG_TRY(harvest(v, k, 0, want - c->spare_count, &got, err));
		got = FRAG_MIN(want, c->spare_count);
		FRAG_TRY(release_spare(v, c, got, err));
		if (got * c->page >= bytes)
			return 0;
		bytes -= got * c->page;
	}
	return 0;
}

/* ---- getting pages ---- */

static int create_page(struct vm *v, struct vm_class *c, struct frag_err *err)
{
	if (v->dev->reserved_bytes > v->env.limit_bytes ||
	    v->env.limit_bytes - v->dev->reserved_bytes < c->page)
		return FRAG_OOM;
	FRAG_TRY(frag_dev_create(v->dev, c->page, &c->spare[c->spare_count], err));
	c->spare_count++;
	v->new_pages++;
	return 0;
}

/*
 * `n` spare pages of a class. Below the target new memory is taken, because
 * what stays mapped where it is saves moving later; above it free pages move.
 */
static int provide(struct vm *v, unsigned cls, size_t n, uint64_t need, struct frag_err *err)
{
	struct vm_class *c = &v->classes[cls];
	uint64_t peak = FRAG_MAX(v->live_peak_bytes, v->live_bytes + v->waiting_bytes + need);
	double target = (double)peak * (1 + v->params->slack) + (double)v->params->slack_bytes;
	size_t got;
	int rc = 0;

	FRAG_TRY(spare_room(c, n, err));
	if (c->spare_count < n) {
		uint64_t more = (n - c->spare_count) * c->page;

		if ((double)(v->dev->reserved_bytes + more) > target) {
			FRAG_TRY(harvest(v, cls, 0, n - c->spare_count, &got, err));
			more = c->spare_count < n ? (n - c->spare_count) * c->page : 0;
			if (more && (double)(v->dev->reserved_bytes + more) > target)
				FRAG_TRY(make_room(v, cls, more, err));
		}
	}
	while (c->spare_count < n && !rc)
		rc = create_page(v, c, err);
	return rc;
}

/* The driver is out of memory: everything that can move must, first without, then with waiting. */
static int provide_hard(struct vm *v, unsigned cls, size_t n, uint64_t need, struct frag_err *err)
{
	int rc = provide(v, cls, n, need, err);
	size_t got;

	for (int wait = 0; wait < 2 && rc == FRAG_OOM; wait++) {
		struct vm_class *c = &v->classes[cls];

		if (wait) {
			if (v->env.sync)
				v->env.sync(v->env.sync_ctx);
			FRAG_TRY(vm_settle(v, err));
		}
		if (c->spare_count < n)
			FRAG_TRY(harvest(v, cls, 0, n - c->spare_count, &got, err));
		if (c->spare_count < n)
			FRAG_TRY(make_room(v, cls, (n - c->spare_count) * c->page, err));
		rc = provide(v, cls, n, need, err);
	}
	return rc;
}

/* Maps a run of spare pages at [from, to), none of which is mapped. All or nothing. */
static int map_run(struct vm *v, struct vm_arena *a, size_t from, size_t to, struct frag_err *err)
{
	struct vm_class *c = &v->classes[a->cls];
	frag_addr_t base = a->base + ((uint64_t)from << a->shift);
	size_t n = to - from, i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		rc = frag_dev_map(v->dev, base + ((uint64_t)i << a->shift), c->page,
				  c->spare[c->spare_count - 1 - i], err);
		if (rc)
			break;
	}
	if (!rc)
		rc = frag_dev_set_access(v->dev, base, (uint64_t)n << a->shift, err);
	if (rc) {
		while (i--)
			frag_dev_unmap(v->dev, base + ((uint64_t)i << a->shift), c->page, NULL);
		return rc;
	}
	for (i = 0; i < n; i++)
		a->pages[from + i].handle = c->spare[--c->spare_count];
	v->mapped_bytes += (uint64_t)n << a->shift;
	return 0;
}

int vm_back(struct vm *v, struct vm_block *b, uint64_t size, bool *work, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	size_t missing = vm_missing(b, size), from, to;

	*work = missing != 0;
	if (!missing)
		return 0;
	touched(a, b->addr, size, &from, &to);
	FRAG_TRY(pages_room(a, to, err));
	FRAG_TRY(provide_hard(v, a->cls, missing, size, err));
	for (size_t p = from; p < to;) {
		size_t run = p;

		while (run < to && !a->pages[run].handle)
			run++;
		if (run > p) {
			FRAG_TRY(map_run(v, a, p, run, err));
			b->unmapped -= run - p;
		}
		p = run + 1;
	}
	return 0;
}

void vm_drop_pages(struct vm *v)
{
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		for (size_t p = 0; p < a->pages_count; p++) {
			if (!a->pages[p].handle)
				continue;
			frag_dev_unmap(v->dev, a->base + ((uint64_t)p << a->shift), vm_page_bytes(a),
				       NULL);
			frag_dev_release(v->dev, a->pages[p].handle, vm_page_bytes(a), NULL);
		}
	}
	for (unsigned k = 0; k < VM_CLASSES; k++) {
		release_spare(v, &v->classes[k], SIZE_MAX, NULL);
		frag_host_free(v->classes[k].spare);
	}
}
