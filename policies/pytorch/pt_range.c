/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expandable segments: address space for more than the whole card is reserved
 * once per stream and pool, and pages are mapped into it where they are
 * needed. The chain of blocks covers the whole reservation; pieces without memory
 * are PT_UNMAPPED.
 */
#include "pt.h"

#include <string.h>

uint64_t pt_range_page(const struct pt *a, bool small)
{
	return small ? PT_SMALL_SEGMENT : a->large_segment;
}

uint64_t pt_range_bytes(const struct pt *a, bool small)
{
	return frag_round_up(a->range_bytes, pt_range_page(a, small));
}

static int handles_room(struct pt_seg *g, size_t pages, struct frag_err *err)
{
	size_t want = FRAG_MAX(pages, 2 * g->handles_count);
	uint64_t *handles;

	if (pages <= g->handles_count)
		return 0;
	want = FRAG_MIN(want, (size_t)(g->bytes / g->page));
	handles = frag_host_realloc(g->handles, want, sizeof(*handles));
	FRAG_CHECK_ALLOC(handles, "pytorch: page handles", err);
	memset(handles + g->handles_count, 0, (want - g->handles_count) * sizeof(*handles));
	g->handles = handles;
	g->handles_count = want;
	return 0;
}

/* Takes pages [from, to) back after a failure; `mapped` of them have been mapped. */
static void undo_pages(struct pt *a, struct pt_seg *g, size_t from, size_t to, size_t mapped)
{
	for (size_t p = from; p < to; p++) {
		if (p < mapped)
			frag_dev_unmap(a->dev, g->base + p * g->page, g->page, NULL);
		frag_dev_release(a->dev, g->handles[p], g->page, NULL);
		g->handles[p] = 0;
	}
}

/* Makes and maps the pages of [addr, addr + bytes). */
static int pages_map(struct pt *a, struct pt_seg *g, frag_addr_t addr, uint64_t bytes,
		     struct frag_err *err)
{
	size_t from = (addr - g->base) / g->page, to = from + bytes / g->page, p, m;
	int rc = 0;

	FRAG_TRY(handles_room(g, to, err));
	for (p = from; p < to && !rc; p++) {
		rc = frag_dev_create(a->dev, g->page, &g->handles[p], err);
		if (rc) {
			g->handles[p] = 0;
			break;
		}
	}
	for (m = from; !rc && m < to; m++) {
		rc = frag_dev_map(a->dev, g->base + m * g->page, g->page, g->handles[m], err);
		if (rc)
			break;
	}
	if (!rc)
		rc = frag_dev_set_access(a->dev, addr, bytes, err);
	if (rc)
		undo_pages(a, g, from, p, rc ? m : from);
	return rc;
}

int pt_pages_unmap(struct pt *a, struct pt_seg *g, frag_addr_t addr, uint64_t bytes, uint64_t *done,
		   struct frag_err *err)
{
	size_t from = (addr - g->base) / g->page, to = from + bytes / g->page;

	*done = 0;
	for (size_t p = from; p < to; p++) {
		/* the handle first: the memory goes with its mapping, so a failure in
		 * between leaves a page that is simply still there */
		if (p < g->handles_count && g->handles[p]) {
			if (g->handles[p] != PT_HANDLE_GONE)
				FRAG_TRY(frag_dev_release(a->dev, g->handles[p], g->page, err));
			g->handles[p] = PT_HANDLE_GONE;
			FRAG_TRY(frag_dev_unmap(a->dev, g->base + p * g->page, g->page, err));
			g->handles[p] = 0;
		}
		*done += g->page;
	}
	return 0;
}

int pt_range_add(struct pt *a, struct pt_set *set, frag_addr_t base, uint64_t bytes,
		 struct pt_block **out, struct frag_err *err)
{
	uint64_t page = pt_range_page(a, set->pool->small);
	struct pt_seg *g;
	int rc;

	FRAG_TRY(pt_room(a, 4, err));
	g = pt_seg_new(a, set, bytes, page);
	FRAG_CHECK_ALLOC(g, "pytorch: expandable segment", err);
	rc = frag_dev_reserve(a->dev, bytes, base, &base, err);
	if (rc) {
		pt_seg_drop(a, g);
		return rc;
	}
	pt_seg_place(a, g, base);
	g->first = *out = pt_block_new(a, g, base, bytes);
	pt_unmapped_insert(*out);
	return 0;
}

static void merge_free(struct pt *a, struct pt_block *b, struct pt_block *n)
{
	if (!n || n->state != PT_FREE)
		return;
	pt_free_erase(a, n);
	pt_absorb(a, b, n);
}

