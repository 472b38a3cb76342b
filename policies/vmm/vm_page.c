/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: where memory is mapped, and where more of it comes from.
 *
 * The cost of the driver's calls follows the number of handles (measured on an
 * H200: about 45 us to map, set access and unmap one handle of 2 to 64 MiB), so
 * what is counted here are pages, and the page size grows with the class.
 *
 * A move has three steps. Claim: choose pages that lie wholly inside free blocks.
 * Map: their memory becomes visible at the new place as well. Commit: the old places
 * lose it and become stale (vm_epoch.c). Until the commit nothing has changed
 * but the new mappings, so a failure in between is undone by taking these down.
 */
#include "vm.h"

#include <string.h>
#include <stdlib.h>
#include <stdio.h>

#define SCAN_MAX 4096u /* pages looked at per request when many cannot move */

size_t vm_inner(const struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	uint64_t page = vm_page_bytes(a);
	uint64_t from = (addr - a->base + page - 1) >> a->shift;
	uint64_t to = (addr - a->base + size) >> a->shift;

	return to > from ? to - from : 0;
}

size_t vm_missing(const struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	size_t from, to, n;

	vm_touched(a, addr, size, &from, &to);
	n = to > a->pages_count ? to - FRAG_MAX(from, a->pages_count) : 0;
	for (size_t p = from; p < to && p < a->pages_count; p++)
		n += !a->pages[p].handle;
	return n;
}

bool vm_fit(const struct vm_block *b, uint64_t size, uint64_t *skip)
{
	const struct vm_arena *a = b->arena;
	size_t from, to;

	*skip = 0;
	if (!a->stale_count)
		return size <= b->size;
	vm_touched(a, b->addr, size, &from, &to);
	for (size_t p = from; p < to && p < a->pages_count; p++) {
		if (!a->pages[p].stale)
			continue;
		/* begin again behind it */
		*skip = a->base + ((uint64_t)(p + 1) << a->shift) - b->addr;
		if (*skip + size > b->size)
			return false;
		vm_touched(a, b->addr + *skip, size, &from, &to);
	}
	return *skip + size <= b->size;
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

static int claims_room(struct vm *v, size_t want, struct frag_err *err)
{
	struct vm_claim *claims;

	if (want <= v->claims_cap)
		return 0;
	want = FRAG_MAX(want, 2 * v->claims_cap);
	claims = frag_host_realloc(v->claims, want, sizeof(*claims));
	if (!claims)
		return frag_fail_nomem(err, "vmm: moving pages");
	v->claims = claims;
	v->claims_cap = want;
	return 0;
}

/* ---- walking over the pages that free blocks do not need ---- */

/* May memory of arena `a` appear in arena `to` (NULL: leave) now? */
static bool movable(const struct vm *v, const struct vm_arena *a, const struct vm_page *pg,
		    const struct vm_arena *to)
{
	if (!pg->handle || pg->claimed)
		return false;
	if (pg->epoch < a->done_epoch)
		return true;
	/* the stream itself keeps the order of old and new work on this memory */
	return v->params->alias && to && to->stream == a->stream;
}

/* Claims up to `want` pages of arena `a` for arena `to`, from the highest addresses down. */
static void claim_from(struct vm *v, struct vm_arena *a, const struct vm_arena *to, size_t want,
		       size_t *scan)
{
	struct frag_bset_pos at = frag_bset_last(&a->whole);

	for (; at.leaf && want && *scan; at = frag_bset_prev(at)) {
		struct vm_block *b = frag_bset_value(at);
		size_t from, end, p;

		from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
		end = (b->addr - a->base + b->size) >> a->shift;
		for (p = FRAG_MIN(end, a->pages_count); p-- > from && want && *scan; --*scan) {
			if (!movable(v, a, &a->pages[p], to))
				continue;
			a->pages[p].claimed = true;
			v->claims[v->claims_count++] = (struct vm_claim){ b, p };
			want--;
		}
	}
}

/* Up to `want` more claims for arena `to`: from itself, then from others with such pages. */
static int claim(struct vm *v, struct vm_arena *to, size_t want, struct frag_err *err)
{
	size_t total = v->claims_count + want, scan = SCAN_MAX;

	FRAG_TRY(claims_room(v, total, err));
	FRAG_TRY(vm_stale_room(to, total, err));
	FRAG_TRY(vm_epoch_close(v, to, err));
	FRAG_TRY(vm_epoch_update(v, to, err));
	claim_from(v, to, to, want, &scan);
	for (struct vm_arena *a = v->arenas; a && v->claims_count < total; a = a->next) {
		if (a == to || a->shift != to->shift || a->pool != to->pool)
			continue;
		FRAG_TRY(vm_stale_room(a, total, err));
		FRAG_TRY(vm_epoch_close(v, a, err));
		FRAG_TRY(vm_epoch_update(v, a, err));
		claim_from(v, a, to, total - v->claims_count, &scan);
	}
	return 0;
}

static void unclaim(struct vm *v)
{
	for (size_t i = 0; i < v->claims_count; i++)
		v->claims[i].b->arena->pages[v->claims[i].page].claimed = false;
	v->claims_count = 0;
}

/* The first n claimed pages are mapped elsewhere: their old places have no memory now. */
static void commit(struct vm *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct vm_block *b = v->claims[i].b;
		struct vm_arena *a = b->arena;
		struct vm_page *pg = &a->pages[v->claims[i].page];

		vm_free_erase(v, b);
		b->unmapped++;
		vm_free_insert(v, b);
		v->mapped_bytes -= vm_page_bytes(a);
		v->moved_pages++;
		v->aliased_pages += pg->epoch >= a->done_epoch;
		pg->handle = 0;
		vm_stale_add(a, v->claims[i].page);
	}
}

