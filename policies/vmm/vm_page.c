/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: where there is memory, where it is missing, what could go.
 *
 * Memory comes in handles of 1, 2, 4 … pages. Only a handle that lies wholly inside
 * one free block can go; the driver cannot cut it.
 */
#include "vm.h"

#include <string.h>

size_t vm_inner(const struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	uint64_t page = vm_page_bytes(a);
	uint64_t from = (addr - a->base + page - 1) >> a->shift;
	uint64_t to = (addr - a->base + size) >> a->shift;

	return to > from ? to - from : 0;
}

size_t vm_whole(const struct vm_arena *a, frag_addr_t addr, uint64_t size, size_t unmapped)
{
	size_t from = (addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	size_t inner = vm_inner(a, addr, size), end = from + inner, n;
	const struct vm_page *pg;

	if (inner == unmapped)
		return 0;
	n = inner - unmapped;
	/* only the handles at the two edges can reach out */
	pg = &a->pages[from];
	if (pg->backed && pg->index) {
		size_t out = FRAG_MIN(inner, ((size_t)1 << pg->span) - pg->index);

		n -= out;
		from += out;
	}
	if (from < end && end <= a->pages_count) {
		pg = &a->pages[end - 1];
		if (pg->backed && pg->index + 1u < 1u << pg->span)
			n -= pg->index + 1u;
	}
	return n;
}

size_t vm_missing(const struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	size_t from, to, n;

	vm_touched(a, addr, size, &from, &to);
	n = to > a->pages_count ? to - FRAG_MAX(from, a->pages_count) : 0;
	for (size_t p = from; p < to && p < a->pages_count; p++)
		n += !a->pages[p].backed;
	return n;
}

int vm_pages_room(struct vm_arena *a, size_t want, struct frag_err *err)
{
	size_t cap = FRAG_MAX(want, 2 * a->pages_count);
	struct vm_page *pages;

	if (want <= a->pages_count)
		return 0;
	pages = frag_host_realloc(a->pages, cap, sizeof(*pages));
	FRAG_CHECK_ALLOC(pages, "vmm: pages", err);
	memset(pages + a->pages_count, 0, (cap - a->pages_count) * sizeof(*pages));
	a->pages = pages;
	a->pages_count = cap;
	return 0;
}