static void merge_unmapped(struct pt *a, struct pt_block *b, struct pt_block *n)
{
	if (!n || n->state != PT_UNMAPPED)
		return;
	pt_unmapped_erase(n);
	pt_absorb(a, b, n);
}

int pt_range_map(struct pt *a, struct pt_block *u, uint64_t bytes, struct frag_err *err)
{
	FRAG_TRY(pt_room(a, 2, err));
	FRAG_TRY(pages_map(a, u->seg, u->addr, bytes, err));
	pt_unmapped_erase(u);
	if (bytes < u->size)
		pt_unmapped_insert(pt_cut_tail(a, u, u->addr + bytes));
	merge_free(a, u, u->prev);
	merge_free(a, u, u->next);
	pt_free_insert(a, u);
	a->total += bytes;
	pt_up2(a, u->kind, PT_RESERVED_BYTES, (int64_t)bytes);
	return 0;
}

/* Maps the first `bytes` (rounded up to pages) of an unmapped block. */
static int map_front(struct pt *a, struct pt_block *u, uint64_t bytes, struct frag_err *err)
{
	uint64_t mapped = frag_round_up(bytes, u->seg->page);
	frag_addr_t addr = u->addr;

	FRAG_TRY(pt_range_map(a, u, mapped, err));
	a->st.num_device_alloc++;
	pt_journal(a, FRAG_SEGMENT_MAP, addr, mapped, u->set->stream);
	return 0;
}

static bool idle(const struct pt_block *b)
{
	return b && (b->state == PT_FREE || b->state == PT_UNMAPPED);
}

static struct pt_block *unmapped_from(const struct pt_set *set, frag_addr_t addr)
{
	return frag_bset_value(frag_bset_lower(&set->unmapped, 0, addr));
}

/* The lowest unmapped block that is long enough with the idle blocks around it: these are free and
 * unmapped in turn. Returns where they begin. As the source does, it looks at all of them. */
static struct pt_block *find_room(const struct pt_set *set, uint64_t size)
{
	struct pt_block *u = unmapped_from(set, 0), *b;

	while (u) {
		struct pt_block *start = idle(u->prev) ? u->prev : u;
		uint64_t sum = 0;

		for (b = start; idle(b) && sum < size; b = b->next)
			sum += b->size;
		if (sum >= size)
			return start;
		u = unmapped_from(set, b ? b->addr : u->seg->base + u->seg->bytes);
	}
	return NULL;
}

int pt_range_get(struct pt *a, struct pt_set *set, uint64_t size, struct pt_block **out,
		 struct frag_err *err)
{
	struct pt_block *c = find_room(set, size);

	if (!c && a->release >= FRAG_TORCH_SINCE_RANGE_FITS &&
	    size > pt_range_bytes(a, set->pool->small))
		return FRAG_OOM;
	if (!c)
		FRAG_TRY(pt_range_add(a, set, 0, pt_range_bytes(a, set->pool->small), &c, err));
	if (c->state == PT_UNMAPPED)
		FRAG_TRY(map_front(a, c, FRAG_MIN(c->size, size), err));
	while (c->size < size) {
		struct pt_block *n = c->next;

		/* what follows a free block in such a run is unmapped; mapping merges the two */
		FRAG_TRY(map_front(a, n, FRAG_MIN(size - c->size, n->size), err));
		c = n;
	}
	pt_free_erase(a, c);
	*out = c;
	return 0;
}

int pt_range_unmap(struct pt *a, struct pt_block *b, struct frag_err *err)
{
	struct pt_seg *g = b->seg;
	uint64_t bytes, done;
	frag_addr_t lo;
	int rc;

	bytes = pt_whole_pages(b, &lo);
	if (!bytes)
		return 0;
	FRAG_TRY(pt_room(a, 3, err));
	rc = pt_pages_unmap(a, g, lo, bytes, &done, err);
	if (!done)
		return rc;
	pt_free_erase(a, b);
	if (lo > b->addr)
		pt_free_insert(a, pt_cut_front(a, b, lo));
	if (done < b->size)
		pt_free_insert(a, pt_cut_tail(a, b, lo + done));
	merge_unmapped(a, b, b->prev);
	merge_unmapped(a, b, b->next);
	pt_unmapped_insert(b);
	a->total -= done;
	pt_down2(a, b->kind, PT_RESERVED_BYTES, (int64_t)done);
	a->st.num_device_free++;
	pt_journal(a, FRAG_SEGMENT_UNMAP, lo, done, b->set->stream);
	if (rc || pt_is_split(b))
		return rc;
	/* nothing of the reservation is mapped any more */
	FRAG_TRY(frag_dev_unreserve(a->dev, g->base, g->bytes, err));
	pt_unmapped_erase(b);
	pt_block_drop(a, b);
	pt_seg_drop(a, g);
	return 0;
}
