/* SPDX-License-Identifier: Apache-2.0 */
/* A policy from a shared object, watched: what it returns is checked before anybody uses it. */
#ifndef FRAG_REPLAY_FOREIGN_H
#define FRAG_REPLAY_FOREIGN_H

#include <frag/policy.h>

/*
 * As ops->create, for the ops of a shared object: *policy (its env is set) becomes an instance whose
 * calls pass through the checks of foreign.c. Errors: the policy's own; FRAG_EPOLICY where it broke a
 * promise or failed without a reason.
 */
int frag_foreign_create(const struct frag_policy_ops *ops, const void *params,
			struct frag_policy *policy, struct frag_err *err);

#endif
