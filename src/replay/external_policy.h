/* SPDX-License-Identifier: Apache-2.0 */
/* A policy from a shared object: its results are checked before use. */
#ifndef FRAG_REPLAY_EXTERNAL_POLICY_H
#define FRAG_REPLAY_EXTERNAL_POLICY_H

#include <frag/policy.h>

/*
 * Like ops->create, for the ops of a shared object: *policy (with env set) becomes an instance with
 * the checks of external_policy.c. Errors: the policy's own; FRAG_EPOLICY if it broke the contract
 * or failed without a reason.
 */
int frag_external_create(const struct frag_policy_ops *ops, const void *params,
			 struct frag_policy *policy, struct frag_err *err);

#endif
