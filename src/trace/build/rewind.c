/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes a history, last entry first. Blocks: a map from address to an element of `cells`. Whole
 * segments: a map from address to an element of `whole`. Pages of expandable segments: +1 for each
 * range mapped at the end or unmapped in the history, -1 for each range mapped in it; a sum of 1
 * means mapped at the start. rewind_pages.c finds the properties of such pages. The sizes of blocks
 * come last, when all neighbours are known (rewind_sizes.c).
 */
#include "build_internal.h"

#include <stdlib.h>

struct cell {
	frag_addr_t addr;
	uint64_t bytes; /* 0 = not known yet */
	uint64_t requested;
	uint16_t stream;
	bool waiting, dead;
};

struct edge { /* of a page range: where coverage changes */
	frag_addr_t addr;
	int32_t change;
	int32_t segment; /* the final segment, or one of the two below */
	uint16_t stream;
};
#define FROM_UNMAP (-1)
#define FROM_MAP (-2)

struct rewinder {
	const struct frag_builder *b;
	const struct frag_raw_dev *raw;
	struct frag_err *err;
	struct cell *cells;
	size_t cells_count, cells_cap;
	struct frag_addr_map blocks; /* addr -> cells */
	struct frag_initial_segment *whole;
	size_t whole_count, whole_cap;
	struct frag_addr_map segments; /* addr -> whole */
	struct edge *edges;
	size_t edges_count, edges_cap;
	struct frag_page_run *runs;
	size_t runs_count, runs_cap;
	struct frag_trace_dev *out;
};

static int contradiction(struct rewinder *w, size_t i, const char *what)
{
	return frag_build_bad(w->raw, i, " contradicts later entries or the final snapshot", what,
			      w->err);
}

/* ---- blocks ------------------------------------------------------------------- */

static int add_cell(struct rewinder *w, struct cell c)
{
	FRAG_TRY(FRAG_GROW(w->cells, w->cells_count, w->cells_cap, "rewind", w->err));
	w->cells[w->cells_count] = c;
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&w->blocks, c.addr, w->cells_count++), "rewind",
			 w->err);
	return 0;
}

static int load_blocks(struct rewinder *w)
{
	const struct frag_raw_dev *raw = w->raw;

	for (size_t s = 0; s < raw->segments_count; s++) {
		const struct frag_raw_segment *seg = &raw->segments[s];

		for (uint32_t i = 0; i < seg->blocks_count; i++) {
			const struct frag_final_block *f = &raw->blocks[seg->first_block + i];

			if (f->state == FRAG_STATE_FREE)
				continue;
			if (frag_addr_map_find(&w->blocks, f->addr))
				return frag_fail(w->err, FRAG_EINPUT,
						 "device %u: two final blocks at address 0x%llx",
						 raw->ordinal, (unsigned long long)f->addr);
			FRAG_TRY(add_cell(
				w, (struct cell){ .addr = f->addr,
						  .bytes = f->bytes,
						  .requested = f->requested,
						  .stream = w->b->stream_of[seg->stream],
						  .waiting = f->state == FRAG_STATE_WAITING }));
		}
	}
	return 0;
}

static int undo_alloc(struct rewinder *w, size_t i)
{
	const struct frag_raw_entry *e = &w->raw->entries[i];
	struct frag_addr_cell *at = frag_addr_map_find(&w->blocks, e->addr);

	if (!at) /* live at the end, which only final segments could show */
		return w->raw->finals_known
			       ? contradiction(w, i, "allocated block disappears without a free")
			       : 0;
	w->cells[frag_addr_number(at)].dead = true;
	frag_addr_map_remove(&w->blocks, at);
	return 0;
}

