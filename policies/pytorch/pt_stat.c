/* SPDX-License-Identifier: Apache-2.0 */
/* torch.cuda.memory_stats(): the same 122 names. */
#include "pt.h"

#include <stdio.h>

static const char *const kind_names[PT_KINDS] = { "all", "small_pool", "large_pool" };

/* ---- the families of use ---- */

static int64_t current_of(const struct pt_use *u, enum pt_use_family f)
{
	switch (f) {
	case PT_ALLOCATION:
		return u->count - u->freed - u->waiting;
	case PT_ALLOCATED_BYTES:
		return u->bytes - u->freed_bytes - u->waiting_bytes;
	case PT_ACTIVE:
		return u->count - u->freed;
	case PT_ACTIVE_BYTES:
		return u->bytes - u->freed_bytes;
	default:
		return u->requested - u->freed_requested;
	}
}

/* Sum of the increases. */
static int64_t allocated_of(const struct pt_use *u, enum pt_use_family f)
{
	switch (f) {
	case PT_ALLOCATION:
		return u->count - u->begun_waiting;
	case PT_ALLOCATED_BYTES:
		return u->bytes - u->begun_waiting_bytes;
	case PT_ACTIVE:
		return u->count;
	case PT_ACTIVE_BYTES:
		return u->bytes;
	default:
		return u->requested;
	}
}

int64_t pt_use_current(const struct pt_stats *st, unsigned kind, enum pt_use_family f)
{
	if (kind != PT_ALL)
		return current_of(&st->use[kind], f);
	return current_of(&st->use[PT_SMALL], f) + current_of(&st->use[PT_LARGE], f);
}

static int64_t use_allocated(const struct pt_stats *st, unsigned kind, enum pt_use_family f)
{
	if (kind != PT_ALL)
		return allocated_of(&st->use[kind], f);
	return allocated_of(&st->use[PT_SMALL], f) + allocated_of(&st->use[PT_LARGE], f);
}

/* Raises the peak of one family to its current value; returns how far below it that is. */
static int64_t raise_peak(struct pt_stats *st, unsigned kind, enum pt_use_family f)
{
	int64_t current = pt_use_current(st, kind, f), *peak = &st->use[kind].peak[f];

	*peak = FRAG_MAX(*peak, current);
	return *peak - current;
}

static void measure_room(struct pt_stats *st, unsigned kind)
{
	int64_t allocation = raise_peak(st, kind, PT_ALLOCATION);
	int64_t active = raise_peak(st, kind, PT_ACTIVE);
	int64_t bytes = raise_peak(st, kind, PT_ALLOCATED_BYTES);
	int64_t active_bytes = raise_peak(st, kind, PT_ACTIVE_BYTES);
	int64_t requested = raise_peak(st, kind, PT_REQUESTED_BYTES);

	st->use[kind].room_count = FRAG_MIN(allocation, active);
	st->use[kind].room_bytes = FRAG_MIN(FRAG_MIN(bytes, active_bytes), requested);
}

void pt_use_peaks(struct pt_stats *st, unsigned kind)
{
	measure_room(st, kind);
	measure_room(st, PT_ALL);
}

/* ---- by name ---- */

static void emit(const char *family, unsigned kind, int64_t current, int64_t peak,
		 int64_t allocated, frag_counter_fn fn, void *ctx)
{
	const struct {
		const char *name;
		int64_t value;
	} parts[] = {
		{ "current", current },
		{ "peak", peak },
		{ "allocated", allocated },
		{ "freed", allocated - current },
	};
	char name[80];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++) {
		if (kind < PT_KINDS)
			snprintf(name, sizeof(name), "%s.%s.%s", family, kind_names[kind],
				 parts[i].name);
		else
			snprintf(name, sizeof(name), "%s.%s", family, parts[i].name);
		fn(ctx, name, parts[i].value);
	}
}

static void emit_use(struct pt_stats *st, const char *family, enum pt_use_family f,
		     frag_counter_fn fn, void *ctx)
{
	for (unsigned k = 0; k < PT_KINDS; k++)
		emit(family, k, pt_use_current(st, k, f), st->use[k].peak[f],
		     use_allocated(st, k, f), fn, ctx);
}

static void emit_count(const char *family, unsigned kind, const struct pt_count *c,
		       frag_counter_fn fn, void *ctx)
{
	emit(family, kind, c->peak - c->slack, c->peak, c->allocated, fn, ctx);
}

static void emit_kinds(const struct pt_stats *st, const char *family, enum pt_family f,
		       frag_counter_fn fn, void *ctx)
{
	for (unsigned k = 0; k < PT_KINDS; k++)
		emit_count(family, k, &st->f[k][f], fn, ctx);
}

void pt_stat_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct pt *a = self;
	struct pt_stats *st = &a->st;

	emit_use(st, "allocation", PT_ALLOCATION, fn, ctx);
	emit_use(st, "allocated_bytes", PT_ALLOCATED_BYTES, fn, ctx);
	emit_use(st, "active", PT_ACTIVE, fn, ctx);
	emit_use(st, "active_bytes", PT_ACTIVE_BYTES, fn, ctx);
	emit_use(st, "requested_bytes", PT_REQUESTED_BYTES, fn, ctx);
	emit_kinds(st, "segment", PT_SEGMENT, fn, ctx);
	emit_kinds(st, "reserved_bytes", PT_RESERVED_BYTES, fn, ctx);
	emit_kinds(st, "inactive_split", PT_INACTIVE_SPLIT, fn, ctx);
	emit_kinds(st, "inactive_split_bytes", PT_INACTIVE_SPLIT_BYTES, fn, ctx);
	emit_count("oversize_allocations", PT_KINDS, &st->oversize_allocations, fn, ctx);
	emit_count("oversize_segments", PT_KINDS, &st->oversize_segments, fn, ctx);
	fn(ctx, "num_alloc_retries", st->num_alloc_retries);
	fn(ctx, "num_ooms", st->num_ooms);
	fn(ctx, "num_sync_all_streams", st->num_sync_all_streams);
	fn(ctx, "num_device_alloc", st->num_device_alloc);
	fn(ctx, "num_device_free", st->num_device_free);
	fn(ctx, "max_split_size", a->max_split == PT_UNLIMITED ? -1 : (int64_t)a->max_split);
}
