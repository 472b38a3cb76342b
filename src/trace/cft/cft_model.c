/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a trace, event by event. The writer checks them before it writes, the reader before
 * it returns events, so all other code can rely on them. The hot loop of the reader (cft_unpack.c)
 * has its own copy of the common cases; this one is complete.
 */
#include "cft.h"

int frag_cft_model_init(struct frag_cft_model *m, const struct frag_trace *trace,
			const struct frag_trace_dev *dev, struct frag_err *err)
{
	*m = (struct frag_cft_model){
		.free_head = FRAG_CFT_NO_SLOT, .trace = trace, .dev = dev, .beginning = true
	};
	m->strings_count = trace->strings ? frag_strings_count(trace->strings) : 1;
	m->recent = frag_host_calloc(FRAG_CFT_AGES, sizeof(*m->recent));
	return m->recent ? 0 : frag_fail_nomem(err, "trace slots");
}

void frag_cft_model_release(struct frag_cft_model *m)
{
	FRAG_FREE(m->slots, m->recent);
	m->slots = NULL;
	m->recent = NULL;
}

int frag_cft_model_reserve(struct frag_cft_model *m, struct frag_err *err)
{
	uint64_t cap = FRAG_MIN((uint64_t)m->dev->slots_count, m->allocs + 2 * FRAG_CFT_BATCH);
	struct frag_cft_slot *slots;

	if (cap <= m->cap)
		return 0;
	slots = frag_host_realloc(m->slots, cap, sizeof(*slots));
	FRAG_CHECK_ALLOC(slots, "trace slots", err);
	m->slots = slots;
	m->cap = (uint32_t)cap;
	return 0;
}

/* Are the indices of an event within their tables? NULL, or what is wrong. */
static const char *wrong_index(const struct frag_cft_model *m, const struct frag_event *ev)
{
	if (ev->stream >= m->dev->streams_count)
		return "stream out of range";
	if (ev->pool >= m->dev->pools_count)
		return "pool out of range";
	if (ev->stack && ev->stack >= m->trace->stacks.count)
		return "stack out of range";
	if (ev->kind == FRAG_EV_MARK && ev->slot >= m->strings_count)
		return "name of a mark out of range";
	return NULL;
}

/* Skipped slots become free; the lowest is reused last. */
static void skip_to(struct frag_cft_model *m, uint32_t slot)
{
	while (m->count < slot)
		frag_cft_model_give(m, m->count++);
}

static void unlink_slot(struct frag_cft_model *m, uint32_t slot)
{
	struct frag_cft_slot *s = &m->slots[slot];

	if (s->next != FRAG_CFT_NO_SLOT)
		m->slots[s->next].prev = s->prev;
	if (s->prev != FRAG_CFT_NO_SLOT)
		m->slots[s->prev].next = s->next;
	else
		m->free_head = s->next;
}

static const char *check_initial_event(struct frag_cft_model *m, const struct frag_event *ev)
{
	const struct frag_initial_state *initial = &m->dev->initial;

	if (!(ev->flags & FRAG_EVF_INITIAL))
		return m->events < initial->blocks_count ? "an initial alloc is missing" : NULL;
	if (ev->kind != FRAG_EV_ALLOC || !m->beginning)
		return "an initial alloc after other events";
	if (!initial->blocks_count)
		return NULL; /* the initial state itself was left out */
	if (m->events >= initial->blocks_count)
		return "more initial allocs than initial blocks";
	if (initial->blocks[m->events].slot != ev->slot)
		return "an initial alloc has another slot than its block";
	return NULL;
}

static const char *step_alloc(struct frag_cft_model *m, const struct frag_event *ev)
{
	uint64_t bytes_pool = ev->bytes | (uint64_t)ev->pool << 48;

	if (!ev->bytes)
		return "alloc of 0 bytes";
	if (ev->slot >= m->cap)
		return "slot out of range";
	if (ev->slot < m->count && m->slots[ev->slot].state != FRAG_CFT_FREE)
		return "alloc into a slot that is live";
	if (ev->slot != frag_cft_model_next(m)) {
		/* not by the rule: put the slot where the rule would take it from */
		skip_to(m, ev->slot);
		if (ev->slot < m->count) {
			unlink_slot(m, ev->slot);
			frag_cft_model_give(m, ev->slot);
		} else {
			/* a fresh slot although others are free */
			frag_cft_model_give(m, m->count++);
		}
	}
	frag_cft_model_take(m, ev->slot, bytes_pool, ev->stream);
	m->slots[ev->slot].initial = ev->flags & FRAG_EVF_INITIAL;
	return NULL;
}

static const char *step_free(struct frag_cft_model *m, const struct frag_event *ev)
{
	struct frag_cft_slot *s;
	int state;

	if (ev->slot >= m->count)
		return "free of a slot that was never used";
	s = &m->slots[ev->slot];
	state = frag_cft_free_result(s, ev->kind);
	if (state < 0)
		return "free of a slot that is not live";
	if (ev->bytes != (s->bytes_pool & FRAG_MAX_REQUEST))
		return "free of another size than its alloc";
	if (state == FRAG_CFT_FREE)
		frag_cft_model_give(m, ev->slot);
	else
		s->state = FRAG_CFT_WAITING;
	return NULL;
}

const char *frag_cft_model_step(struct frag_cft_model *m, const struct frag_event *ev)
{
	const char *wrong = wrong_index(m, ev);

	if (!wrong)
		wrong = check_initial_event(m, ev);
	if (wrong)
		return wrong;
	switch (ev->kind) {
	case FRAG_EV_ALLOC:
		wrong = step_alloc(m, ev);
		break;
	case FRAG_EV_FREE:
	case FRAG_EV_FREE_REQUESTED:
	case FRAG_EV_FREE_COMPLETED:
		wrong = step_free(m, ev);
		break;
	case FRAG_EV_REFUSED:
		wrong = ev->bytes ? NULL : "refused request of 0 bytes";
		break;
	case FRAG_EV_TRIM:
	case FRAG_EV_MARK:
		break;
	default:
		return "unknown kind of event";
	}
	if (wrong)
		return wrong;
	if (!(ev->flags & FRAG_EVF_INITIAL))
		m->beginning = false;
	m->time_us = ev->time_us;
	m->events++;
	return NULL;
}

/* ---- everything but the events, checked before it is written or returned ---- */

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
	if (dev->ordinal > UINT16_MAX)
		return "device number out of range";
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

int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_event *e = &events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			s->live += e->bytes;
			s->flow += e->bytes;
		} else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED) {
			s->live -= FRAG_MIN(s->live, (uint64_t)e->bytes);
		}
		if (FRAG_UNLIKELY(s->live > FRAG_LIVE_MAX || s->flow > FRAG_FLOW_MAX))
			return FRAG_INPUT(err,
					  s->live > FRAG_LIVE_MAX
						  ? "more than 1 PiB is live at event %llu: no "
						    "device has so much"
						  : "the requests up to event %llu ask for more "
						    "than 4 EiB",
					  (unsigned long long)(first + i));
	}
	return 0;
}
