/* SPDX-License-Identifier: Apache-2.0 */
/* Everything about a device except its entries (build.c): streams, pools, final snapshot, arrays,
 * and whether the history began with an empty allocator. */
#include "build_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- before and after the entries -------------------------------------------------- */

void frag_sort_streams(struct frag_trace_dev *dev, const uint64_t *handles, size_t count,
		       uint16_t *number_of)
{
	size_t n = dev->streams_count;

	qsort(dev->streams, n, sizeof(*dev->streams), frag_compare_u64);
	for (size_t i = 0; i < count; i++) {
		const uint64_t *at = bsearch(&handles[i], dev->streams, n, sizeof(*dev->streams),
					     frag_compare_u64);

		number_of[i] = at ? (uint16_t)(at - dev->streams) : 0;
	}
}

/* Streams that occur, ascending; the default stream is always there. Counts on the way. */
static int sort_streams(struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;
	struct frag_trace_dev *out = b->out;
	size_t n = 0;

	b->stream_of = frag_host_calloc(raw->streams_count + 1u, sizeof(*b->stream_of));
	out->streams = frag_host_calloc(raw->streams_count + 1u, sizeof(*out->streams));
	FRAG_CHECK_ALLOC(b->stream_of && out->streams, "streams", b->err);
	for (size_t i = 0; i < raw->entries_count; i++) {
		unsigned action = (unsigned)raw->entries[i].action;

		b->kinds[action]++;
		out->pools_named |= raw->entries[i].pool != FRAG_RAW_NO_POOL;
		if (FRAG_UNLIKELY(frag_raw_is_growth(action)))
			b->grown_bytes += raw->entries[i].bytes;
		else if (FRAG_UNLIKELY(frag_raw_is_release(action)))
			b->grown_bytes -= raw->entries[i].bytes;
		if (action != FRAG_RAW_OTHER && action != FRAG_RAW_SNAPSHOT)
			b->stream_of[raw->entries[i].stream] = 1;
	}
	for (size_t i = 0; i < raw->segments_count; i++)
		b->stream_of[raw->segments[i].stream] = 1;
	out->streams[n++] = 0;
	for (uint32_t i = 0; i < raw->streams_count; i++)
		if (b->stream_of[i] && raw->streams[i])
			out->streams[n++] = raw->streams[i];
	out->streams_count = (uint32_t)n;
	frag_sort_streams(out, raw->streams, raw->streams_count, b->stream_of);
	return 0;
}

/* During the capture of a graph, blocks used by other streams are never completed: at the end every
 * freed block is still there. If the recording lacks completions, these blocks are gone. */
static bool all_wait(const struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;
	size_t waiting = 0;

	for (size_t i = 0; i < raw->segments_count; i++) {
		const struct frag_raw_segment *s = &raw->segments[i];

		for (uint32_t k = 0; k < s->blocks_count; k++)
			waiting += raw->blocks[s->first_block + k].state == FRAG_STATE_WAITING;
	}
	return waiting && waiting >= b->kinds[FRAG_RAW_FREE_REQUESTED];
}

/* Room for every event and evidence there can be: one per entry of its kind. */
static int allocate(struct frag_builder *b, size_t initial)
{
	const size_t *k = b->kinds;
	size_t segment_events = k[FRAG_RAW_SEGMENT_ALLOC] + k[FRAG_RAW_SEGMENT_FREE] +
				k[FRAG_RAW_SEGMENT_MAP] + k[FRAG_RAW_SEGMENT_UNMAP];
	size_t events = k[FRAG_RAW_ALLOC] + k[FRAG_RAW_FREE] + k[FRAG_RAW_FREE_REQUESTED] +
			k[FRAG_RAW_FREE_COMPLETED] + k[FRAG_RAW_SEGMENT_FREE] +
			k[FRAG_RAW_SEGMENT_UNMAP] + k[FRAG_RAW_OOM] + k[FRAG_RAW_EMPTY_CACHE] +
			k[FRAG_RAW_LIMIT] + b->raw->marks_count + 2 * initial;
	struct frag_trace_dev *out = b->out;

	out->events = frag_host_realloc(NULL, events, sizeof(*out->events));
	out->addrs = frag_host_realloc(NULL, events, sizeof(*out->addrs));
	out->seen = frag_host_realloc(NULL, segment_events + k[FRAG_RAW_OOM] + k[FRAG_RAW_SNAPSHOT],
				      sizeof(*out->seen));
	FRAG_CHECK_ALLOC(out->events && out->addrs && out->seen, "events", b->err);
	b->one_free_kind = !k[FRAG_RAW_FREE] &&
			   (!k[FRAG_RAW_FREE_REQUESTED] || !k[FRAG_RAW_FREE_COMPLETED]) &&
			   !(k[FRAG_RAW_FREE_REQUESTED] && all_wait(b));
	b->mark_us = b->raw->marks_count ? b->raw->marks[0].time_us : UINT64_MAX;
	return 0;
}

