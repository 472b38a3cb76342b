/* SPDX-License-Identifier: Apache-2.0 */
/* torch.cuda.memory_stats(): the same 122 names. */
#include "pt.h"

#include <stdio.h>

static const char *const family_names[PT_FAMILIES] = {
	[PT_ALLOCATION] = "allocation",
	[PT_ALLOCATED_BYTES] = "allocated_bytes",
	[PT_ACTIVE] = "active",
	[PT_ACTIVE_BYTES] = "active_bytes",
	[PT_REQUESTED_BYTES] = "requested_bytes",
	[PT_SEGMENT] = "segment",
	[PT_RESERVED_BYTES] = "reserved_bytes",
	[PT_INACTIVE_SPLIT] = "inactive_split",
	[PT_INACTIVE_SPLIT_BYTES] = "inactive_split_bytes",
};

static void emit(const char *prefix, const struct pt_count *c, frag_counter_fn fn, void *ctx)
{
	const struct {
		const char *name;
		int64_t value;
	} parts[] = {
		{ "current", c->current },
		{ "peak", c->peak },
		{ "allocated", c->allocated },
		{ "freed", c->allocated - c->current },
	};
	char name[80];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++) {
		snprintf(name, sizeof(name), "%s.%s", prefix, parts[i].name);
		fn(ctx, name, parts[i].value);
	}
}

void pt_stat_counters(void *self, frag_counter_fn fn, void *ctx)
{
	static const char *const kinds[] = { "all", "small_pool", "large_pool" };
	const struct pt *a = self;
	char name[64];

	for (unsigned f = 0; f < PT_FAMILIES; f++) {
		for (unsigned k = 0; k < 3; k++) {
			snprintf(name, sizeof(name), "%s.%s", family_names[f], kinds[k]);
			emit(name, &a->st.f[k][f], fn, ctx);
		}
	}
	emit("oversize_allocations", &a->st.oversize_allocations, fn, ctx);
	emit("oversize_segments", &a->st.oversize_segments, fn, ctx);
	fn(ctx, "num_alloc_retries", a->st.num_alloc_retries);
	fn(ctx, "num_ooms", a->st.num_ooms);
	fn(ctx, "num_sync_all_streams", a->st.num_sync_all_streams);
	fn(ctx, "num_device_alloc", a->st.num_device_alloc);
	fn(ctx, "num_device_free", a->st.num_device_free);
	fn(ctx, "max_split_size", a->max_split == PT_UNLIMITED ? -1 : (int64_t)a->max_split);
}
