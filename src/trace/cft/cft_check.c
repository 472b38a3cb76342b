/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of everything in a trace except its events (cft_model.c). The writer does them before it
 * writes, the readers before they return anything. */
#include "cft.h"

const char *frag_cft_check_head(const struct frag_trace *trace)
{
	uint32_t strings = trace->strings ? frag_strings_count(trace->strings) : 1;
	const struct frag_stacks *s = &trace->stacks;

	for (size_t i = 0; i < s->frames_count; i++)
		if (s->frames[i].name >= strings || s->frames[i].file >= strings)
			return "text of a frame out of range";
	for (size_t i = 0; i < s->index_count; i++)
		if (s->index[i] >= s->frames_count)
			return "frame of a stack out of range";
	if (!s->count)
		return s->index_count ? "frames that belong to no stack" : NULL;
	if (s->count > 1u << 24)
		return "too many stacks";
	if (s->first[0] || s->first[s->count] != s->index_count)
		return "stacks do not cover their frames";
	for (size_t i = 0; i < s->count; i++)
		if (s->first[i] > s->first[i + 1])
			return "stacks overlap";
	return NULL;
}

static bool inside(uint64_t addr, uint64_t bytes, uint64_t from, uint64_t room)
{
	return addr >= from && bytes <= room && addr - from <= room - bytes;
}

/* The blocks of one segment: inside of it, ascending, not overlapping. */
static const char *check_initial_segment(const struct frag_initial_segment *s,
					 const struct frag_initial_block *b)
{
	uint64_t low = s->addr;

	for (uint32_t i = 0; i < s->blocks_count; i++, b++) {
		if (b->addr < low || !inside(b->addr, b->bytes, s->addr, s->bytes))
			return "initial block outside its segment";
		low = b->addr + b->bytes;
	}
	return NULL;
}

static const char *check_initial(const struct frag_trace_dev *dev)
{
	const struct frag_initial_state *initial = &dev->initial;
	uint64_t next = 0; /* segments have their blocks in order */

	for (size_t i = 0; i < initial->segments_count; i++) {
		const struct frag_initial_segment *s = &initial->segments[i];
		const char *wrong;

		if (s->stream >= dev->streams_count || s->pool >= dev->pools_count)
			return "stream or pool of an initial segment out of range";
		if (s->first_block != next || s->blocks_count > initial->blocks_count - next)
			return "blocks of an initial segment out of range";
		wrong = check_initial_segment(s, s->blocks_count ? initial->blocks + next : NULL);
		if (wrong)
			return wrong;
		next += s->blocks_count;
	}
	if (next != initial->blocks_count)
		return "initial blocks without a segment";
	for (size_t i = 0; i < initial->blocks_count; i++) {
		const struct frag_initial_block *b = &initial->blocks[i];

		if (b->slot >= dev->slots_count || b->stream >= dev->streams_count)
			return "slot or stream of an initial block out of range";
		if (!b->bytes || b->requested > b->bytes)
			return "initial block smaller than its request";
	}
	return NULL;
}

const char *frag_cft_check_device(const struct frag_trace_dev *dev)
{
	if (dev->streams_count > 1u << 16 || dev->pools_count > 1u << 16)
		return "too many streams or pools";
	if (dev->slots_count > FRAG_CFT_SLOTS_MAX || dev->slots_count > dev->events_count)
		return "more slots than events could fill";
	for (size_t i = 1; i < dev->streams_count; i++)
		if (dev->streams[i] <= dev->streams[i - 1])
			return "streams are not ascending";
	if (dev->streams_count && dev->streams[0])
		return "the first stream is not 0";
	if (dev->pools_count && (dev->pools[0].a || dev->pools[0].b))
		return "the first pool is not the default one";
	return check_initial(dev);
}

static const char *check_finals(const struct frag_trace_dev *dev)
{
	for (size_t i = 0; i < dev->final_segments_count; i++) {
		const struct frag_final_segment *s = &dev->final_segments[i];

		if (s->stream >= dev->streams_count || s->pool >= dev->pools_count)
			return "stream or pool of a final segment out of range";
		if (s->first_block > dev->final_blocks_count ||
		    s->blocks_count > dev->final_blocks_count - s->first_block)
			return "blocks of a final segment out of range";
	}
	for (size_t i = 0; i < dev->final_blocks_count; i++)
		if (dev->final_blocks[i].state > FRAG_STATE_FREE)
			return "unknown state of a final block";
	return NULL;
}

const char *frag_cft_check_evidence(const struct frag_trace_dev *dev)
{
	uint64_t before = 0;

	for (size_t i = 0; i < dev->seen_count; i++) {
		const struct frag_evidence *e = &dev->seen[i];

		if (e->kind > FRAG_SEEN_SNAPSHOT)
			return "unknown kind of evidence";
		if (e->stream >= dev->streams_count)
			return "stream of evidence out of range";
		if (e->before < before || e->before > dev->events_count)
			return "evidence out of order";
		before = e->before;
	}
	return check_finals(dev);
}

/* ---- sums ---- */

/* All of some events, where they may reach a bound: which one does? */
static int look(struct frag_sums s, const struct frag_event *events, size_t count, uint64_t first,
		struct frag_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_event *e = &events[i];

		if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			s.live -= FRAG_MIN(s.live, (uint64_t)e->bytes);
		s.live += e->kind == FRAG_EV_ALLOC ? e->bytes : 0;
		if (s.live > FRAG_LIVE_MAX)
			return frag_fail(err, FRAG_EINPUT,
					 "more than 1 PiB is live at event %llu: no device has so "
					 "much",
					 (unsigned long long)(first + i));
	}
	return 0;
}

static int add(struct frag_sums *s, const struct frag_event *events, size_t count, uint64_t first,
	       struct frag_err *err)
{
	static const uint64_t taken[256] = { [FRAG_EV_ALLOC] = UINT64_MAX }, given[256] = {
		[FRAG_EV_FREE] = UINT64_MAX, [FRAG_EV_FREE_COMPLETED] = UINT64_MAX
	};
	uint64_t flow = 0, back = 0;

	for (size_t i = 0; i < count; i++) {
		flow += events[i].bytes & taken[events[i].kind];
		back += events[i].bytes & given[events[i].kind];
	}
	if (s->live + flow > FRAG_LIVE_MAX)
		FRAG_TRY(look(*s, events, count, first, err));
	s->live += flow - FRAG_MIN(back, s->live + flow);
	s->flow += flow;
	if (s->flow > FRAG_FLOW_MAX)
		return frag_fail(err, FRAG_EINPUT,
				 "the requests up to event %llu ask for more than 4 EiB",
				 (unsigned long long)(first + count - 1));
	return 0;
}

int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err)
{
	/* this many of the largest requests do not overflow */
	const size_t most = 1u << 13;

	for (size_t i = 0; i < count; i += most)
		FRAG_TRY(add(s, events + i, FRAG_MIN(count - i, most), first + i, err));
	return 0;
}
