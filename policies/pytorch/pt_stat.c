/* SPDX-License-Identifier: Apache-2.0 */
/* torch.cuda.memory_stats(): the same 122 names. */
#include "pt.h"

#include <stdio.h>

static const char *const kind_names[PT_KINDS] = { "all", "small_pool", "large_pool" };

/* ---- the families of use ---- */

static const struct {
	const char *name;
	enum pt_sum sum;
	int64_t lets_go; /* 1: what waits has left it */
} uses[PT_USE_FAMILIES] = {
	[PT_ALLOCATION] = { "allocation", PT_BLOCKS, 1 },
	[PT_ALLOCATED_BYTES] = { "allocated_bytes", PT_BYTES, 1 },
	[PT_ACTIVE] = { "active", PT_BLOCKS, 0 },
	[PT_ACTIVE_BYTES] = { "active_bytes", PT_BYTES, 0 },
	[PT_REQUESTED_BYTES] = { "requested_bytes", PT_REQUESTED, 0 },
};

/* Current value, or (ever) the sum of the increases. */
static int64_t use_of(const struct pt_stats *st, unsigned kind, enum pt_use_family f, bool ever)
{
	const enum pt_sum s = uses[f].sum;
	int64_t n = 0;

	for (unsigned k = PT_SMALL; k <= PT_LARGE; k++) {
		const struct pt_use *u = &st->use[k];

		if (kind == PT_ALL || kind == k)
			n += u->handed[s] - (ever ? 0 : u->freed[s]) -
			     uses[f].lets_go * (ever ? u->begun_waiting[s] : u->waiting[s]);
	}
	return n;
}

int64_t pt_use_current(const struct pt_stats *st, unsigned kind, enum pt_use_family f)
{
	return use_of(st, kind, f, false);
}

static void measure_room(struct pt_stats *st, unsigned kind)
{
	struct pt_use *u = &st->use[kind];

	u->room_count = u->room_bytes = INT64_MAX;
	for (unsigned f = 0; f < PT_USE_FAMILIES; f++) {
		int64_t current = use_of(st, kind, f, false);
		int64_t *room = uses[f].sum == PT_BLOCKS ? &u->room_count : &u->room_bytes;

		u->peak[f] = FRAG_MAX(u->peak[f], current);
		*room = FRAG_MIN(*room, u->peak[f] - current);
	}
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

static void emit_count(const char *family, unsigned kind, const struct pt_count *c,
		       frag_counter_fn fn, void *ctx)
{
	emit(family, kind, c->peak - c->slack, c->peak, c->allocated, fn, ctx);
}

static const char *const families[] = { "segment", "reserved_bytes", "inactive_split",
					"inactive_split_bytes" };
_Static_assert(FRAG_ARRAY_LEN(families) == PT_FAMILIES, "a name each");

void pt_stat_counters(void *self, frag_counter_fn fn, void *ctx)
{
	const struct pt *a = self;
	const struct pt_stats *st = &a->st;

	for (unsigned f = 0; f < PT_USE_FAMILIES; f++)
		for (unsigned k = 0; k < PT_KINDS; k++)
			emit(uses[f].name, k, use_of(st, k, f, false), st->use[k].peak[f],
			     use_of(st, k, f, true), fn, ctx);
	for (unsigned f = 0; f < PT_FAMILIES; f++)
		for (unsigned k = 0; k < PT_KINDS; k++)
			emit_count(families[f], k, &st->f[k][f], fn, ctx);
	emit_count("oversize_allocations", PT_KINDS, &st->oversize_allocations, fn, ctx);
	emit_count("oversize_segments", PT_KINDS, &st->oversize_segments, fn, ctx);
	fn(ctx, "num_alloc_retries", st->num_alloc_retries);
	fn(ctx, "num_ooms", st->num_ooms);
	fn(ctx, "num_sync_all_streams", st->num_sync_all_streams);
	fn(ctx, "num_device_alloc", st->num_device_alloc);
	fn(ctx, "num_device_free", st->num_device_free);
	fn(ctx, "max_split_size", a->max_split == PT_UNLIMITED ? -1 : (int64_t)a->max_split);
}
