/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the entries of a device. `live` maps addresses to slots. An alloc, and a free
 * completed by the next entry, are handled at once. All else that can occur between two operations
 * (deferred completions, released and new segments) forms a group, which ends with the alloc or oom
 * that caused it, or without one: then it was an empty_cache.
 *
 * Source of the grammar: PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp.
 */
#include "build_internal.h"
#include "trace/event_words.h"
#include "trace/strings.h"
#include "lib/bisect.h"

#define PENDING UINT64_MAX /* evidence that waits for the index of its event */
#define MAX_TIME ((1ull << 40) - 1)
#define MAX_STACK ((1u << 24) - 1)

/* ---- emitting --------------------------------------------------------------- */

/* Index of entry i as the recorder counted: a FRAG_RAW_FREE was two. */
static size_t raw_index(const struct frag_raw_dev *raw, size_t i)
{
	size_t at = i;

	for (size_t k = 0; k < i; k++)
		at += raw->entries[k].action == FRAG_RAW_FREE;
	return at;
}

int frag_build_bad(const struct frag_raw_dev *raw, size_t i, const char *about, const char *what,
		   struct frag_err *err)
{
	const struct frag_raw_entry *e = &raw->entries[i];
	size_t at = raw_index(raw, i);

	return frag_fail_at(err, FRAG_EINPUT, at,
			    "device %u, entry %zu%s: %s (address 0x%llx, %llu bytes)", raw->ordinal,
			    at, about, what, (unsigned long long)e->addr,
			    (unsigned long long)e->bytes);
}

static int bad_entry(struct frag_builder *b, size_t i, const char *what)
{
	return frag_build_bad(b->raw, i, "", what, b->err);
}

static inline uint64_t event_time(struct frag_builder *b, uint64_t unix_us)
{
	uint64_t t = unix_us > b->raw->start_us ? unix_us - b->raw->start_us : 0;

	if (FRAG_UNLIKELY(t < b->last_us))
		t = b->last_us;
	if (FRAG_UNLIKELY(t > MAX_TIME))
		t = MAX_TIME;
	b->last_us = t;
	return t;
}

/* The arrays have room for all: see allocate. request: bytes | pool << FRAG_EVENT_POOL_SHIFT. */
static inline void emit(struct frag_builder *b, const struct frag_raw_entry *e,
			enum frag_event_kind kind, uint64_t request, uint64_t what,
			frag_addr_t addr)
{
	uint64_t stack = e->stack <= MAX_STACK ? e->stack : FRAG_NO_STACK;
	struct frag_trace_dev *out = b->out;

	frag_event_put(&out->events[out->events_count],
		       (struct frag_event_words){
			       .request = request,
			       .when = event_time(b, e->time_us) | stack << FRAG_EVENT_STACK_SHIFT,
			       .what = what | (uint64_t)kind << FRAG_EVENT_KIND_SHIFT });
	out->addrs[out->events_count++] = addr;
}

static void emit_marks(struct frag_builder *b, uint64_t until_us)
{
	const struct frag_raw_dev *raw = b->raw;

	while (b->next_mark < raw->marks_count && raw->marks[b->next_mark].time_us <= until_us) {
		const struct frag_raw_mark *m = &raw->marks[b->next_mark++];
		struct frag_raw_entry e = { .time_us = m->time_us };

		emit(b, &e, FRAG_EV_MARK, 0, frag_event_what(m->name, 0, 0, m->flags),
		     FRAG_NO_ADDR);
	}
	b->mark_us =
		b->next_mark < raw->marks_count ? raw->marks[b->next_mark].time_us : UINT64_MAX;
}

static void emit_seen(struct frag_builder *b, const struct frag_raw_entry *e, uint64_t before)
{
	static const uint8_t kinds[FRAG_RAW_COUNT] = {
		[FRAG_RAW_SEGMENT_ALLOC] = FRAG_SEEN_SEGMENT_ALLOC,
		[FRAG_RAW_SEGMENT_FREE] = FRAG_SEEN_SEGMENT_FREE,
		[FRAG_RAW_SEGMENT_MAP] = FRAG_SEEN_SEGMENT_MAP,
		[FRAG_RAW_SEGMENT_UNMAP] = FRAG_SEEN_SEGMENT_UNMAP,
		[FRAG_RAW_OOM] = FRAG_SEEN_OOM,
		[FRAG_RAW_SNAPSHOT] = FRAG_SEEN_SNAPSHOT,
	};
	struct frag_trace_dev *out = b->out;

	out->seen[out->seen_count++] = (struct frag_evidence){
		.before = before,
		.addr = e->addr,
		.bytes = e->bytes,
		.time_us = e->time_us > b->raw->start_us ? e->time_us - b->raw->start_us : 0,
		.stream = b->stream_of[e->stream],
		.kind = kinds[e->action],
	};
}

