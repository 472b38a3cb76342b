/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policies around another policy share: they hold it and pass on every call that is not
 * their own. Handles are those of the inner policy.
 *
 * They put the struct first in their own state, so that the functions below fit into their table. A
 * hook that the inner policy lacks, or any hook where there is no inner policy, does nothing.
 * `restore` is not passed on: a history that began late is replayed from its initial blocks.
 *
 * Ownership: the adaptor owns the inner policy until frag_adaptor_destroy.
 */
#ifndef FRAG_COMMON_ADAPTOR_H
#define FRAG_COMMON_ADAPTOR_H

#include <frag/policy.h>

struct frag_adaptor {
	struct frag_inner inner;    /* policy.ops NULL: there is none (yet) */
	struct frag_policy_env env; /* as the adaptor was given it */
};

/* Zeroed state of `bytes` with env->inner open over `for_inner` (env itself, or a changed copy). */
int frag_adaptor_create(const struct frag_policy_env *env, const struct frag_policy_env *for_inner,
			size_t bytes, const char *name, void **self, struct frag_err *err);
void frag_adaptor_destroy(void *self);

/* The call, as it is. */
int frag_adaptor_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err);
int frag_adaptor_free(void *self, const struct frag_block *block, struct frag_err *err);
void frag_adaptor_free_requested(void *self, const struct frag_block *block);
int frag_adaptor_trim(void *self, uint16_t pool, struct frag_err *err);
int frag_adaptor_synced(void *self, struct frag_err *err);
void frag_adaptor_mark(void *self, bool begins);
void frag_adaptor_visit(void *self, const struct frag_visitor *v);
int frag_adaptor_check(void *self, struct frag_err *err);
/* By a walk where the inner policy keeps no counters. */
void frag_adaptor_usage(void *self, struct frag_usage *out);
void frag_adaptor_counters(void *self, frag_counter_fn fn, void *ctx);

/* What the tables of all adaptors say. */
#define FRAG_ADAPTOR_OPS \
	.flags = FRAG_POLICY_ADAPTOR, .trims = "what the inner policy does", \
	.free_requested = frag_adaptor_free_requested, .mark = frag_adaptor_mark, \
	.visit = frag_adaptor_visit, .check = frag_adaptor_check, .usage = frag_adaptor_usage

#endif
