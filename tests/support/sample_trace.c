/* SPDX-License-Identifier: Apache-2.0 */
/* Traces made up for tests. */
#include "sample_trace.h"

#include <stdlib.h>
#include <string.h>

#include "trace/strings.h"

static void *must(void *block)
{
	if (!block)
		abort();
	return block;
}

static void *array_of(size_t count, size_t unit)
{
	return must(frag_host_calloc(count, unit));
}

static void *copy_of(const void *list, size_t count, size_t unit)
{
	return count ? memcpy(array_of(count, unit), list, count * unit) : NULL;
}

/* The heap's copy of a device whose lists are constant. */
static struct frag_trace_dev dev_copy(const struct frag_trace_dev *from)
{
	struct frag_trace_dev d = *from;

#define COPY(list, count) d.list = d.list ? copy_of(d.list, count, sizeof(*d.list)) : NULL
	COPY(events, d.events_count);
	COPY(addrs, d.events_count);
	COPY(streams, d.streams_count);
	COPY(pools, d.pools_count);
	COPY(initial_segments, d.initial.segments_count);
	COPY(initial_blocks, d.initial.blocks_count);
	COPY(seen, d.seen_count);
	COPY(final_segments, d.final_segments_count);
	COPY(final_blocks, d.final_blocks_count);
#undef COPY
	d.initial.segments = d.initial_segments;
	d.initial.blocks = d.initial_blocks;
	return d;
}

struct frag_trace *sample_trace_empty(void)
{
	struct frag_trace *t = array_of(1, sizeof(*t));

	if (frag_strings_create(&t->strings, NULL))
		abort();
	return t;
}

struct frag_trace *sample_trace_of(const struct frag_trace_dev *devs, uint32_t count)
{
	struct frag_trace *t = sample_trace_empty();

	t->devs_count = count;
	t->devs = array_of(count, sizeof(*t->devs));
	for (uint32_t i = 0; i < count; i++)
		t->devs[i] = dev_copy(&devs[i]);
	return t;
}

static uint32_t intern(struct frag_trace *t, const char *text)
{
	uint32_t index;

	if (frag_strings_intern(t->strings, text, strlen(text), &index, NULL))
		abort();
	return index;
}

static void small_head(struct frag_trace *t)
{
	static const uint32_t index[] = { 1, 0, 1 };
	static const uint64_t first[] = { 0, 0, 2, 3 };
	struct frag_frame frames[] = {
		{ intern(t, "forward"), intern(t, "model.py"), 12 },
		{ intern(t, "step"), intern(t, "optim/adam.py"), 4000000000u },
	};
	char *conf = must(frag_host_strdup("max_split_size_mb:128"));

	t->name = must(frag_host_strdup("small"));
	t->format = must(frag_host_strdup("made-up"));
	t->start_us = 1700000000123456ull;
	t->file_bytes = 4711;
	t->settings = (struct frag_trace_settings){ .present = true,
						    .conf = conf,
						    .max_split_bytes = 128 * FRAG_MIB,
						    .gc_threshold = 0.6,
						    .expandable = true,
						    .roundup = { 1, 2, 4, 8 },
						    .limit_bytes = UINT64_MAX,
						    .torch_first = 205,
						    .torch_last = 207 };
	t->stacks.frames = copy_of(frames, 2, sizeof(*frames));
	t->stacks.index = copy_of(index, 3, sizeof(*index));
	t->stacks.first = copy_of(first, 4, sizeof(*first));
	t->stacks.frames_count = 2;
	t->stacks.index_count = t->stacks.count = 3;
}

#define END (1u << 30) /* some time */