static int undo_completed(struct rewinder *w, size_t i)
{
	const struct frag_raw_entry *e = &w->raw->entries[i];

	if (frag_addr_map_find(&w->blocks, e->addr))
		return contradiction(w, i, "free completed for a block that is live afterwards");
	if (!e->bytes || e->bytes > FRAG_MAX_REQUEST)
		return contradiction(w, i, "free of an impossible size");
	return add_cell(w, (struct cell){ .addr = e->addr,
					  .requested = e->bytes,
					  .stream = w->b->stream_of[e->stream],
					  .waiting = w->b->kinds[FRAG_RAW_FREE] ||
						     w->b->kinds[FRAG_RAW_FREE_REQUESTED] });
}

static int undo_requested(struct rewinder *w, size_t i)
{
	const struct frag_raw_entry *e = &w->raw->entries[i];
	struct frag_addr_cell *at = frag_addr_map_find(&w->blocks, e->addr);

	if (!at && (frag_lacks_completed(w->b) || !w->raw->finals_known)) {
		FRAG_TRY(undo_completed(w, i));
		at = frag_addr_map_find(&w->blocks, e->addr);
	}
	if (!at || !w->cells[frag_addr_number(at)].waiting)
		return contradiction(w, i,
				     "free requested for a block that is not waiting afterwards");
	w->cells[frag_addr_number(at)].waiting = false;
	return 0;
}

/* ---- segments -------------------------------------------------------------------- */

static int add_edges(struct rewinder *w, uint64_t addr, uint64_t bytes, int change, uint16_t stream,
		     int32_t segment)
{
	for (int end = 0; end < 2; end++) {
		FRAG_TRY(FRAG_GROW(w->edges, w->edges_count, w->edges_cap, "rewind", w->err));
		w->edges[w->edges_count++] = (struct edge){ .addr = end ? addr + bytes : addr,
							    .change = end ? -change : change,
							    .segment = segment,
							    .stream = stream };
	}
	return 0;
}

static int add_whole(struct rewinder *w, struct frag_initial_segment s)
{
	FRAG_TRY(FRAG_GROW(w->whole, w->whole_count, w->whole_cap, "rewind", w->err));
	w->whole[w->whole_count] = s;
	FRAG_CHECK_ALLOC(!frag_addr_map_number(&w->segments, s.addr, w->whole_count++), "rewind",
			 w->err);
	return 0;
}

static int load_segments(struct rewinder *w)
{
	for (size_t i = 0; i < w->raw->segments_count; i++) {
		const struct frag_raw_segment *s = &w->raw->segments[i];
		uint16_t stream = w->b->stream_of[s->stream];

		if (s->expandable) {
			FRAG_TRY(add_edges(w, s->addr, s->bytes, 1, stream, (int32_t)i));
			continue;
		}
		if (frag_addr_map_find(&w->segments, s->addr))
			return frag_fail(w->err, FRAG_EINPUT,
					 "device %u: two final segments at address 0x%llx",
					 w->raw->ordinal, (unsigned long long)s->addr);
		FRAG_TRY(add_whole(w, (struct frag_initial_segment){ .addr = s->addr,
								     .bytes = s->bytes,
								     .stream = stream,
								     .pool = s->pool,
								     .small = s->small }));
	}
	return 0;
}

static int undo_segment(struct rewinder *w, size_t i)
{
	const struct frag_raw_entry *e = &w->raw->entries[i];
	struct frag_addr_cell *at = frag_addr_map_find(&w->segments, e->addr);

	if (!w->raw->finals_known)
		return 0;
	if (!e->bytes || e->addr + e->bytes < e->addr)
		return contradiction(w, i, "segment of an impossible size");
	switch (e->action) {
	case FRAG_RAW_SEGMENT_ALLOC:
		if (!at || w->whole[frag_addr_number(at)].bytes != e->bytes)
			return contradiction(w, i, "new segment disappears without a release");
		w->whole[frag_addr_number(at)].bytes = 0;
		frag_addr_map_remove(&w->segments, at);
		return 0;
	case FRAG_RAW_SEGMENT_FREE:
		if (at)
			return contradiction(w, i,
					     "release of a segment that still exists afterwards");
		return add_whole(w, (struct frag_initial_segment){
					    .addr = e->addr,
					    .bytes = e->bytes,
					    .stream = w->b->stream_of[e->stream],
					    .pool = e->pool == FRAG_RAW_NO_POOL ? 0 : e->pool,
					    .small = e->bytes == FRAG_PAGE });
	case FRAG_RAW_SEGMENT_MAP:
		return add_edges(w, e->addr, e->bytes, -1, w->b->stream_of[e->stream], FROM_MAP);
	default:
		return add_edges(w, e->addr, e->bytes, 1, w->b->stream_of[e->stream], FROM_UNMAP);
	}
}

