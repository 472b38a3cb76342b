/* SPDX-License-Identifier: Apache-2.0 */
/* What every policy asks and tells its environment: the limit of the process, the journal. */
#ifndef FRAG_COMMON_ENVIRONMENT_H
#define FRAG_COMMON_ENVIRONMENT_H

#include <frag/policy.h>

/* Would `bytes` more take what is reserved above the limit of the process? */
static inline bool frag_env_over_limit(const struct frag_policy_env *env, uint64_t bytes)
{
	uint64_t have = env->dev->reserved_bytes;

	return have > env->limit_bytes || bytes > env->limit_bytes - have;
}

static inline void frag_env_journal(const struct frag_policy_env *env, enum frag_segment_event kind,
				    frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	if (env->journal)
		env->journal(env->journal_ctx, kind, addr, bytes, stream);
}

#endif