/* Every kind of event, in a history that began late. */
static const struct frag_event small_events[] = {
	SAMPLE(ALLOC, 1000, 0, .flags = FRAG_EVF_INITIAL),
	SAMPLE(ALLOC, 5000, 1, .stream = 1, .flags = FRAG_EVF_INITIAL),
	SAMPLE(FREE_COMPLETED, 5000, 1, .stream = 1, .time_us = 3),
	SAMPLE(ALLOC, 77, 1, .pool = 1, .stream = 2, .time_us = 7, .stack = 1),
	SAMPLE(ALLOC, FRAG_MAX_REQUEST, 2, .time_us = 300, .stack = 2),
	SAMPLE(MARK, 0, 1, .flags = FRAG_EVF_STEP, .time_us = 300),
	SAMPLE(FREE_REQUESTED, 77, 1, .pool = 1, .stream = 2, .time_us = END),
	SAMPLE(REFUSED, 1ull << 40, 0, .stream = 1, .time_us = END),
	SAMPLE(FREE_COMPLETED, 77, 1, .pool = 1, .stream = 2, .flags = FRAG_EVF_AT_SYNC,
	       .time_us = END + 1),
	SAMPLE(TRIM, 0, 0, .pool = 1, .flags = FRAG_EVF_UNSURE, .time_us = END + 254),
	SAMPLE(MARK, 0, 3, .flags = FRAG_EVF_END, .time_us = END + 509),
	SAMPLE(FREE, 1000, 0, .time_us = (1ull << 40) - 1),
};
static const frag_addr_t small_addrs[] = {
	0x7f0000000000, 0x7f0000400200, FRAG_NO_ADDR, FRAG_NO_ADDR, 0x7f1000000000, FRAG_NO_ADDR,
	FRAG_NO_ADDR,	FRAG_NO_ADDR,	FRAG_NO_ADDR, FRAG_NO_ADDR, FRAG_NO_ADDR,   FRAG_NO_ADDR,
};
static const struct frag_evidence small_seen[] = {
	{ 0, 1, 2, 3, 1, FRAG_SEEN_SEGMENT_MAP },
	{ 4, 0x7f1000000000, 1ull << 48, 299, 0, FRAG_SEEN_SEGMENT_ALLOC },
	{ 4, UINT64_MAX, UINT64_MAX, UINT64_MAX, 2, FRAG_SEEN_SEGMENT_UNMAP },
	{ 7, 12345, 1ull << 40, 1u << 30, 1, FRAG_SEEN_OOM },
	{ 12, 0, 99, 1ull << 41, 0, FRAG_SEEN_SNAPSHOT },
	{ 12, 5, 99, 1, 0, FRAG_SEEN_SEGMENT_FREE },
};
static const uint64_t small_streams[] = { 0, 7, 0xfedcba9876543210ull };
static const struct frag_pool_id small_pools[] = { { 0, 0 }, { 3, 0 }, { 0, 9 } };
static const struct frag_initial_segment first_segments[] = {
	{ 0x7f0000000000, 2 * FRAG_MIB, 0, 0, true, false, 0, 1, 0 },
	{ 0x7f0000400000, 20 * FRAG_MIB, 1, 2, false, true, 1, 1, 0x7f0000000000 },
};
static const struct frag_initial_block first_blocks[] = {
	{ 0x7f0000000000, 1024, 1000, 0, 0, false },
	{ 0x7f0000400200, 5120, 5000, 1, 1, true },
};
static const struct frag_final_segment last_segments[] = {
	{ 0x7f0000400000, 20 * FRAG_MIB, 0, 3, 1, 0, false, true },
	{ 0x7f0000000000, 2 * FRAG_MIB, 3, 0, 2, 2, true, false },
};
static const struct frag_final_block last_blocks[] = {
	{ 0x7f0000400000, 512, 3, FRAG_STATE_LIVE },
	{ 0x7f0000400200, 1024, 1000, FRAG_STATE_WAITING },
	{ 0x7f0000400600, 20 * FRAG_MIB - 1536, 0, FRAG_STATE_FREE },
};
static const struct frag_event second_events[] = {
	SAMPLE(ALLOC, 1, 0),
	SAMPLE(FREE, 1, 0, .time_us = 1, .stack = 2),
};

struct frag_trace *sample_trace_small(void)
{
	const struct frag_trace_dev devs[] = {
		{ .ordinal = 3,
		  SAMPLE_LIST(events, small_events),
		  .slots_count = 3,
		  SAMPLE_LIST(streams, small_streams),
		  SAMPLE_LIST(pools, small_pools),
		  .initial_segments = (void *)(uintptr_t)first_segments,
		  .initial_blocks = (void *)(uintptr_t)first_blocks,
		  .initial = { .segments_count = 2, .blocks_count = 2 },
		  .recorded_count = 15,
		  .truncated = true,
		  .uncertain_blocks = 1,
		  .has_evidence = true,
		  .addrs = (void *)(uintptr_t)small_addrs,
		  SAMPLE_LIST(seen, small_seen),
		  SAMPLE_LIST(final_segments, last_segments),
		  SAMPLE_LIST(final_blocks, last_blocks) },
		{ .ordinal = 5,
		  SAMPLE_LIST(events, second_events),
		  .slots_count = 1,
		  .streams = (void *)(uintptr_t)small_streams,
		  .streams_count = 1,
		  .pools = (void *)(uintptr_t)small_pools,
		  .pools_count = 1 },
	};
	struct frag_trace *t = sample_trace_of(devs, 2);

	small_head(t);
	return t;
}

/* ---- random ones ------------------------------------------------------------------ */

#define SLOTS 4000u

struct maker {
	uint64_t rng, time_us;
	struct frag_trace_dev *dev;
	uint32_t free[SLOTS], free_count; /* the last is taken next */
	uint32_t live[SLOTS], live_count;
	struct frag_event alloc_of[SLOTS]; /* by slot */
	bool waiting[SLOTS];
};

static uint64_t roll(struct maker *m, uint64_t below)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return m->rng % below;
}

static struct frag_event random_alloc(struct maker *m, bool disorder)
{
	struct frag_event ev = { .kind = FRAG_EV_ALLOC,
				 .bytes = 1 + roll(m, 1 + (1ull << roll(m, 40))),
				 .stream = (uint16_t)roll(m, 3),
				 .pool = roll(m, 20) ? 0 : 1 };

