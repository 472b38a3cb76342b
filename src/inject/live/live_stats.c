/* SPDX-License-Identifier: Apache-2.0 */
/* What a device has done, as PyTorch counts it. */
#include "live_core.h"

#include <stdio.h>
#include <string.h>

#include "lib/grow.h"

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

/* Calls that took memory, and that gave it back. */
static int64_t took(const struct frag_device *dev)
{
	return (int64_t)(dev->stat[FRAG_CALL_MALLOC].count + dev->stat[FRAG_CALL_CREATE].count +
			 dev->stat[FRAG_CALL_MANAGED].count +
			 dev->stat[FRAG_CALL_ASYNC_MALLOC].count);
}

static int64_t gave(const struct frag_device *dev)
{
	return (int64_t)(dev->stat[FRAG_CALL_FREE].count + dev->stat[FRAG_CALL_RELEASE].count +
			 dev->stat[FRAG_CALL_MANAGED_FREE].count +
			 dev->stat[FRAG_CALL_ASYNC_FREE].count);
}

static int64_t failed(const struct frag_device *dev)
{
	int64_t n = 0;

	for (int i = 0; i < FRAG_CALL_COUNT; i++)
		n += (int64_t)dev->stat[i].failed;
	return n;
}

void frag_live_count_driver(struct frag_live_dev *d)
{
	struct frag_live_stats *st = &d->stats;
	int64_t peak = st->reserved_bytes[FRAG_LIVE_ALL].peak;
	struct frag_usage u;

	d->seen_calls = d->dev->driver_calls;
	set(st->reserved_bytes, (int64_t)d->dev->reserved_bytes);
	set(st->segment, took(d->dev) - gave(d->dev));
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
	const struct frag_device *dev = d->dev;
	struct frag_live_stats *st = &d->stats;
	struct frag_usage u;

	frag_live_count_driver(d);
	usage_of(d, true, &u);
	set(st->inactive_split_bytes, (int64_t)u.non_releasable_bytes);
	set(st->inactive_split, (int64_t)u.blocks_count - st->active[FRAG_LIVE_ALL].current);
	st->num_device_alloc = took(dev) - d->base_took;
	st->num_device_free = gave(dev) - d->base_gave;
	st->driver_calls = (int64_t)dev->driver_calls - d->base_calls;
	st->driver_ns = (int64_t)dev->driver_ns - d->base_ns;
	st->driver_failed = failed(dev) - d->base_failed;
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
		d->base_took = took(d->dev);
		d->base_gave = gave(d->dev);
		d->base_calls = (int64_t)d->dev->driver_calls;
		d->base_ns = (int64_t)d->dev->driver_ns;
		d->base_failed = failed(d->dev);
	}
}

int frag_live_call(int device, int index, struct frag_live_call *out)
{
	struct frag_live_dev *d = frag_live_used(device);
	const struct frag_call_stat *st;

	if (!d || index < 0 || index >= FRAG_CALL_COUNT)
		return -1;
	frag_live_lock(d);
	st = &d->dev->stat[index];
	*out = (struct frag_live_call){ frag_call_name((enum frag_call)index), st->count,
					st->failed, st->bytes, st->ns };
	frag_live_unlock(d);
	return 0;
}

struct counter {
	char name[64];
	int64_t value;
};

struct counters {
	struct counter *list;
	size_t count, cap;
};

static void keep_counter(void *ctx, const char *name, int64_t value)
{
	struct counters *c = ctx;

	if (FRAG_GROW(c->list, c->count, c->cap, "counters", NULL))
		return;
	snprintf(c->list[c->count].name, sizeof(c->list->name), "%s", name);
	c->list[c->count++].value = value;
}

/* The caller's function may wait for Python's lock, and its owner for the device: unlocked. */
void frag_live_counters(int device, void (*fn)(void *ctx, const char *name, int64_t value),
			void *ctx)
{
	struct counters c = { 0 };

	FRAG_LIVE_WITH (d, frag_live_used(device))
		if (d->main.ops->counters)
			d->main.ops->counters(d->main.self, keep_counter, &c);
	for (size_t i = 0; i < c.count; i++)
		fn(ctx, c.list[i].name, c.list[i].value);
	frag_host_free(c.list);
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

static void look_at(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct frag_live_base_walk *w = ctx;

	if (w->at >= addr && w->at - addr < bytes) {
		w->base = addr;
		w->bytes = bytes;
	}
}

static void pass_over(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		      uint64_t releasable)
{
}

void frag_live_base_of(struct frag_live_dev *d, struct frag_live_base_walk *w)
{
	struct frag_visitor v = { .ctx = w, .segment = look_at, .block = pass_over };

	visit(d, &v);
}
