/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a parsed policy text, for spec.c and instance.c. */
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

#endif
