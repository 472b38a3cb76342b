/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool, kind and reservation of the pages of expandable segments that were mapped at the start. For
 * pages that still exist, the final snapshot has them. For the others, the history has: entries of
 * 2.12 and later name their pool, and a block of up to 1 MiB is in the small pool. Adjacent runs of
 * pages belong to one reservation. A run without such a sign is treated like the run below it, or
 * by its length.
 *
 * A reservation begins at its first page, and pages are mapped from its low end: its lowest page
 * known from the history is taken as its base.
 */
#include "build_internal.h"
#include "lib/bisect.h"

#include <stdlib.h>
#include <string.h>

#define RANGE_MAX (1ull << 38) /* no reservation is longer: 9/8 of the card, 169 GB on an H200 */

/* The last run that begins at or below an address and ends above it; NULL if there is none. */
static struct frag_page_run *run_at(struct frag_page_run *runs, size_t n, frag_addr_t addr)
{
	size_t above;

	FRAG_BISECT(above, 0, n, runs[above].addr <= addr);
	return above && addr < runs[above - 1].end ? &runs[above - 1] : NULL;
}

static void learn(const struct frag_raw_dev *raw, struct frag_page_run *r,
		  const struct frag_raw_entry *e, const uint16_t *stream_of, bool is_block)
{
	const uint32_t *roundup = raw->settings ? raw->settings->roundup : NULL;

	if (r->closed)
		return;
	r->stream = stream_of[e->stream];
	if (e->pool != FRAG_RAW_NO_POOL && !r->pool_known) {
		r->pool_known = true;
		r->pool = e->pool;
	}
	if (is_block && !r->kind_known) {
		r->kind_known = true;
		r->small = frag_torch_round(e->bytes, roundup) <= FRAG_MIB;
	}
}

static void learn_from_final(const struct frag_raw_dev *raw, struct frag_page_run *r)
{
	const struct frag_raw_segment *f = r->final < 0 ? NULL : &raw->segments[r->final];

	if (f && !r->kind_known)
		r->small = f->small;
	if (f && !r->pool_known)
		r->pool = f->pool;
	r->kind_known |= f != NULL;
	r->pool_known |= f != NULL;
}

/* What the first entries in each run say, as long as its pages are the same. */
static void learn_from_entries(const struct frag_raw_dev *raw, const uint16_t *stream_of,
			       struct frag_page_run *runs, size_t n)
{
	for (size_t i = 0; i < raw->entries_count; i++) {
		const struct frag_raw_entry *e = &raw->entries[i];
		bool is_block = e->action == FRAG_RAW_ALLOC || frag_raw_is_free(e->action) ||
				e->action == FRAG_RAW_FREE_COMPLETED;
		struct frag_page_run *r;

		if (!is_block && e->action != FRAG_RAW_SEGMENT_UNMAP)
			continue;
		r = run_at(runs, n, e->addr);
		if (!r)
			continue;
		learn(raw, r, e, stream_of, is_block);
		for (; !is_block && r < runs + n && r->addr < e->addr + e->bytes; r++) {
			learn(raw, r, e, stream_of, is_block);
			r->closed |= r->addr >= e->addr && r->end <= e->addr + e->bytes;
		}
	}
	/* pages of the final snapshot are the same reservation if they were never unmapped */
	for (size_t i = 0; i < n; i++)
		if (!runs[i].closed)
			learn_from_final(raw, &runs[i]);
}

static void share(struct frag_page_run *to, const struct frag_page_run *from)
{
	if (from->kind_known && !to->kind_known) {
		to->kind_known = true;
		to->small = from->small;
	}
	if (from->pool_known && !to->pool_known) {
		to->pool_known = true;
		to->pool = from->pool;
	}
	to->final = FRAG_MAX(to->final, from->final);
}

static bool touch(const struct frag_page_run *low, const struct frag_page_run *high)
{
	return low->end == high->addr && low->stream == high->stream &&
	       !(low->kind_known && high->kind_known && low->small != high->small) &&
	       !(low->pool_known && high->pool_known && low->pool != high->pool);
}

