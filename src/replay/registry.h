/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What registry.c tells its neighbours: the soundness of one entry, which also
 * holds for policies loaded from a shared object, and the unknown name.
 */
#ifndef FRAG_REPLAY_REGISTRY_H
#define FRAG_REPLAY_REGISTRY_H

#include <frag/policy.h>

/* abi, names, compulsory calls, option table. Errors: FRAG_ECHECK. */
int frag_policy_ops_check(const struct frag_policy_ops *ops, struct frag_err *err);

/* FRAG_EUSAGE "unknown policy …" with the nearest known word. */
int frag_policy_unknown(const char *name, struct frag_err *err);

#endif
