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

struct params {
	uint64_t block, chunk_blocks;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("block", struct params, block, FRAG_MIB, 1, 64 * FRAG_GIB,
		       "size of every block, rounded up to 256 B",
		       .tune = "4M,16M,64M,256M,512M,1G,2G,4G"),
	FRAG_OPT_UINT("blocks-per-chunk", struct params, chunk_blocks, 128, 1, 65536,
		      "blocks taken from the upstream at once", .tune = "1,8,32"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"), FRAG_OPT_END
};

struct fixed {
	struct frag_upstream up; /* as struct frag_equal_policy */
	struct frag_fixed pool;
};

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = FRAG_EQUAL_PARTS(struct fixed);
	const struct params *p = params;

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	frag_fixed_init(&((struct fixed *)*self)->pool, *self, p->block, p->chunk_blocks);
	return 0;
}

const struct frag_policy_ops frag_policy_rmm_fixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-fixed",
	.summary = "RMM's fixed-size blocks: larger requests are refused, nothing is merged",
	.source = "rapidsai/rmm cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp, 2026",
	FRAG_UPSTREAM_RMM,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	FRAG_EQUAL_OPS,
};
