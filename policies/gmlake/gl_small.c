/* SPDX-License-Identifier: Apache-2.0 */
/* Small requests of `gmlake`: PyTorch's small pool; and giving everything idle back. */
#include "gl.h"

#define UNIT 512u
#define SMALL_SEGMENT (2 * FRAG_MIB)

static void small_put(void *ctx, struct frag_piece *p)
{
	struct gl *g = ctx;

	frag_bset_insert(&g->streams[p->seg->stream].small, p->bytes, p->addr, p);
}

static void small_cut(void *ctx, struct frag_piece *p)
{
	struct gl *g = ctx;

	frag_bset_erase(&g->streams[p->seg->stream].small, p->bytes, p->addr);
}

const struct frag_heap_index gl_small_index = { small_cut, small_put };

int gl_release_all(struct gl *g, struct frag_err *err)
{
	if (g->env.sync)
		g->env.sync(g->env.sync_ctx);
	FRAG_TRY(gl_release_idle(g, err));
	return frag_heap_drop_idle(&g->small, err);
}

static int small_grow(struct gl *g, uint32_t stream, struct frag_piece **p, uint8_t *cls,
		      struct frag_err *err)
{
	int rc = frag_heap_grow(&g->small, SMALL_SEGMENT, stream, p, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(gl_release_all(g, err));
		FRAG_CHECK_ALLOC(!gl_room(g, 4), "policy gmlake", err);
		rc = frag_heap_grow(&g->small, SMALL_SEGMENT, stream, p, err);
	}
	return rc;
}

int gl_small_alloc(struct gl *g, uint64_t bytes, uint32_t stream, struct frag_block *out,
		   struct frag_err *err)
{
	struct frag_bset *set = &g->streams[stream].small;
	struct frag_bset_node *at;
	struct frag_piece *p;

	bytes = (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	at = frag_bset_lower(set, bytes, 0);
	if (FRAG_LIKELY(at != NULL)) {
		p = at->value;
		frag_bset_erase_at(set, at);
		out->cls = p->bytes > bytes ? FRAG_CLASS_SPLIT : FRAG_CLASS_HIT;
	} else {
		FRAG_TRY(small_grow(g, stream, &p, &out->cls, err));
	}
	if (p->bytes > bytes)
		small_put(g, frag_heap_split(&g->small, p, bytes));
	frag_heap_take(&g->small, p);
	out->addr = p->addr;
	out->granted = p->bytes;
	out->handle = (uintptr_t)p | GL_KIND_SMALL;
	return 0;
}

void gl_small_free(struct gl *g, struct frag_piece *p)
{
	small_put(g, frag_heap_give_merged(&g->small, p, small_cut, g));
}
