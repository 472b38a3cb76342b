/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of registry.c for src/replay: the check of one entry, also used for policies from a
 * shared object, and the error for an unknown name.
 */
#ifndef FRAG_REPLAY_REGISTRY_H
#define FRAG_REPLAY_REGISTRY_H

#include <frag/policy.h>

/* Checks ABI, names, required calls and the option table. Errors: FRAG_ECHECK. */
int frag_policy_ops_check(const struct frag_policy_ops *ops, struct frag_err *err);

/* FRAG_EUSAGE "unknown policy …" with the nearest known word. */
int frag_policy_unknown(const char *name, struct frag_err *err);

#endif
