/* SPDX-License-Identifier: Apache-2.0 */
/* What a device has done, as PyTorch counts it. */
#include "live_core.h"

#include <stdio.h>
#include <string.h>

#define SMALL_MAX FRAG_MIB

static void add(struct frag_live_stat *s, int64_t n)
{
	s->current += n;
	if (n > 0) {
		s->allocated += n;
		s->peak = FRAG_MAX(s->peak, s->current);
	} else {
		s->freed -= n;
	}
}

static void add2(struct frag_live_stat *s, enum frag_live_kind kind, int64_t n)
{
	add(&s[FRAG_LIVE_ALL], n);
	add(&s[kind], n);
}

static enum frag_live_kind kind_of(const struct frag_live_block *block)
{
	return block->b.requested > SMALL_MAX ? FRAG_LIVE_LARGE : FRAG_LIVE_SMALL;
}

void frag_live_count_alloc(struct frag_live_dev *d, const struct frag_live_block *block)
{
	struct frag_live_stats *st = &d->stats;
	enum frag_live_kind k = kind_of(block);

	add2(st->allocation, k, 1);
	add2(st->active, k, 1);
	add2(st->requested_bytes, k, (int64_t)block->b.requested);
	add2(st->allocated_bytes, k, (int64_t)block->b.granted);
	add2(st->active_bytes, k, (int64_t)block->b.granted);
}

void frag_live_count_free(struct frag_live_dev *d, const struct frag_live_block *block)
{
	struct frag_live_stats *st = &d->stats;
	enum frag_live_kind k = kind_of(block);

	add2(st->allocation, k, -1);
	add2(st->requested_bytes, k, -(int64_t)block->b.requested);
	add2(st->allocated_bytes, k, -(int64_t)block->b.granted);
}

void frag_live_count_done(struct frag_live_dev *d, const struct frag_live_block *block)
{
	enum frag_live_kind k = kind_of(block);

	add2(d->stats.active, k, -1);
	add2(d->stats.active_bytes, k, -(int64_t)block->b.granted);
}

/* ---- what is known by asking ------------------------------------------------------------ */

static void usage_of(struct frag_live_dev *d, bool walk, struct frag_usage *out)
{
	struct frag_policy *both[] = { &d->main, &d->aside };

	*out = (struct frag_usage){ 0 };
	for (size_t i = 0; i < FRAG_ARRAY_LEN(both); i++) {
		struct frag_policy *p = both[i];
		struct frag_usage u = { 0 };

		if (!p->ops || (!walk && !p->ops->usage))
			continue;
		if (walk)
			frag_policy_usage_walk(p, &u);
		else
			p->ops->usage(p->self, &u);
		out->non_releasable_bytes += u.non_releasable_bytes;
		out->blocks_count += u.blocks_count;
		out->segments_count += u.segments_count;
		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, u.largest_free_bytes);
	}
}

/* A value that was looked up: what came and went in between is the difference. */
static void set(struct frag_live_stat *s, int64_t value)
{
	add(&s[FRAG_LIVE_ALL], value - s[FRAG_LIVE_ALL].current);
	add(&s[FRAG_LIVE_LARGE], value - s[FRAG_LIVE_LARGE].current);
}

/* Of the device, since the start: calls that took memory, and that gave it back, all of them. */
static struct frag_live_base totals_of(const struct frag_device *dev)
{
	static const enum frag_call takes[] = { FRAG_CALL_MALLOC, FRAG_CALL_CREATE,
						FRAG_CALL_MANAGED, FRAG_CALL_ASYNC_MALLOC };
	static const enum frag_call gives[] = { FRAG_CALL_FREE, FRAG_CALL_RELEASE,
						FRAG_CALL_MANAGED_FREE, FRAG_CALL_ASYNC_FREE };
	struct frag_live_base t = { .calls = (int64_t)dev->driver_calls,
				    .ns = (int64_t)dev->driver_ns };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(takes); i++) {
		t.took += (int64_t)dev->stat[takes[i]].count;
		t.gave += (int64_t)dev->stat[gives[i]].count;
	}
	for (int i = 0; i < FRAG_CALL_COUNT; i++)
		t.failed += (int64_t)dev->stat[i].failed;
	return t;
}

