/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cheap test for private pools that nothing names (all their segments were
 * released before the end): a malloc took a new segment although a block
 * of its stream and kind was free and large enough. If all memory were of the default
 * pools, that cannot be. Done only while it costs little compared with the
 * entries read so far; what it finds makes pools.c look closely.
 */
#include "build_internal.h"

#include <stdlib.h>
#include <string.h>

#define SLACK FRAG_MIB /* a block of the large pool may own that much beyond its request */

static size_t segment_above(const struct frag_doubt *d, frag_addr_t at)
{
	size_t low = 0, high = d->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (d->segments[mid].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int put_segment(struct frag_builder *b, struct frag_doubt_segment s)
{
	struct frag_doubt *d = &b->doubt;
	size_t at = segment_above(d, s.addr);

	FRAG_TRY(frag_grow(&d->segments, d->count, &d->cap, sizeof(s), "segments", b->err));
	memmove(d->segments + at + 1, d->segments + at, (d->count - at) * sizeof(s));
	d->segments[at] = s;
	d->work += (d->count++ - at) / 16;
	return 0;
}

/* About a quarter of a step per entry, and some to begin with. */
static bool affordable(const struct frag_builder *b, size_t i)
{
	return b->doubt.work < i / 4 + 65536;
}

int frag_doubt_segment(struct frag_builder *b, size_t i, bool small)
{
	const struct frag_raw_entry *e = &b->raw->entries[i];
	struct frag_doubt *d = &b->doubt;
	size_t at;

	if (d->off || d->found)
		return 0;
	if (d->count > 4096) { /* moving them about would cost too much */
		d->off = true;
		return 0;
	}
	if (e->action == FRAG_RAW_SEGMENT_ALLOC)
		return put_segment(b, (struct frag_doubt_segment){
					      e->addr, e->bytes, b->stream_of[e->stream], small });
	at = segment_above(d, e->addr);
	if (e->action != FRAG_RAW_SEGMENT_FREE || !at || d->segments[at - 1].addr != e->addr)
		return 0;
	memmove(d->segments + at - 1, d->segments + at, (d->count - at) * sizeof(*d->segments));
	d->count--;
	return 0;
}

int frag_doubt_initial(struct frag_builder *b)
{
	const struct frag_initial_state *initial = &b->out->initial;

	if (initial->segments_count > 4096)
		b->doubt.off = true;
	for (size_t i = 0; i < initial->segments_count && !b->doubt.off; i++) {
		const struct frag_initial_segment *s = &initial->segments[i];

		if (!s->expandable)
			FRAG_TRY(put_segment(b, (struct frag_doubt_segment){ s->addr, s->bytes,
									     (uint16_t)s->stream,
									     s->small }));
	}
	return 0;
}

static int span_order(const void *a, const void *b)
{
	const struct frag_doubt_span *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Live blocks of a stream and kind, by address. */
static int collect(struct frag_builder *b, uint16_t stream, bool small, size_t *count)
{
	const uint32_t *roundup = b->raw->settings ? b->raw->settings->roundup : NULL;
	struct frag_doubt *d = &b->doubt;

	*count = 0;
	while (d->spans_cap < b->out->slots_count)
		FRAG_TRY(frag_grow(&d->spans, d->spans_cap, &d->spans_cap, sizeof(*d->spans),
				   "spans", b->err));
	for (uint32_t i = 0; i < b->out->slots_count; i++) {
		const struct frag_build_slot *s = &b->slots[i];
		uint64_t rounded;

		if (!s->used || s->stream != stream)
			continue;
		rounded = frag_torch_round(s->bytes, roundup);
		if ((rounded <= FRAG_MIB) == small)
			d->spans[(*count)++] = (struct frag_doubt_span){ s->addr, rounded };
	}
	if (*count)
		qsort(d->spans, *count, sizeof(*d->spans), span_order);
	d->work += b->out->slots_count / 4 + *count * 8;
	return 0;
}

/* Is a free block in the gap [from, to) certainly one that serves `bytes`? */
static bool gap_serves(const struct frag_builder *b, frag_addr_t from, frag_addr_t to,
		       uint64_t slack, uint64_t bytes)
{
	const struct frag_trace_settings *set = b->raw->settings;
	uint64_t max_split = set && set->present ? set->max_split_bytes : UINT64_MAX;

	if (to < from || to - from < bytes + slack)
		return false;
	return bytes < max_split ? to - from < max_split : to - from < bytes + 20 * FRAG_MIB;
}

int frag_doubt_growth(struct frag_builder *b, size_t i, uint64_t bytes)
{
	struct frag_doubt *d = &b->doubt;
	uint16_t stream = b->stream_of[b->raw->entries[i].stream];
	uint64_t slack = bytes <= FRAG_MIB ? 0 : SLACK;
	size_t spans = 0, next = 0, candidates = 0;

	if (d->off || d->found || !affordable(b, i))
		return 0;
	d->work += d->count / 16;
	for (size_t s = 0; s < d->count; s++)
		candidates += d->segments[s].stream == stream &&
			      d->segments[s].small == (bytes <= FRAG_MIB);
	if (!candidates)
		return 0;
	FRAG_TRY(collect(b, stream, bytes <= FRAG_MIB, &spans));
	for (size_t s = 0; s < d->count && !d->found; s++) {
		const struct frag_doubt_segment *seg = &d->segments[s];
		frag_addr_t from = seg->addr, end = seg->addr + seg->bytes;
		bool fits = seg->stream == stream && seg->small == (bytes <= FRAG_MIB);

		while (next < spans && d->spans[next].addr < seg->addr)
			next++;
		for (; next < spans && d->spans[next].addr < end; next++) {
			d->found |= fits && gap_serves(b, from, d->spans[next].addr,
						       from == seg->addr ? 0 : slack, bytes);
			from = d->spans[next].addr + d->spans[next].bytes;
		}
		d->found |= fits && gap_serves(b, from, end, from == seg->addr ? 0 : slack, bytes);
	}
	return 0;
}

void frag_doubt_release(struct frag_doubt *d)
{
	frag_host_free(d->segments);
	frag_host_free(d->spans);
	*d = (struct frag_doubt){ 0 };
}