/* ---- slots -------------------------------------------------------------------- */

static int take_slot(struct frag_builder *b, uint32_t *slot)
{
	struct frag_trace_dev *out = b->out;

	if (b->free_count) {
		*slot = b->free_slots[--b->free_count];
		return 0;
	}
	if (out->slots_count == b->slots_cap) {
		size_t cap = b->slots_cap;

		FRAG_TRY(FRAG_GROW(b->slots, out->slots_count, cap, "slots", b->err));
		cap = b->slots_cap;
		FRAG_TRY(FRAG_GROW(b->free_slots, out->slots_count, cap, "slots", b->err));
		b->slots_cap = cap;
	}
	*slot = out->slots_count++;
	return 0;
}

/* Pools as the file names them; without names, resolving finds them (src/verify/resolve.h). */
static inline uint16_t entry_pool(const struct frag_builder *b, size_t i)
{
	uint16_t pool = b->raw->entries[i].pool;

	return FRAG_LIKELY(pool == FRAG_RAW_NO_POOL) ? 0 : pool;
}

static int alloc(struct frag_builder *b, size_t i)
{
	const struct frag_raw_entry *e = &b->raw->entries[i];
	uint16_t stream = b->stream_of[e->stream], pool = entry_pool(b, i);
	uint32_t slot = 0;

	if (FRAG_UNLIKELY(!e->bytes || e->bytes > FRAG_MAX_REQUEST))
		return bad_entry(b, i, "alloc of an impossible size");
	FRAG_TRY(take_slot(b, &slot));
	FRAG_CHECK_ALLOC(!frag_addr_map_reserve(&b->live), "live blocks", b->err);
	if (FRAG_UNLIKELY(!frag_addr_map_add(&b->live, e->addr, slot + 1ull)))
		return bad_entry(b, i, "alloc at an address that is still live");
	emit(b, e, FRAG_EV_ALLOC, e->bytes | (uint64_t)pool << FRAG_EVENT_POOL_SHIFT,
	     frag_event_what(slot, stream, 0, 0), e->addr);
	b->slots[slot] =
		(struct frag_build_slot){ e->addr, e->bytes, stream, pool, false, true, false };
	return 0;
}

static inline void emit_free(struct frag_builder *b, const struct frag_raw_entry *e, uint32_t slot,
			     enum frag_event_kind kind, unsigned flags)
{
	const struct frag_build_slot *s = &b->slots[slot];

	emit(b, e, kind, s->bytes | (uint64_t)s->pool << FRAG_EVENT_POOL_SHIFT,
	     frag_event_what(slot, s->stream, 0, flags), FRAG_NO_ADDR);
}

static inline void end_slot(struct frag_builder *b, struct frag_addr_cell *cell)
{
	uint32_t slot = frag_addr_number(cell);

	b->free_slots[b->free_count++] = slot;
	b->slots[slot].used = false;
	frag_addr_map_remove(&b->live, cell);
}

/* An entry FREE or FREE_REQUESTED. */
static int let_go(struct frag_builder *b, size_t i)
{
	const struct frag_raw_entry *e = &b->raw->entries[i];
	struct frag_addr_cell *cell = frag_addr_map_find(&b->live, e->addr);

	if (FRAG_UNLIKELY(!cell))
		return bad_entry(b, i, "free of an address that is not live");
	if (FRAG_UNLIKELY(b->slots[frag_addr_number(cell)].waiting))
		return bad_entry(b, i, "free of an address that was freed before");
	if (FRAG_LIKELY(e->action == FRAG_RAW_FREE || b->one_free_kind)) {
		emit_free(b, e, frag_addr_number(cell), FRAG_EV_FREE, 0);
		end_slot(b, cell);
	} else {
		emit_free(b, e, frag_addr_number(cell), FRAG_EV_FREE_REQUESTED, 0);
		b->slots[frag_addr_number(cell)].waiting = true;
	}
	return 0;
}

static int complete(struct frag_builder *b, size_t i, unsigned flags)
{
	const struct frag_raw_entry *e = &b->raw->entries[i];
	struct frag_addr_cell *cell = frag_addr_map_find(&b->live, e->addr);

	if (!cell)
		return bad_entry(b, i, "completed free of an address that is not live");
	if (!b->slots[frag_addr_number(cell)].waiting && !b->one_free_kind)
		return bad_entry(b, i, "completed free that nobody requested");
	emit_free(b, e, frag_addr_number(cell),
		  b->one_free_kind ? FRAG_EV_FREE : FRAG_EV_FREE_COMPLETED, flags);
	end_slot(b, cell);
	return 0;
}

