/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's DynamicPoolList (LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp,
 * DynamicSizePool.hpp, 2026): as QuickPool, but the lowest of equal fits, chunks given back in
 * order of address, and coalesced only from two of them on. The rules are in quickcore.h; this
 * file names the policy.
 *
 * Umpire's lists make both calls linear in the blocks. What they decide is taken from a set by
 * (size, address) here, in O(log n): the same blocks, but host times are not Umpire's.
 */
#include <quickcore.h>

static const struct frag_opt opts[] = {
	FRAG_QUICK_OPTS(struct frag_quick_policy_params, FRAG_COALESCE_PERCENT_HWM),
	FRAG_UPSTREAM_OPT(struct frag_quick_policy_params, upstream, "device"), FRAG_OPT_END
};

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	return frag_quick_op_create(env, params, true, self, err);
}

const struct frag_policy_ops frag_policy_dynamicpool = {
	.abi = FRAG_POLICY_ABI,
	.name = "dynamicpool",
	.summary = "Umpire's DynamicPoolList: best fit, lowest of equals, coalesced by a heuristic",
	.source = "LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp",
	FRAG_QUICK_OPS,
};