static int undo_all(struct rewinder *w)
{
	for (size_t i = w->raw->entries_count; i-- > 0;) {
		switch (w->raw->entries[i].action) {
		case FRAG_RAW_ALLOC:
			FRAG_TRY(undo_alloc(w, i));
			break;
		case FRAG_RAW_FREE_COMPLETED:
			FRAG_TRY(undo_completed(w, i));
			break;
		case FRAG_RAW_FREE:
			FRAG_TRY(undo_completed(w, i));
			FRAG_TRY(undo_requested(w, i));
			break;
		case FRAG_RAW_FREE_REQUESTED:
			FRAG_TRY(undo_requested(w, i));
			break;
		case FRAG_RAW_SEGMENT_ALLOC:
		case FRAG_RAW_SEGMENT_FREE:
		case FRAG_RAW_SEGMENT_MAP:
		case FRAG_RAW_SEGMENT_UNMAP:
			FRAG_TRY(undo_segment(w, i));
			break;
		default:
			break;
		}
	}
	return 0;
}

/* ---- what is left -------------------------------------------------------------------- */

FRAG_COMPARE(cell_order, struct cell, FRAG_ORDER(x->addr, y->addr))

FRAG_COMPARE(segment_order, struct frag_initial_segment, FRAG_ORDER(x->addr, y->addr))

FRAG_COMPARE(edge_order, struct edge, FRAG_ORDER(x->addr, y->addr),
	     FRAG_ORDER(x->segment, y->segment))

static int add_run(struct rewinder *w, frag_addr_t addr, frag_addr_t end, uint16_t stream,
		   int32_t segment)
{
	FRAG_TRY(FRAG_GROW(w->runs, w->runs_count, w->runs_cap, "rewind", w->err));
	w->runs[w->runs_count++] = (struct frag_page_run){
		.addr = addr, .end = end, .stream = stream, .final = segment
	};
	return 0;
}

/* Ranges whose coverage is 1 were mapped at the start. */
static int sweep_pages(struct rewinder *w)
{
	int32_t segment = FROM_UNMAP;
	int64_t cover = 0;
	uint16_t stream = 0;

	if (w->edges_count)
		qsort(w->edges, w->edges_count, sizeof(*w->edges), edge_order);
	for (size_t i = 0; i < w->edges_count;) {
		frag_addr_t addr = w->edges[i].addr;

		for (; i < w->edges_count && w->edges[i].addr == addr; i++) {
			const struct edge *e = &w->edges[i];

			cover += e->change;
			if (e->change > 0 && e->segment != FROM_MAP)
				stream = e->stream;
			if (e->segment >= 0)
				segment = e->change > 0 ? e->segment : FROM_UNMAP;
		}
		if (cover < 0 || cover > 1)
			return frag_fail(w->err, FRAG_EINPUT,
					 "device %u: page 0x%llx is mapped twice or unmapped twice",
					 w->raw->ordinal, (unsigned long long)addr);
		if (cover && i < w->edges_count)
			FRAG_TRY(add_run(w, addr, w->edges[i].addr, stream, segment));
	}
	return 0;
}

/* The runs as segments that were there. */
static int take_runs(struct rewinder *w)
{
	FRAG_TRY(sweep_pages(w));
	frag_rewind_pages(w->b, w->runs, &w->runs_count);
	for (size_t i = 0; i < w->runs_count; i++) {
		const struct frag_page_run *r = &w->runs[i];

		FRAG_TRY(FRAG_GROW(w->whole, w->whole_count, w->whole_cap, "rewind", w->err));
		w->whole[w->whole_count++] =
			(struct frag_initial_segment){ .addr = r->addr,
						       .bytes = r->end - r->addr,
						       .stream = r->stream,
						       .pool = r->pool,
						       .small = r->small,
						       .expandable = true,
						       .range_addr = r->range_addr };
	}
	return 0;
}