static void refused(struct frag_builder *b, const struct frag_raw_entry *e)
{
	emit_seen(b, e, b->out->events_count);
	emit(b, e, FRAG_EV_REFUSED, FRAG_MIN(FRAG_MAX(e->bytes, 1), FRAG_MAX_REQUEST),
	     frag_event_what(0, b->stream_of[e->stream], 0, 0), FRAG_NO_ADDR);
}

/* ---- groups --------------------------------------------------------------------- */

struct group {
	size_t first, last; /* entries [first, last) */
	unsigned closer;    /* action of entry `last`, FRAG_RAW_OTHER at the end of the trace */
	bool grows, releases, completes;
};

static struct group find_group(const struct frag_builder *b, size_t first)
{
	const struct frag_raw_entry *e = b->raw->entries;
	struct group g = { .first = first, .last = first };

	for (; g.last < b->raw->entries_count; g.last++) {
		unsigned action = (unsigned)e[g.last].action;

		if (action == FRAG_RAW_ALLOC || action == FRAG_RAW_OOM ||
		    action >= FRAG_RAW_EMPTY_CACHE || frag_raw_is_free(action)) {
			g.closer = action;
			break;
		}
		g.grows |= frag_raw_is_growth(action);
		g.releases |= frag_raw_is_release(action);
		g.completes |= action == FRAG_RAW_FREE_COMPLETED;
	}
	return g;
}

/* The releases were an empty_cache: one TRIM per run of segments of one pool. when: NULL = each at
 * its own time. */
static int trim_group(struct frag_builder *b, const struct group *g,
		      const struct frag_raw_entry *when)
{
	const struct frag_raw_entry *e = b->raw->entries;
	uint64_t trim = PENDING;
	uint16_t pool = 0;

	for (size_t i = g->first; i < g->last; i++) {
		if (e[i].action == FRAG_RAW_FREE_COMPLETED) {
			FRAG_TRY(complete(b, i, 0));
			trim = PENDING;
		} else if (frag_raw_is_release((unsigned)e[i].action)) {
			if (trim == PENDING || pool != entry_pool(b, i)) {
				trim = b->out->events_count;
				pool = entry_pool(b, i);
				emit(b, when ? when : &e[i], FRAG_EV_TRIM,
				     (uint64_t)pool << FRAG_EVENT_POOL_SHIFT, 0, FRAG_NO_ADDR);
			}
			emit_seen(b, &e[i], trim);
		} else if (e[i].action == FRAG_RAW_SNAPSHOT) {
			emit_seen(b, &e[i], b->out->events_count);
		}
	}
	return 0;
}

/* Part of serving the malloc that ends the group. Releases before a new segment stay evidence: only
 * a simulation can distinguish an empty_cache from a retry. */
static int serve_group(struct frag_builder *b, const struct group *g)
{
	const struct frag_raw_entry *e = b->raw->entries;
	size_t seen = b->out->seen_count;
	bool released = false;

	for (size_t i = g->first; i < g->last; i++) {
		unsigned action = (unsigned)e[i].action;

		if (action == FRAG_RAW_FREE_COMPLETED)
			FRAG_TRY(complete(b, i, released ? FRAG_EVF_AT_SYNC : 0));
		else if (action != FRAG_RAW_OTHER)
			emit_seen(b, &e[i], PENDING);
		released |= frag_raw_is_release(action);
	}
	for (; seen < b->out->seen_count; seen++)
		b->out->seen[seen].before = b->out->events_count;
	return 0;
}

static int group(struct frag_builder *b, size_t i, size_t *next)
{
	struct group g = find_group(b, i);
	bool malloc_next = g.closer == FRAG_RAW_ALLOC || g.closer == FRAG_RAW_OOM;

	*next = g.last;
	if (g.releases && !g.grows && g.closer != FRAG_RAW_OOM)
		FRAG_TRY(trim_group(b, &g, NULL));
	else
		FRAG_TRY(serve_group(b, &g));
	if (!malloc_next)
		return 0;
	*next = g.last + 1;
	if (g.closer == FRAG_RAW_ALLOC)
		return alloc(b, g.last);
	refused(b, &b->raw->entries[g.last]);
	return 0;
}

/* A call that the recorder wrote down, and its releases. */
static int empty_cache(struct frag_builder *b, size_t i, size_t *next)
{
	const struct frag_raw_entry *e = b->raw->entries, *call = &e[i];
	const size_t events = b->out->events_count;
	struct group g = { .first = i + 1, .last = i + 1 };
	uint64_t left = call->bytes;

	for (size_t k = g.first; left && k < b->raw->entries_count; k++) {
		if (frag_raw_is_release((unsigned)e[k].action)) {
			left -= FRAG_MIN(left, e[k].bytes);
			g.last = k + 1;
		} else if (e[k].action != FRAG_RAW_FREE_COMPLETED &&
			   e[k].action != FRAG_RAW_SNAPSHOT && e[k].action != FRAG_RAW_OTHER) {
			break;
		}
	}
	*next = g.last;
	FRAG_TRY(trim_group(b, &g, call));
	if (b->out->events_count == events)
		emit(b, call, FRAG_EV_TRIM, 0, 0, FRAG_NO_ADDR);
	return 0;
}