FRAG_COMPARE(segment_by_addr, struct frag_raw_segment, FRAG_ORDER(x->addr, y->addr))

/* Segments by address, their blocks in the same order. */
static int copy_finals(struct frag_builder *b)
{
	struct frag_trace_dev *out = b->out;
	size_t n = b->raw->segments_count, blocks = 0;
	FRAG_AUTO_FREE struct frag_raw_segment *sorted =
		frag_host_realloc(NULL, n, sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		blocks += b->raw->segments[i].blocks_count;
	out->final_segments = frag_host_calloc(n, sizeof(*out->final_segments));
	out->final_blocks = frag_host_calloc(blocks, sizeof(*out->final_blocks));
	FRAG_CHECK_ALLOC(sorted && out->final_segments && out->final_blocks, "final segments",
			 b->err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = b->raw->segments[i];
	if (n)
		qsort(sorted, n, sizeof(*sorted), segment_by_addr);
	for (size_t i = 0; i < n; i++) {
		const struct frag_raw_segment *s = &sorted[i];

		out->final_segments[i] = (struct frag_final_segment){
			.addr = s->addr,
			.bytes = s->bytes,
			.first_block = (uint32_t)out->final_blocks_count,
			.blocks_count = s->blocks_count,
			.stream = b->stream_of[s->stream],
			.pool = s->pool,
			.small = s->small,
			.expandable = s->expandable,
		};
		for (uint32_t k = 0; k < s->blocks_count; k++)
			out->final_blocks[out->final_blocks_count++] =
				b->raw->blocks[s->first_block + k];
	}
	out->final_segments_count = n;
	return 0;
}

static int copy_pools(struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;
	struct frag_trace_dev *out = b->out;

	out->pools_count = FRAG_MAX(raw->pools_count, 1u);
	FRAG_TRY_CALLOC(out->pools, out->pools_count, "pools", b->err);
	if (raw->pools_count)
		memcpy(out->pools, raw->pools, raw->pools_count * sizeof(*raw->pools));
	return 0;
}

/*
 * Marks private pools whose blocks are never split (MemPool(no_split=True)), which a snapshot does
 * not name. Signs: a live block of more than twice its request, which any other pool would have
 * split, and no block that was split off a segment or the pages of an expandable one.
 */
struct signs {
	bool cut, whole;
};

static void look(const struct frag_trace_dev *dev, const struct frag_final_segment *s,
		 struct signs *out)
{
	uint64_t page = s->small ? 2 * FRAG_MIB : 1 * FRAG_MIB;

	for (uint32_t i = s->first_block; i < s->first_block + s->blocks_count; i++) {
		const struct frag_final_block *b = &dev->final_blocks[i];

		/* the page of a large expandable segment is a setting: whole MiB, at least */
		if (s->expandable ? b->bytes % page != 0 : s->blocks_count > 1)
			out->cut = true;
		if (b->state == FRAG_STATE_LIVE && b->requested && b->bytes / 2 > b->requested)
			out->whole = true;
	}
}

static int mark_no_split(struct frag_trace_dev *dev, struct frag_err *err)
{
	FRAG_AUTO_FREE struct signs *signs = NULL;

	FRAG_TRY_CALLOC(signs, dev->pools_count, "pools", err);
	for (size_t i = 0; i < dev->final_segments_count; i++)
		look(dev, &dev->final_segments[i], &signs[dev->final_segments[i].pool]);
	for (uint32_t p = 1; p < dev->pools_count; p++)
		if (signs[p].whole && !signs[p].cut)
			dev->pools[p].b |= FRAG_POOL_NO_SPLIT;
	return 0;
}

/* Did the history begin with an empty allocator? Then the bytes reserved at the end are those
 * allocated less those released. This is exact, since every segment has its entries and an empty
 * allocator has no blocks. */
static bool began_empty(const struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;
	uint64_t reserved = 0;

	for (size_t i = 0; i < raw->segments_count; i++)
		reserved += raw->segments[i].bytes;
	return raw->finals_known && b->grown_bytes == reserved;
}

/*
 * Did a ring lose entries, or was the recording switched on late? The file does not say. Signs of a
 * ring: an annotation older than the first entry (annotations have a ring of their own), a start
 * between a free and its completion, or a count that looks like a chosen capacity.
 */
static bool looks_truncated(const struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;
	uint64_t n =
		raw->recorded_count - b->kinds[FRAG_RAW_EMPTY_CACHE] - b->kinds[FRAG_RAW_LIMIT];

	if (!n)
		return false;
	if (raw->early_marks || raw->entries[0].action == FRAG_RAW_FREE_COMPLETED)
		return true;
	return n >= 1000 && (n % 1000 == 0 || frag_is_pow2(n));
}

static int rewind_initial(struct frag_builder *b)
{
	struct frag_trace_dev *out = b->out;

	if (b->raw->entries_count && began_empty(b))
		return 0;
	if (b->raw->finals_known || b->kinds[FRAG_RAW_FREE] || b->kinds[FRAG_RAW_FREE_REQUESTED] ||
	    b->kinds[FRAG_RAW_FREE_COMPLETED])
		FRAG_TRY(frag_rewind(b));
	out->initial.segments = out->initial_segments;
	out->initial.blocks = out->initial_blocks;
	out->truncated =
		(out->initial.blocks_count || out->initial.segments_count) && looks_truncated(b);
	return 0;
}

/* Blocks that wait at the start get an event that requests their free (frag_build_initial), so that every completion
 * has its request. Without segments the initial state has only the initial allocs. */
static void finish_initial(struct frag_trace_dev *out)
{
	for (size_t i = 0; i < out->initial.blocks_count; i++)
		out->initial_blocks[i].waiting = false;
	if (out->initial.segments_count)
		return;
	frag_host_free(out->initial_blocks);
	out->initial_blocks = NULL;
	out->initial.blocks = NULL;
	out->initial.blocks_count = 0;
}

/* Were segments recorded? Addresses of blocks alone cannot be compared with a replay. */
static void take_evidence(struct frag_builder *b)
{
	struct frag_trace_dev *out = b->out;
	const size_t *k = b->kinds;

	out->has_evidence = k[FRAG_RAW_SEGMENT_ALLOC] + k[FRAG_RAW_SEGMENT_FREE] +
				    k[FRAG_RAW_SEGMENT_MAP] + k[FRAG_RAW_SEGMENT_UNMAP] ||
			    out->final_segments_count || out->initial.segments_count ||
			    !out->events_count;
}

static int build(struct frag_builder *b)
{
	FRAG_TRY(sort_streams(b));
	FRAG_TRY(copy_pools(b));
	FRAG_TRY(copy_finals(b));
	FRAG_TRY(mark_no_split(b->out, b->err));
	FRAG_TRY(rewind_initial(b));
	FRAG_TRY(allocate(b, b->out->initial.blocks_count));
	FRAG_TRY(frag_build_initial(b));
	FRAG_TRY(frag_build_entries(b));
	frag_build_name_initial(b);
	finish_initial(b->out);
	b->out->recorded_count = b->raw->recorded_count;
	take_evidence(b);
	return 0;
}

int frag_build_dev(const struct frag_raw_dev *raw, struct frag_trace_dev *out, struct frag_err *err)
{
	struct frag_builder b = { .raw = raw, .out = out, .err = err };
	int rc;

	*out = (struct frag_trace_dev){ .ordinal = raw->ordinal };
	rc = build(&b);
	FRAG_FREE(b.stream_of, b.slots, b.free_slots);
	frag_addr_map_release(&b.live);
	if (rc) {
		frag_trace_dev_release(out);
		*out = (struct frag_trace_dev){ 0 };
	}
	return rc;
}

void frag_trace_dev_release(struct frag_trace_dev *dev)
{
	FRAG_FREE(dev->events, dev->streams, dev->pools, dev->addrs, dev->seen, dev->final_segments,
		  dev->final_blocks, dev->initial_segments, dev->initial_blocks);
}