/* ---- result ---------------------------------------------------------------------------------- */

static int take_blocks(struct rewinder *w)
{
	struct frag_trace_dev *out = w->out;
	size_t n = 0;

	for (size_t i = 0; i < w->cells_count; i++)
		if (!w->cells[i].dead)
			w->cells[n++] = w->cells[i];
	w->cells_count = n;
	if (n)
		qsort(w->cells, n, sizeof(*w->cells), cell_order);
	FRAG_TRY_CALLOC(out->initial_blocks, n, "seed", w->err);
	out->initial.blocks_count = n;
	for (size_t i = 0; i < n; i++) {
		const struct cell *c = &w->cells[i];

		out->initial_blocks[i] = (struct frag_initial_block){
			.addr = c->addr,
			.bytes = c->bytes,
			.requested = FRAG_MIN(FRAG_MAX(c->requested, 1), FRAG_MAX_REQUEST),
			.stream = c->stream,
			.slot = (uint32_t)i,
			.waiting = c->waiting
		};
	}
	return 0;
}

/* Segments in order, each with its blocks; false if a block lies in none or segments overlap. */
static bool place_blocks(struct frag_trace_dev *out)
{
	size_t next = 0;

	for (size_t i = 0; i < out->initial.segments_count; i++) {
		struct frag_initial_segment *s = &out->initial_segments[i];

		if (i && s[-1].addr + s[-1].bytes > s->addr)
			return false;
		s->first_block = (uint32_t)next;
		while (next < out->initial.blocks_count &&
		       out->initial_blocks[next].addr >= s->addr &&
		       out->initial_blocks[next].addr < s->addr + s->bytes)
			next++;
		s->blocks_count = (uint32_t)(next - s->first_block);
	}
	return next == out->initial.blocks_count;
}

/* Without a layout only the requests are known. */
static void drop_layout(struct rewinder *w)
{
	struct frag_trace_dev *out = w->out;
	const struct frag_trace_settings *set = w->raw->settings;

	out->initial.segments_count = 0;
	for (size_t i = 0; i < out->initial.blocks_count; i++) {
		if (out->initial_blocks[i].bytes)
			continue;
		out->initial_blocks[i].bytes = frag_torch_round(out->initial_blocks[i].requested,
								set ? set->roundup : NULL);
		out->uncertain_blocks++;
	}
}

static int rewind_all(struct rewinder *w)
{
	struct frag_trace_dev *out = w->out;
	size_t n = 0;

	FRAG_TRY(load_blocks(w));
	FRAG_TRY(load_segments(w));
	FRAG_TRY(undo_all(w));
	for (size_t i = 0; i < w->whole_count; i++)
		if (w->whole[i].bytes)
			w->whole[n++] = w->whole[i];
	w->whole_count = n;
	FRAG_TRY(take_runs(w));
	if (w->whole_count)
		qsort(w->whole, w->whole_count, sizeof(*w->whole), segment_order);
	out->initial_segments = w->whole;
	out->initial.segments_count = w->whole_count;
	w->whole = NULL;
	FRAG_TRY(take_blocks(w));
	if (!w->raw->finals_known || !place_blocks(out)) {
		drop_layout(w);
		return 0;
	}
	return frag_rewind_sizes(w->b);
}

int frag_rewind(const struct frag_builder *b)
{
	struct rewinder w = { .b = b, .raw = b->raw, .err = b->err, .out = b->out };
	int rc = rewind_all(&w);

	frag_addr_map_release(&w.blocks);
	frag_addr_map_release(&w.segments);
	FRAG_FREE(w.cells, w.whole, w.edges, w.runs);
	return rc;
}
