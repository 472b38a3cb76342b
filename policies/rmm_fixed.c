/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's fixed-size memory resource: blocks of one size (1 MiB), 128 to a chunk;
 * requests above it are refused. The rules are in equalblocks.h (queues); this file is the
 * policy around one such pool (rapidsai/rmm
 * cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp, 2026).
 *
 * RMM takes its first chunk in the constructor; here the first request does, so
 * that a card too small for it answers with a refusal.
 */
#include <equalblocks.h>

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("block", struct frag_equal_params, block_bytes, FRAG_MIB, 1, 64 * FRAG_GIB,
		       "size of every block, rounded up to 256 B",
		       .tune = "4M,16M,64M,256M,512M,1G,2G,4G"),
	FRAG_OPT_UINT("blocks-per-chunk", struct frag_equal_params, chunk_blocks, 128, 1, 65536,
		      "blocks taken from the upstream at once", .tune = "1,8,32"),
	FRAG_UPSTREAM_OPT(struct frag_equal_params, upstream, "device"), FRAG_OPT_END
};

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	struct frag_equal_params p = *(const struct frag_equal_params *)params;

	p.block_bytes = frag_round_up(p.block_bytes, 256);
	return frag_equal_op_create(env, &p, true, self, err);
}

const struct frag_policy_ops frag_policy_rmm_fixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-fixed",
	.summary = "RMM's fixed-size blocks: larger requests are refused, nothing is merged",
	.source = "rapidsai/rmm cpp/src/mr/detail/fixed_size_memory_resource_impl.cpp, 2026",
	FRAG_UPSTREAM_RMM,
	.create = create,
	FRAG_EQUAL_OPS,
};