int frag_build_entries(struct frag_builder *b)
{
	const struct frag_raw_entry *entries = b->raw->entries;
	size_t n = b->raw->entries_count;
	uint32_t name;

	for (size_t i = 0; i < n;) {
		const struct frag_raw_entry *e = &entries[i];

		if (FRAG_UNLIKELY(e->time_us >= b->mark_us))
			emit_marks(b, e->time_us);
		switch (e->action) {
		case FRAG_RAW_ALLOC:
			FRAG_TRY(alloc(b, i++));
			break;
		case FRAG_RAW_FREE:
		case FRAG_RAW_FREE_REQUESTED:
			FRAG_TRY(let_go(b, i++));
			break;
		case FRAG_RAW_OOM:
			refused(b, e);
			i++;
			break;
		case FRAG_RAW_SNAPSHOT:
			emit_seen(b, e, b->out->events_count);
			i++;
			break;
		case FRAG_RAW_OTHER:
			i++;
			break;
		case FRAG_RAW_EMPTY_CACHE:
			FRAG_TRY(empty_cache(b, i, &i));
			break;
		case FRAG_RAW_LIMIT:
			FRAG_TRY(frag_strings_intern(b->raw->strings, "limit", 5, &name, b->err));
			emit(b, e, FRAG_EV_MARK, FRAG_MIN(e->bytes, FRAG_MAX_REQUEST),
			     frag_event_what(name, 0, 0, FRAG_EVF_LIMIT), FRAG_NO_ADDR);
			i++;
			break;
		default:
			FRAG_TRY(group(b, i, &i));
		}
	}
	emit_marks(b, UINT64_MAX - 1);
	return 0;
}

/* Pool of the segment that initial block i lies in. */
static uint16_t pool_of_initial(const struct frag_trace_dev *out, size_t i)
{
	size_t low;

	FRAG_BISECT(low, 0, out->initial.segments_count,
		    out->initial_segments[low].first_block +
				    out->initial_segments[low].blocks_count <=
			    i);
	return low < out->initial.segments_count ? out->initial_segments[low].pool : 0;
}

int frag_build_initial(struct frag_builder *b)
{
	struct frag_trace_dev *out = b->out;
	struct frag_raw_entry e = { .time_us = b->raw->start_us };

	for (size_t i = 0; i < out->initial.blocks_count; i++) {
		const struct frag_initial_block *s = &out->initial_blocks[i];
		uint16_t pool = pool_of_initial(out, i);
		uint32_t slot = 0;

		FRAG_TRY(take_slot(b, &slot));
		FRAG_CHECK_ALLOC(!frag_addr_map_number(&b->live, s->addr, slot), "live blocks",
				 b->err);
		FRAG_ASSERT(slot == s->slot);
		b->slots[slot] = (struct frag_build_slot){
			s->addr, s->requested, (uint16_t)s->stream, pool, false, true, true
		};
		emit(b, &e, FRAG_EV_ALLOC, s->requested | (uint64_t)pool << FRAG_EVENT_POOL_SHIFT,
		     frag_event_what(slot, (uint16_t)s->stream, 0, FRAG_EVF_INITIAL), s->addr);
	}
	/* freed before the history began: the request is added, so that every completion has one */
	for (size_t i = 0; i < out->initial.blocks_count; i++) {
		if (!out->initial_blocks[i].waiting)
			continue;
		emit_free(b, &e, (uint32_t)i, FRAG_EV_FREE_REQUESTED, 0);
		b->slots[i].waiting = true;
	}
	return 0;
}

void frag_build_name_initial(struct frag_builder *b)
{
	const struct frag_raw_dev *raw = b->raw;

	for (size_t i = 0; raw->block_stacks && i < raw->segments_count; i++) {
		const struct frag_raw_segment *s = &raw->segments[i];

		for (uint32_t k = s->first_block; k < s->first_block + s->blocks_count; k++) {
			const struct frag_addr_cell *cell =
				frag_addr_map_find(&b->live, raw->blocks[k].addr);

			/* the first events are those of the first slots */
			if (cell && b->slots[frag_addr_number(cell)].initial &&
			    raw->block_stacks[k] <= MAX_STACK)
				b->out->events[frag_addr_number(cell)].stack = raw->block_stacks[k];
		}
	}
}
