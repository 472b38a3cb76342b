/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's fixed-size memory resource: blocks of one size (1 MiB), 128 to a chunk;
 * requests above it are refused. The rules are in fixedblocks.h; this file is the
 * policy around one such pool (rapidsai/rmm
 * cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp, 2026).
 *
 * RMM takes its first chunk in the constructor; here the first request does, so
 * that a card too small for it answers with a refusal.
 */
#include <frag/policy.h>

#include <fixedblocks.h>
#include <upstream.h>

struct params {
	uint64_t block, chunk_blocks;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES_TUNED("block", struct params, block, FRAG_MIB, 1, 64 * FRAG_GIB,
			     "size of every block, rounded up to 256 B",
			     "4M,16M,64M,256M,512M,1G,2G,4G"),
	FRAG_OPT_UINT_TUNED("blocks-per-chunk", struct params, chunk_blocks, 128, 1, 65536,
			    "blocks taken from the upstream at once", "1,8,32"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"), FRAG_OPT_END
};

struct fixed {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_fixed blocks;
};

static int fixed_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct fixed *a = self;

	if (req->bytes > a->blocks.block_bytes)
		return FRAG_OOM;
	return frag_fixed_alloc(&a->blocks, req->stream, out, err);
}

static void fixed_free_requested(void *self, const struct frag_block *block)
{
	struct fixed *a = self;

	frag_fixed_free_requested(&a->blocks, block);
}

static int fixed_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct fixed *a = self;

	(void)err;
	frag_fixed_free(&a->blocks, block);
	return 0;
}

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_fixed_visit(c, v);
}

static void fixed_visit(void *self, const struct frag_visitor *v)
{
	struct fixed *a = self;

	frag_upstream_visit(&a->up, v, inside, a);
}

static void fixed_usage(void *self, struct frag_usage *out)
{
	struct fixed *a = self;
	bool known;

	frag_upstream_usage(&a->up, out, &known);
	frag_fixed_usage(&a->blocks, out);
	if (!known)
		out->largest_free_bytes = 0;
}

static int fixed_check(void *self, struct frag_err *err)
{
	struct fixed *a = self;

	FRAG_TRY(frag_upstream_check(&a->up, err));
	return frag_fixed_check(&a->blocks, err);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct fixed *a = frag_host_calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return frag_fail_nomem(err, "rmm-fixed");
	rc = frag_upstream_open(&a->up, env, env->inner ? env->inner : p->upstream, err);
	if (rc) {
		frag_host_free(a);
		return rc;
	}
	frag_fixed_init(&a->blocks, &a->up, p->block, p->chunk_blocks);
	*self = a;
	return 0;
}

static void destroy(void *self)
{
	struct fixed *a = self;

	frag_fixed_release(&a->blocks);
	frag_upstream_close(&a->up);
	frag_host_free(a);
}

const struct frag_policy_ops frag_policy_rmm_fixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-fixed",
	.summary = "RMM's fixed-size blocks: larger requests are refused, nothing is merged",
	.source = "rapidsai/rmm cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp, 2026",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.create = create,
	.destroy = destroy,
	.alloc = fixed_alloc,
	.free = fixed_free,
	.free_requested = fixed_free_requested,
	.trim = frag_upstream_op_trim,
	.synced = frag_upstream_op_synced,
	.mark = frag_upstream_op_mark,
	.visit = fixed_visit,
	.check = fixed_check,
	.usage = fixed_usage,
};