void frag_live_count_driver(struct frag_live_dev *d)
{
	struct frag_live_stats *st = &d->stats;
	const struct frag_live_base t = totals_of(d->dev);
	int64_t peak = st->reserved_bytes[FRAG_LIVE_ALL].peak;
	struct frag_usage u;

	d->seen_calls = d->dev->driver_calls;
	set(st->reserved_bytes, (int64_t)d->dev->reserved_bytes);
	set(st->segment, t.took - t.gave);
	/* within one request memory may have been there that is gone */
	for (int k = FRAG_LIVE_ALL; k < FRAG_LIVE_KINDS; k += FRAG_LIVE_LARGE)
		st->reserved_bytes[k].peak =
			FRAG_MAX(st->reserved_bytes[k].peak, (int64_t)d->dev->reserved_peak_bytes);
	if (st->reserved_bytes[FRAG_LIVE_ALL].peak == peak)
		return;
	usage_of(d, false, &u);
	set(st->inactive_split_bytes, (int64_t)u.non_releasable_bytes);
}

static void fill(struct frag_live_dev *d)
{
	const struct frag_live_base t = totals_of(d->dev);
	struct frag_live_stats *st = &d->stats;
	struct frag_usage u;

	frag_live_count_driver(d);
	usage_of(d, true, &u);
	set(st->inactive_split_bytes, (int64_t)u.non_releasable_bytes);
	set(st->inactive_split, (int64_t)u.blocks_count - st->active[FRAG_LIVE_ALL].current);
	st->num_device_alloc = t.took - d->base.took;
	st->num_device_free = t.gave - d->base.gave;
	st->driver_calls = t.calls - d->base.calls;
	st->driver_ns = t.ns - d->base.ns;
	st->driver_failed = t.failed - d->base.failed;
	st->limit_bytes = d->limit_bytes == UINT64_MAX ? 0 : (int64_t)d->limit_bytes;
	st->largest_free_bytes = (int64_t)u.largest_free_bytes;
	st->fraction = d->fraction;
}

/* ---- for Python ------------------------------------------------------------------------- */

int frag_live_stats(int device, struct frag_live_stats *out)
{
	struct frag_live_stats st = { 0 };
	uint64_t size = out->size, left = 0, total = 0, ns;

	FRAG_LIVE_WITH (d, frag_live_used(device)) {
		fill(d);
		st = d->stats;
		/* not through the front: asking is no call of the policy */
		if (!d->dev->ops->mem_info(d->dev->priv, &left, &total, &ns, NULL)) {
			st.free_bytes = (int64_t)left;
			st.total_bytes = (int64_t)total;
		}
	}
	st.size = size;
	memcpy(out, &st, FRAG_MIN(size, sizeof(st)));
	return frag_live_used(device) ? 0 : -1;
}

static struct frag_live_stat *stats_of(struct frag_live_dev *d, size_t *count)
{
	size_t from = offsetof(struct frag_live_stats, allocation);

	*count = (offsetof(struct frag_live_stats, num_alloc_retries) - from) /
		 sizeof(struct frag_live_stat);
	return (struct frag_live_stat *)(void *)((char *)&d->stats + from);
}

void frag_live_reset_peak(int device)
{
	FRAG_LIVE_WITH (d, frag_live_used(device)) {
		size_t n;
		struct frag_live_stat *s = stats_of(d, &n);

		d->dev->reserved_peak_bytes = d->dev->reserved_bytes;
		for (size_t i = 0; i < n; i++)
			s[i].peak = s[i].current;
	}
}

void frag_live_reset_accumulated(int device)
{
	FRAG_LIVE_WITH (d, frag_live_used(device)) {
		size_t n;
		struct frag_live_stat *s = stats_of(d, &n);

		for (size_t i = 0; i < n; i++)
			s[i].allocated = s[i].freed = 0;
		d->stats.num_alloc_retries = d->stats.num_ooms = 0;
		d->stats.num_sync_all_streams = d->stats.stream_waits = 0;
		d->base = totals_of(d->dev);
	}
}