/* ---- giving memory back ---- */

static int release_spare(struct vm *v, struct vm_class *c, size_t n, struct frag_err *err)
{
	while (n-- && c->spare_count) {
		FRAG_TRY(frag_dev_release(v->dev, c->spare[c->spare_count - 1], c->page, err));
		c->spare_count--;
		v->released_pages++;
	}
	return 0;
}

/* Unmaps one page that lies wholly inside the free block b and releases it. */
static int retire_page(struct vm *v, struct vm_block *b, size_t page, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	struct vm_class *c = &v->classes[v->classes[a->cls].like];

	FRAG_TRY(spare_room(c, 1, err));
	FRAG_TRY(frag_dev_unmap(v->dev, a->base + ((uint64_t)page << a->shift), c->page, err));
	vm_free_erase(v, b);
	c->spare[c->spare_count++] = a->pages[page].handle;
	a->pages[page].handle = 0;
	v->mapped_bytes -= c->page;
	b->unmapped++;
	vm_free_insert(v, b);
	return release_spare(v, c, 1, err);
}

static int retire_block(struct vm *v, struct vm_block *b, size_t *want, size_t *scan,
			struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	size_t from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	size_t to = (b->addr - a->base + b->size) >> a->shift;

	for (size_t p = FRAG_MIN(to, a->pages_count); p-- > from && *want && *scan && b->whole;) {
		if (a->pages[p].handle)
			--*scan;
		if (!movable(v, a, &a->pages[p], NULL))
			continue;
		FRAG_TRY(retire_page(v, b, p, err));
		--*want;
	}
	return 0;
}

/* Gives back up to `want` pages of an arena, from the highest addresses down. */
static int retire(struct vm *v, struct vm_arena *a, size_t want, size_t scan, struct frag_err *err)
{
	struct frag_bset_pos at;

	FRAG_TRY(vm_epoch_close(v, a, err));
	FRAG_TRY(vm_epoch_update(v, a, err));
	at = frag_bset_last(&a->whole);
	while (at.leaf && want && scan) {
		struct vm_block *b = frag_bset_value(at);
		frag_addr_t addr = b->addr;

		FRAG_TRY(retire_block(v, b, &want, &scan, err));
		/* the set may have changed: go on below */
		at = frag_bset_lower(&a->whole, 0, addr);
		at = at.leaf ? frag_bset_prev(at) : frag_bset_last(&a->whole);
	}
	return 0;
}

