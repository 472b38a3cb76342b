/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's QuickPool (LLNL/Umpire src/umpire/strategy/QuickPool.cpp, 2026): best fit,
 * oldest among equals, exact splits; wholly free chunks are given back or made one
 * by a heuristic that is asked after every free, by default when all of the pool
 * is free. The rules are in quickcore.h; this file names the policy.
 *
 * Umpire knows no streams: a block may be reused once the engine completes its
 * free. empty_cache does what the program's own release() would.
 */
#include <quickcore.h>

static const struct frag_opt opts[] = {
	FRAG_QUICK_OPTS(struct frag_quick_policy_params, FRAG_COALESCE_PERCENT_HWM),
	FRAG_UPSTREAM_OPT(struct frag_quick_policy_params, upstream, "device"), FRAG_OPT_END
};

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	return frag_quick_op_create(env, params, false, self, err);
}

const struct frag_policy_ops frag_policy_quickpool = {
	.abi = FRAG_POLICY_ABI,
	.name = "quickpool",
	.summary = "Umpire's QuickPool: best fit, oldest first, coalesced by a heuristic",
	.source = "LLNL/Umpire src/umpire/strategy/QuickPool.cpp",
	FRAG_QUICK_OPS,
};
