/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's FixedPool: objects of one size, the lowest free one of the newest
 * sub-pool first. The rules are in equalblocks.h (lowest first); this file is the policy around
 * one such pool (LLNL/Umpire src/umpire/strategy/FixedPool.cpp).
 *
 * The source takes requests of exactly the object size; here smaller ones get a
 * whole object, too, and larger ones are refused. The sub-pool of the constructor
 * is taken by the first request.
 */
#include <equalblocks.h>

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("object", struct frag_equal_params, block_bytes, FRAG_MIB, 1, 64 * FRAG_GIB,
		       "size of every object", .tune = "4M,16M,64M,256M,512M,1G,2G,4G"),
	FRAG_OPT_UINT("objects-per-pool", struct frag_equal_params, chunk_blocks, 2048, 1, 262144,
		      "objects taken from the upstream at once", .tune = "1,8,64"),
	FRAG_UPSTREAM_OPT(struct frag_equal_params, upstream, "device"), FRAG_OPT_END
};

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	FRAG_TRY(frag_equal_op_create(env, params, false, self, err));
	((struct frag_equal_policy *)*self)->set.pool->gives_back = true;
	return 0;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	/* it knows no private pools: an empty_cache of one is of all */
	FRAG_TRY(frag_equal_give_back(((struct frag_equal_policy *)self)->set.pool, err));
	return frag_adaptor_trim(self, pool, err);
}

const struct frag_policy_ops frag_policy_umpire_fixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "umpire-fixed",
	.summary = "Umpire's FixedPool: objects of one size, larger requests are refused",
	.source = "LLNL/Umpire src/umpire/strategy/FixedPool.cpp",
	.trims = "wholly free sub-pools (release)",
	.checked = "Umpire of 2024-10-11 (after v2024.07), compiled",
	.create = create,
	FRAG_EQUAL_OPS,
	.trim = trim,
};