int vm_release(struct vm *v, uint16_t pool, struct frag_err *err)
{
	for (struct vm_arena *a = v->arenas; a; a = a->next)
		if (a->pool == pool)
			FRAG_TRY(retire(v, a, SIZE_MAX, SIZE_MAX, err));
	for (unsigned k = 0; k < VM_CLASSES; k++)
		FRAG_TRY(release_spare(v, &v->classes[k], SIZE_MAX, err));
	return 0;
}

/* Pages of other sizes that are not needed make room for `bytes` more. */
static int make_room(struct vm *v, const struct vm_arena *to, uint64_t bytes, struct frag_err *err)
{
	uint64_t goal = v->dev->reserved_bytes > bytes ? v->dev->reserved_bytes - bytes : 0;

	for (unsigned k = 0; k < VM_CLASSES; k++)
		if (v->classes[k].page != vm_page_bytes(to))
			FRAG_TRY(release_spare(v, &v->classes[k], SIZE_MAX, err));
	for (struct vm_arena *a = v->arenas; a && v->dev->reserved_bytes > goal; a = a->next) {
		uint64_t over = v->dev->reserved_bytes - goal;

		if (a->shift != to->shift)
			FRAG_TRY(retire(v, a, (over + vm_page_bytes(a) - 1) >> a->shift, SCAN_MAX,
					err));
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

/* How many of `n` new pages would be more than the live peak and the slack allow. */
static size_t excess(const struct vm *v, const struct vm_class *c, size_t n, uint64_t need)
{
	uint64_t peak = FRAG_MAX(v->live_peak_bytes, v->live_bytes + v->waiting_bytes + need);
	double target = (double)peak * (1 + v->params->slack) + (double)v->params->slack_bytes;
	double over = (double)(v->dev->reserved_bytes + n * c->page) - target;

	if (over <= 0)
		return 0;
	return over >= (double)n * (double)c->page ? n : (size_t)(over / (double)c->page) + 1;
}

/*
 * `n` pages for an arena, claimed or spare. Below the target new memory is taken,
 * because what stays mapped where it is saves moving later; above it free pages move.
 */
static int provide(struct vm *v, struct vm_arena *a, size_t n, uint64_t need, struct frag_err *err)
{
	struct vm_class *c = &v->classes[v->classes[a->cls].like];
	size_t have = c->spare_count + v->claims_count, more;
	int rc = 0;

	FRAG_TRY(spare_room(c, n, err));
	more = have < n ? excess(v, c, n - have, need) : 0;
	if (more) {
		FRAG_TRY(claim(v, a, more, err));
		have = c->spare_count + v->claims_count;
		more = have < n ? excess(v, c, n - have, need) : 0;
		if (more)
			FRAG_TRY(make_room(v, a, more * c->page, err));
	}
	while (c->spare_count + v->claims_count < n && !rc)
		rc = create_page(v, c, err);
	return rc;
}

/* The driver is out of memory: everything that can move must, first without, then with waiting. */
static int provide_hard(struct vm *v, struct vm_arena *a, size_t n, uint64_t need,
			struct frag_err *err)
{
	struct vm_class *c = &v->classes[v->classes[a->cls].like];
	int rc = provide(v, a, n, need, err);

	for (int wait = 0; wait < 2 && rc == FRAG_OOM; wait++) {
		if (wait) {
			if (v->env.sync)
				v->env.sync(v->env.sync_ctx);
			FRAG_TRY(vm_settle(v, err));
		}
		if (c->spare_count + v->claims_count < n)
			FRAG_TRY(claim(v, a, n - c->spare_count - v->claims_count, err));
		if (c->spare_count + v->claims_count < n)
			FRAG_TRY(make_room(v, a,
					   (n - c->spare_count - v->claims_count) * c->page, err));
		rc = provide(v, a, n, need, err);
	}
	return rc;
}

/* ---- mapping ---- */

/* The i-th page of those provided: claimed ones first, then spare ones. */
static uint64_t provided(const struct vm *v, const struct vm_class *c, size_t i)
{
	const struct vm_claim *m;

	if (i >= v->claims_count)
		return c->spare[c->spare_count - 1 - (i - v->claims_count)];
	m = &v->claims[i];
	return m->b->arena->pages[m->page].handle;
}

/* Maps provided pages from the first-th on at [from, to), and makes them usable. */
static int map_run(struct vm *v, struct vm_arena *a, size_t from, size_t to, size_t first,
		   struct frag_err *err)
{
	const struct vm_class *c = &v->classes[v->classes[a->cls].like];
	frag_addr_t base = a->base + ((uint64_t)from << a->shift);
	size_t done = from;
	int rc = 0;

	for (; done < to && !rc; done += !rc)
		rc = frag_dev_map(v->dev, a->base + ((uint64_t)done << a->shift), c->page,
				  provided(v, c, first + done - from), err);
	if (!rc)
		rc = frag_dev_set_access(v->dev, base, (uint64_t)(to - from) << a->shift, err);
	for (size_t p = from; p < done && !rc; p++)
		a->pages[p].handle = provided(v, c, first + p - from);
	while (rc && done-- > from)
		if (frag_dev_unmap(v->dev, a->base + ((uint64_t)done << a->shift), c->page, NULL))
			vm_stale_add(a, done); /* later, then */
	return rc;
}

/* Maps the missing ones of the pages [from, to). On failure the ones mapped stay listed by
 * their handles; *n counts the pages used. */
static int map_missing(struct vm *v, struct vm_arena *a, size_t from, size_t to, size_t *n,
		       struct frag_err *err)
{
	int rc = 0;

	*n = 0;
	for (size_t p = from; p < to && !rc;) {
		size_t run = p;

		while (run < to && !a->pages[run].handle)
			run++;
		if (run > p)
			rc = map_run(v, a, p, run, *n, err);
		if (!rc)
			*n += run - p;
		p = run + 1;
	}
	return rc;
}

int vm_back(struct vm *v, struct vm_block *b, struct frag_err *err)
{
	struct vm_arena *a = b->arena;
	struct vm_class *c = &v->classes[v->classes[a->cls].like];
	size_t from, to, used, n = b->unmapped, moved;
	int rc;

	vm_touched(a, b->addr, b->size, &from, &to);
	FRAG_TRY(pages_room(a, to, err));
	rc = provide_hard(v, a, n, b->size, err);
	if (!rc)
		rc = vm_stale_room(a, n, err);
	used = 0;
	if (!rc)
		rc = map_missing(v, a, from, to, &used, err);
	/* what was mapped stays, also when a later run failed: the pages have moved */
	moved = FRAG_MIN(used, v->claims_count);
	if(getenv("DBG"))fprintf(stderr,"miss t %.3f size %.1f M pages %zu missing %zu moved %zu addr %.0f reserved %.0f live %.0f whole %.0f blocks %zu\n",v->dev->now_ns/1e9,b->size/1048576.,to-from,n,moved,(b->addr-a->base)/1048576.,v->dev->reserved_bytes/1048576.,v->live_bytes/1048576.,v->whole_bytes/1048576.,a->blocks);
	commit(v, moved);
	c->spare_count -= used - moved;
	v->mapped_bytes += (uint64_t)used << a->shift;
	b->unmapped -= used;
	unclaim(v);
	return rc;
}

void vm_drop_pages(struct vm *v)
{
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		for (size_t p = 0; p < a->pages_count; p++) {
			if (a->pages[p].handle || a->pages[p].stale)
				frag_dev_unmap(v->dev, a->base + ((uint64_t)p << a->shift),
					       vm_page_bytes(a), NULL);
			if (a->pages[p].handle)
				frag_dev_release(v->dev, a->pages[p].handle, vm_page_bytes(a),
						 NULL);
		}
	}
	for (unsigned k = 0; k < VM_CLASSES; k++) {
		release_spare(v, &v->classes[k], SIZE_MAX, NULL);
		frag_host_free(v->classes[k].spare);
	}
	frag_host_free(v->claims);
}