size_t frag_live_calls(int device, struct frag_live_call *out, size_t cap)
{
	FRAG_LIVE_WITH (d, frag_live_used(device))
		for (size_t i = 0; i < FRAG_MIN(cap, (size_t)FRAG_CALL_COUNT); i++) {
			const struct frag_call_stat *st = &d->dev->stat[i];

			out[i] =
				(struct frag_live_call){ frag_call_name((enum frag_call)i),
							 st->count, st->failed, st->bytes, st->ns };
		}
	return frag_live_used(device) ? FRAG_CALL_COUNT : 0;
}

struct counters {
	struct frag_live_counter *out;
	size_t count, cap;
};

static void put_counter(void *ctx, const char *name, int64_t value)
{
	struct counters *c = ctx;

	if (c->count < c->cap) {
		snprintf(c->out[c->count].name, sizeof(c->out->name), "%s", name);
		c->out[c->count].value = value;
	}
	c->count++;
}

size_t frag_live_counters(int device, struct frag_live_counter *out, size_t cap)
{
	struct counters c = { out, 0, cap };

	FRAG_LIVE_WITH (d, frag_live_used(device))
		if (d->main.ops->counters)
			d->main.ops->counters(d->main.self, put_counter, &c);
	return c.count;
}

/* ---- snapshot --------------------------------------------------------------------------- */

struct walk {
	struct frag_live_dev *d;
	struct frag_live_part *out;
	size_t count, cap, segment;
};

static void put(struct walk *w, const struct frag_live_part *part)
{
	if (w->count < w->cap)
		w->out[w->count] = *part;
	w->count++;
}

static uint64_t handle_of(const struct frag_live_dev *d, uint32_t stream)
{
	return stream < d->card->streams_count ? (uintptr_t)d->card->streams[stream] : 0;
}

static void put_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct walk *w = ctx;
	struct frag_live_part part = { .addr = addr,
				       .bytes = bytes,
				       .stream = handle_of(w->d, stream) };

	w->segment = w->count;
	put(w, &part);
}

static void put_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		      uint64_t releasable)
{
	struct walk *w = ctx;
	const struct frag_live_block *b = frag_addr_map_get(&w->d->live, addr);
	struct frag_live_part part = {
		.addr = addr, .bytes = bytes, .kind = 1, .state = (uint32_t)state
	};

	if (b && state == FRAG_STATE_LIVE) {
		part.requested = b->b.requested;
		part.context = b->context;
		part.stream = handle_of(w->d, b->b.stream);
		if (b->pool)
			part.pool = w->d->pools[b->pool - 1].id;
		if (w->segment < w->cap)
			w->out[w->segment].pool = part.pool;
	} else if (state == FRAG_STATE_LIVE) {
		part.state = FRAG_STATE_WAITING; /* a policy that does not know it */
	}
	put(w, &part);
}

/* Both policies. */
static void visit(struct frag_live_dev *d, const struct frag_visitor *v)
{
	if (d->main.ops->visit)
		d->main.ops->visit(d->main.self, v);
	if (d->aside.ops)
		d->aside.ops->visit(d->aside.self, v);
}

size_t frag_live_snapshot(int device, struct frag_live_part *out, size_t cap)
{
	struct walk w = { .d = frag_live_used(device), .out = out, .cap = cap };
	struct frag_visitor v = { .ctx = &w, .segment = put_segment, .block = put_block };

	FRAG_LIVE_WITH (d, w.d)
		visit(d, &v);
	return w.count;
}

struct segment_walk {
	frag_addr_t at, base;
	uint64_t bytes;
};

static void look_at(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct segment_walk *w = ctx;

	if (w->at >= addr && w->at - addr < bytes) {
		w->base = addr;
		w->bytes = bytes;
	}
}

static void pass_over(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		      uint64_t releasable)
{
}

/* The segment around an address of a live block; the address where it is not of ours. */
void *frag_live_base(void *p, size_t *bytes)
{
	struct segment_walk w = { .at = (uintptr_t)p, .base = (uintptr_t)p };
	struct frag_visitor v = { .ctx = &w, .segment = look_at, .block = pass_over };

	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX && !w.bytes; i++)
		FRAG_LIVE_WITH (d, frag_live_known(i))
			visit(d, &v);
	if (bytes)
		*bytes = w.bytes;
	return (void *)(uintptr_t)w.base;
}
