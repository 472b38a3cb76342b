/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: cudaMalloc for every request, cudaFree for every free; nothing is kept.
 *
 * Rules (CUDA runtime documentation):
 *  - The driver aligns to 256 B at least and takes physical memory in pages
 *    of 2 MiB; requests below 1 MiB share pages. That packing is the driver's,
 *    so the device does it, and the reserved bytes come from there.
 *  - cudaFree waits for the device, so a free is complete when it returns: the time
 *    is in the device's cost of the call.
 *  - When the driver refuses, the program has run out of memory: nothing is cached
 *    that could be given back first.
 *
 * Every segment is one block. A cudaFree that fails leaves its segment behind,
 * idle; the next trim or refusal, or destroy, tries again.
 */
#include "segheap.h"

struct self {
	struct frag_heap heap; /* first: its hooks are used as they are */
};

/* Every segment is one block: there is no index of free ones. */
static void no_index(void *ctx, struct frag_piece *p)
{
	(void)ctx, (void)p;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	static const struct frag_heap_index none = { no_index, no_index };

	(void)params;
	return frag_heap_create(env, sizeof(struct self), &none, "policy native", out, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p;
	int rc = frag_heap_grow(&s->heap, req->bytes, req->stream, &p, err);

	if (FRAG_UNLIKELY(rc == FRAG_OOM && s->heap.idle_count)) {
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		rc = frag_heap_grow(&s->heap, req->bytes, req->stream, &p, err);
	}
	if (rc)
		return rc;
	frag_heap_grant(&s->heap, p, out);
	out->cls = FRAG_CLASS_GROW;
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	frag_heap_give(&s->heap, p);
	return frag_heap_drop(&s->heap, p->seg, err);
}

const struct frag_policy_ops frag_policy_native = {
	.abi = FRAG_POLICY_ABI,
	.name = "native",
	.summary = "cudaMalloc and cudaFree for every request",
	.source = "CUDA runtime API, memory management",
	.trims = "nothing: nothing is cached",
	.checked = "driver 580.159.04 on an H200, addresses of recorded histories",
	FRAG_HEAP_OPS,
	.create = create,
	.destroy = frag_heap_op_destroy,
	.alloc = alloc,
	.free = release,
	.trim = frag_heap_op_trim,
	.usage = frag_heap_op_usage,
};
