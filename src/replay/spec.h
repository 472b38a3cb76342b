/* SPDX-License-Identifier: Apache-2.0 */
/* Policies behind a text: for spec.c, registry.c and instance.c. */
#ifndef FRAG_REPLAY_SPEC_H
#define FRAG_REPLAY_SPEC_H

#include <frag/policy.h>

struct frag_policy_spec {
	const struct frag_policy_ops *ops;
	void *params; /* ops->params_size bytes, NULL if 0 */
	char *text;   /* as given */
	char *echo;
	char *conf;			/* for ops->conf_variable; NULL: it cannot be set there */
	struct frag_policy_spec *inner; /* of an adaptor */
	void *library;			/* handle of an external policy, from dlopen */
};

/* ---- registry.c, also for policies from a shared object ---- */

/* Checks ABI, names, required calls and the option table. Errors: FRAG_ECHECK. */
int frag_policy_ops_check(const struct frag_policy_ops *ops, struct frag_err *err);

/* FRAG_EUSAGE "unknown policy …" with the nearest known word. */
int frag_policy_unknown(const char *name, struct frag_err *err);

#endif
