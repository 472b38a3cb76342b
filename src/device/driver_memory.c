/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_memory.h"

#define LLU(x) ((unsigned long long)(x))

void frag_drvmem_init(struct frag_drvmem *m)
{
	frag_slab_init(&m->handle_slab, sizeof(struct frag_drvmem_handle));
}

void frag_drvmem_release(struct frag_drvmem *m)
{
	frag_addr_map_release(&m->segments);
	frag_addr_map_release(&m->pages);
	frag_addr_map_release(&m->handles);
	frag_addr_map_release(&m->mappings);
	frag_slab_release(&m->handle_slab);
}

/* ---- segments ---- */

/* Adds or removes a segment on a page. Returns the bytes that this takes on the card. */
static int64_t count_page(struct frag_drvmem *m, uint64_t page, bool more)
{
	struct frag_addr_cell *cell = frag_addr_map_find(&m->pages, page << 9);

	if (more && cell) {
		cell->value++;
		return 0;
	}
	if (more) {
		frag_addr_map_add(&m->pages, page << 9, 1);
		return FRAG_PAGE;
	}
	if (cell->value-- > 1)
		return 0;
	cell->value = 1; /* a cell of 0 is no cell */
	frag_addr_map_remove(&m->pages, cell);
	return -(int64_t)FRAG_PAGE;
}

static void count_pages(struct frag_drvmem *m, uint64_t addr, uint64_t bytes, bool more)
{
	uint64_t first = addr / FRAG_PAGE, last = (addr + bytes - 1) / FRAG_PAGE;
	int64_t sum = count_page(m, first, more);

	if (last != first)
		sum += count_page(m, last, more) +
		       (more ? 1 : -1) * (int64_t)((last - first - 1) * FRAG_PAGE);
	m->bytes += (uint64_t)sum;
}

int frag_drvmem_segment_room(struct frag_drvmem *m, struct frag_err *err)
{
	/* a table is at most a quarter full, so room for one more page means room for two */
	FRAG_CHECK_ALLOC(!frag_addr_map_reserve(&m->segments) && !frag_addr_map_reserve(&m->pages),
			 "segments of the card", err);
	return 0;
}

void frag_drvmem_segment_add(struct frag_drvmem *m, uint64_t addr, uint64_t bytes)
{
	frag_addr_map_add(&m->segments, addr, bytes);
	count_pages(m, addr, bytes, true);
}

int frag_drvmem_segment_find(const struct frag_addr_map *segments, const char *call, uint64_t addr,
			     struct frag_addr_cell **out, struct frag_err *err)
{
	*out = frag_addr_map_find(segments, addr);
	if (*out)
		return 0;
	return frag_fail(err, FRAG_EDEVICE, "%s: 0x%llx is not the start of a live segment", call,
			 LLU(addr));
}

void frag_drvmem_segment_remove(struct frag_drvmem *m, struct frag_addr_cell *cell)
{
	count_pages(m, cell->addr, cell->value, false);
	frag_addr_map_remove(&m->segments, cell);
}

/* ---- handles and mappings ---- */

int frag_drvmem_handle_room(struct frag_drvmem *m, struct frag_err *err)
{
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&m->handle_slab, 1) &&
				 !frag_addr_map_reserve(&m->handles),
			 "physical handle", err);
	return 0;
}

uint64_t frag_drvmem_handle_add(struct frag_drvmem *m, uint64_t raw, uint64_t bytes)
{
	struct frag_drvmem_handle *h = frag_slab_alloc(&m->handle_slab);

	*h = (struct frag_drvmem_handle){ .raw = raw, .bytes = bytes };
	frag_addr_map_put(&m->handles, ++m->last_handle, h);
	m->bytes += bytes;
	return m->last_handle;
}

int frag_drvmem_handle_find(const struct frag_drvmem *m, const char *call, uint64_t number,
			    struct frag_drvmem_handle **out, struct frag_err *err)
{
	*out = frag_addr_map_get(&m->handles, number);
	if (*out)
		return 0;
	return frag_fail(err, FRAG_EDEVICE, "%s: unknown or released handle %llu", call,
			 LLU(number));
}

static void drop_if_unused(struct frag_drvmem *m, struct frag_drvmem_handle *h)
{
	if (!h->released || h->mappings)
		return;
	m->bytes -= h->bytes;
	frag_slab_free(&m->handle_slab, h);
}

void frag_drvmem_handle_released(struct frag_drvmem *m, uint64_t number)
{
	struct frag_drvmem_handle *h = frag_addr_map_take(&m->handles, number);

	h->released = true;
	drop_if_unused(m, h);
}

int frag_drvmem_mapping_room(struct frag_drvmem *m, struct frag_err *err)
{
	return frag_addr_map_reserve(&m->mappings) ? frag_fail_nomem(err, "mapping") : 0;
}

void frag_drvmem_mapped(struct frag_drvmem *m, uint64_t addr, struct frag_drvmem_handle *h)
{
	frag_addr_map_put(&m->mappings, addr, h);
	h->mappings++;
}

int frag_drvmem_unmapped(struct frag_drvmem *m, uint64_t addr, uint64_t bytes, struct frag_err *err)
{
	for (uint64_t at = 0; at < bytes;) {
		struct frag_drvmem_handle *h = frag_addr_map_take(&m->mappings, addr + at);

		if (!h)
			return frag_fail(err, FRAG_EDEVICE,
					 "cuMemUnmap: nothing was mapped at 0x%llx",
					 LLU(addr + at));
		at += h->bytes;
		h->mappings--;
		drop_if_unused(m, h);
	}
	return 0;
}