	if (disorder && m->free_count > 1 && !roll(m, 50)) {
		uint32_t i = (uint32_t)roll(m, m->free_count), s = m->free[i];

		memmove(m->free + i, m->free + i + 1, (m->free_count - i - 1) * sizeof(s));
		m->free[m->free_count - 1] = s;
	}
	if (m->free_count && !(disorder && !roll(m, 100) && m->dev->slots_count < SLOTS))
		ev.slot = m->free[--m->free_count];
	else
		ev.slot = m->dev->slots_count++;
	m->live[m->live_count++] = ev.slot;
	m->alloc_of[ev.slot] = ev;
	m->waiting[ev.slot] = false;
	return ev;
}

static struct frag_event random_free(struct maker *m)
{
	uint32_t most = roll(m, 10) ? 8 : UINT32_MAX, recent = FRAG_MIN(m->live_count, most);
	uint32_t i = m->live_count - 1 - (uint32_t)roll(m, recent), slot = m->live[i];
	struct frag_event ev = m->alloc_of[slot];

	if (m->waiting[slot])
		ev.kind = FRAG_EV_FREE_COMPLETED;
	else
		ev.kind = roll(m, 5) ? FRAG_EV_FREE : FRAG_EV_FREE_REQUESTED;
	if (!roll(m, 50))
		ev.stream = (ev.stream + 1) % 3; /* let go on another stream */
	if (ev.kind == FRAG_EV_FREE_REQUESTED) {
		m->waiting[slot] = true;
		return ev;
	}
	memmove(m->live + i, m->live + i + 1, (m->live_count - i - 1) * sizeof(slot));
	m->live_count--;
	m->free[m->free_count++] = slot;
	return ev;
}

static struct frag_event random_event(struct maker *m, bool disorder)
{
	uint64_t what = roll(m, 1000);
	struct frag_event ev;

	if (what < 3)
		ev = (struct frag_event){ .kind = FRAG_EV_MARK,
					  .slot = (uint32_t)roll(m, 3),
					  .flags = (uint8_t)(roll(m, 2) ? FRAG_EVF_STEP
									: FRAG_EVF_END) };
	else if (what < 5)
		ev = (struct frag_event){ .kind = FRAG_EV_TRIM, .pool = roll(m, 2) };
	else if (what < 7)
		ev = (struct frag_event){ .kind = FRAG_EV_REFUSED,
					  .bytes = 1 + roll(m, 1ull << 47) };
	else if (!m->live_count || (roll(m, 2) && m->live_count < SLOTS - 1))
		ev = random_alloc(m, disorder && m->dev->slots_count < SLOTS);
	else
		ev = random_free(m);
	m->time_us += roll(m, 100) ? roll(m, 20) : roll(m, 1u << 20);
	ev.time_us = m->time_us & ((1ull << 40) - 1);
	return ev;
}

static void random_evidence(struct maker *m, struct frag_trace_dev *dev)
{
	dev->has_evidence = true;
	dev->addrs = array_of(dev->events_count, sizeof(*dev->addrs));
	dev->seen_count = dev->events_count / 10;
	dev->seen = array_of(dev->seen_count, sizeof(*dev->seen));
	for (size_t i = 0; i < dev->events_count; i++)
		dev->addrs[i] = dev->events[i].kind == FRAG_EV_ALLOC
					? (0x7f0000000000 + 512 * roll(m, 90000))
					: FRAG_NO_ADDR;
	for (size_t i = 0; i < dev->seen_count; i++)
		dev->seen[i] =
			(struct frag_evidence){ .before = i * 10,
						.addr = roll(m, 1ull << 48),
						.bytes = roll(m, 1ull << 40),
						.time_us = dev->events[i * 10].time_us,
						.stream = (uint16_t)roll(m, 3),
						.kind = (uint8_t)roll(m, FRAG_SEEN_SNAPSHOT + 1) };
}

struct frag_trace *sample_trace_random(uint64_t seed, size_t count, bool evidence, bool disorder)
{
	static const uint64_t streams[] = { 0, 1, 2 };
	static const struct frag_pool_id pools[] = { { 0, 0 }, { 1, 0 } };
	const struct frag_trace_dev dev = { SAMPLE_LIST(streams, streams),
					    SAMPLE_LIST(pools, pools) };
	struct frag_trace *t = sample_trace_of(&dev, 1);
	struct maker *m = array_of(1, sizeof(*m));

	small_head(t);
	m->dev = t->devs;
	m->rng = seed * 0x9E3779B97F4A7C15ull + 1;
	m->dev->events = array_of(count, sizeof(*m->dev->events));
	m->dev->events_count = m->dev->recorded_count = count;
	for (size_t i = 0; i < count; i++) {
		m->dev->events[i] = random_event(m, disorder);
		m->dev->events[i].stack = roll(m, 3);
	}
	if (evidence)
		random_evidence(m, m->dev);
	frag_host_free(m);
	return t;
}