/* Runs that touch become one. Returns how many are left. */
static size_t join(struct frag_page_run *runs, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || !touch(&runs[to - 1], &runs[i])) {
			runs[to++] = runs[i];
			continue;
		}
		share(&runs[to - 1], &runs[i]);
		runs[to - 1].end = runs[i].end;
	}
	return to;
}

static void guess_rest(const struct frag_raw_dev *raw, struct frag_page_run *runs, size_t n)
{
	uint64_t page = frag_torch_large_segment(raw->settings);

	for (size_t i = 0; i < n; i++)
		learn_from_final(raw, &runs[i]);
	for (size_t i = 0; i < n; i++) {
		struct frag_page_run *r = &runs[i];
		const struct frag_page_run *below = i ? &runs[i - 1] : NULL;
		bool near = below && below->stream == r->stream &&
			    (!r->pool_known || r->pool == below->pool) &&
			    (r->addr - below->addr) % page == 0;

		if (!r->kind_known)
			r->small = near ? below->small : (r->end - r->addr) % page != 0;
		if (!r->pool_known && near && r->small == below->small)
			r->pool = below->pool;
	}
}

/* ---- where reservations begin ---- */

/* Of the malloc that maps pages by entry i: a small pool's block? False if no malloc follows. */
static bool request_of(const struct frag_raw_dev *raw, size_t i, bool *small)
{
	const uint32_t *roundup = raw->settings ? raw->settings->roundup : NULL;

	while (i < raw->entries_count && raw->entries[i].action == FRAG_RAW_SEGMENT_MAP)
		i++;
	if (i == raw->entries_count || raw->entries[i].action != FRAG_RAW_ALLOC)
		return false;
	*small = frag_torch_round(raw->entries[i].bytes, roundup) <= FRAG_MIB;
	return true;
}

static bool may_hold(const struct frag_page_run *r, const struct frag_raw_entry *e, uint16_t stream,
		     bool small)
{
	return r->stream == stream && r->small == small && !r->closed &&
	       (e->pool == FRAG_RAW_NO_POOL || !r->pool_known || e->pool == r->pool);
}

/* Pages mapped below an existing run, closer to it than to the one below, are its reservation's. */
static void lower_base(const struct frag_raw_dev *raw, size_t i, uint16_t stream,
		       const struct frag_page_run *below, struct frag_page_run *above)
{
	const struct frag_raw_entry *e = &raw->entries[i];
	bool small;

	if (above->range_addr - e->addr >= RANGE_MAX || !request_of(raw, i, &small) ||
	    !may_hold(above, e, stream, small))
		return;
	if (below && may_hold(below, e, stream, small) &&
	    e->addr - below->addr <= above->addr - e->addr)
		return;
	above->range_addr = e->addr;
}

static void find_bases(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		       struct frag_page_run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		runs[i].range_addr = runs[i].addr;
		runs[i].closed = false;
	}
	for (size_t i = 0; i < raw->entries_count; i++) {
		const struct frag_raw_entry *e = &raw->entries[i];
		size_t at;

		if (e->action != FRAG_RAW_SEGMENT_MAP && e->action != FRAG_RAW_SEGMENT_UNMAP)
			continue;
		FRAG_BISECT(at, 0, n, runs[at].range_addr <= e->addr);
		if (e->action == FRAG_RAW_SEGMENT_MAP && at < n)
			lower_base(raw, i, stream_of[e->stream], at ? &runs[at - 1] : NULL,
				   &runs[at]);
		for (size_t k = at ? at - 1 : 0; e->action == FRAG_RAW_SEGMENT_UNMAP && k < n &&
						 runs[k].addr < e->addr + e->bytes;
		     k++)
			runs[k].closed |= runs[k].addr >= e->addr;
	}
}

void frag_rewind_pages(const struct frag_builder *b, struct frag_page_run *runs, size_t *count)
{
	const struct frag_raw_dev *raw = b->raw;

	if (!*count)
		return;
	learn_from_entries(raw, b->stream_of, runs, *count);
	*count = join(runs, *count);
	guess_rest(raw, runs, *count);
	find_bases(raw, b->stream_of, runs, *count);
}
