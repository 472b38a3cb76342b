/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds private pools whose blocks are never split (MemPool(no_split=True)), which a snapshot does
 * not name. Signs: a live block of more than twice its request, which any other pool would have
 * split, and no block that was split off a segment or the pages of an expandable one.
 */
#include "build_internal.h"

struct signs {
	bool cut, whole;
};

static void look(const struct frag_trace_dev *dev, const struct frag_final_segment *s,
		 struct signs *out)
{
	uint64_t page = s->small ? 2 * FRAG_MIB : 1 * FRAG_MIB;

	for (uint32_t i = s->first_block; i < s->first_block + s->blocks_count; i++) {
		const struct frag_final_block *b = &dev->final_blocks[i];

		/* the page of a large expandable segment is a setting: whole MiB, at least */
		if (s->expandable ? b->bytes % page != 0 : s->blocks_count > 1)
			out->cut = true;
		if (b->state == FRAG_STATE_LIVE && b->requested && b->bytes / 2 > b->requested)
			out->whole = true;
	}
}

int frag_build_no_split(struct frag_trace_dev *dev, struct frag_err *err)
{
	FRAG_AUTO_FREE struct signs *signs = NULL;

	FRAG_TRY_CALLOC(signs, dev->pools_count, "pools", err);
	for (size_t i = 0; i < dev->final_segments_count; i++)
		look(dev, &dev->final_segments[i], &signs[dev->final_segments[i].pool]);
	for (uint32_t p = 1; p < dev->pools_count; p++)
		if (signs[p].whole && !signs[p].cut)
			dev->pools[p].b |= FRAG_POOL_NO_SPLIT;
	return 0;
}
