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

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	(void)params;
	return frag_heap_create(env, sizeof(struct frag_heap), NULL, "policy native", out, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct frag_piece *p;
	int rc = frag_heap_grow(self, req->bytes, req->stream, &p, err);

	if (FRAG_UNLIKELY(rc == FRAG_OOM && ((struct frag_heap *)self)->left)) {
		FRAG_TRY(frag_heap_drop_idle(self, err));
		rc = frag_heap_grow(self, req->bytes, req->stream, &p, err);
	}
	if (rc)
		return rc;
	frag_heap_grant(self, p, out);
	out->cls = FRAG_CLASS_GROW;
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	frag_heap_give(self, frag_piece_of(block));
	return frag_heap_retire(self, frag_piece_of(block), err);
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
