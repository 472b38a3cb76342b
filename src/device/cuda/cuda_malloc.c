/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudaMalloc and cudaFree, counting the pages they take.
 *
 * The driver hands out pages of 2 MiB and cuts them for small requests, so the memory taken is the
 * number of pages with live segments. Only the first and the last page of a segment can be shared:
 * a table counts these by page; the pages between belong to the segment alone. (Checked against
 * cudaMemGetInfo, see observe in cuda.c.)
 */
#include "cuda_internal.h"

#define LLU(x) ((unsigned long long)(x))

/* Adds or removes a segment on a page. Returns the bytes that this frees on the card. */
static int64_t page_more(struct cuda *c, uint64_t page)
{
	struct frag_addr_cell *s = frag_addr_map_find(&c->pages, page);

	if (s) {
		s->value++;
		return 0;
	}
	frag_addr_map_put(&c->pages, page, (void *)(uintptr_t)1);
	return (int64_t)c->granule_bytes;
}

static int64_t page_less(struct cuda *c, uint64_t page)
{
	struct frag_addr_cell *s = frag_addr_map_find(&c->pages, page);

	if (--s->value)
		return 0;
	frag_addr_map_remove(&c->pages, s);
	return -(int64_t)c->granule_bytes;
}

/* Makes room in the table for the two ends of a segment. */
static bool pages_reserve(struct cuda *c)
{
	/* a table is at most a quarter full, so room for one more means room for two */
	return !frag_addr_map_reserve(&c->pages);
}

/* Adds (or removes) the pages of [addr, addr + bytes) to the count. */
static int64_t count_pages(struct cuda *c, frag_addr_t addr, uint64_t bytes, bool more)
{
	uint64_t first = addr / c->granule_bytes, last = (addr + bytes - 1) / c->granule_bytes;
	int64_t sum = more ? page_more(c, first) : page_less(c, first);

	if (last == first)
		return sum;
	sum += more ? page_more(c, last) : page_less(c, last);
	return sum + (more ? 1 : -1) * (int64_t)((last - first - 1) * c->granule_bytes);
}

static int room(struct cuda *c, struct frag_err *err)
{
	if (!frag_slab_reserve(&c->pieces, 1) && !frag_addr_map_reserve(&c->segments) &&
	    pages_reserve(c))
		return 0;
	return frag_fail_nomem(err, "segments of the card");
}

static void add_piece(struct cuda *c, frag_addr_t addr, uint64_t bytes)
{
	struct cuda_piece *p = frag_slab_alloc(&c->pieces);

	*p = (struct cuda_piece){ .addr = addr, .bytes = bytes };
	frag_addr_map_put(&c->segments, addr, p);
}

int frag_cuda_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		    struct frag_err *err)
{
	struct cuda *c = priv;
	void *ptr = NULL;
	cudaError_t rc;

	(void)ns;
	if (bytes > SIZE_MAX / 2 || !frag_cuda_room(c, frag_cuda_held(c), bytes))
		return FRAG_OOM;
	FRAG_TRY(room(c, err));
	rc = cudaMalloc(&ptr, bytes);
	if (rc == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError();
		return FRAG_OOM;
	}
	FRAG_TRY(frag_cuda_rt_check(rc, "cudaMalloc", err));
	*out = (uintptr_t)ptr;
	c->segment_bytes += (uint64_t)count_pages(c, *out, bytes, true);
	add_piece(c, *out, bytes);
	if (frag_cuda_room(c, frag_cuda_held(c), 0))
		return 0;
	/* the request fits, its pages do not */
	FRAG_TRY(frag_cuda_free(c, *out, ns, err));
	return FRAG_OOM;
}

int frag_cuda_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_piece *p = frag_addr_map_get(&c->segments, addr);
	uint64_t since;

	if (!p)
		return frag_fail(err, FRAG_EDEVICE,
				 "cudaFree: 0x%llx is not the start of a live segment", LLU(addr));
	since = frag_cuda_quiesce(c);
	FRAG_TRY(RT(err, cudaFree, (void *)(uintptr_t)addr));
	frag_cuda_took(since, ns);
	frag_addr_map_take(&c->segments, addr);
	c->segment_bytes += (uint64_t)count_pages(c, addr, p->bytes, false);
	frag_slab_free(&c->pieces, p);
	return 0;
}

void frag_cuda_free_all(const struct frag_addr_map *map)
{
	for (size_t i = 0; map->mask && i <= map->mask; i++) {
		if (map->cells[i].value)
			(void)cudaFree((void *)(uintptr_t)map->cells[i].addr);
	}
}

void frag_cuda_malloc_release(struct cuda *c)
{
	frag_cuda_free_all(&c->segments);
	frag_addr_map_release(&c->segments);
	frag_addr_map_release(&c->pages);
	frag_slab_release(&c->pieces);
}
