/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of policies: create, destroy, the inner policy of an adaptor, and usage by walking. The
 * instance copies its environment, but the spec must outlive it, because params and the inner text
 * are borrowed from it.
 */
#include <frag/policy.h>

#include "spec.h"

static int check_needs(const struct frag_policy_ops *ops, const struct frag_device *dev,
		       struct frag_err *err)
{
	struct frag_device_info info;
	char missing[120];

	frag_dev_info(dev, &info);
	if (!(ops->needs & ~info.can))
		return 0;
	frag_policy_needs_text(ops->needs & ~info.can, missing, sizeof(missing));
	return frag_fail(err, FRAG_ENOTSUP, "policy '%s' needs %s, which device '%s' does not have",
			 ops->name, missing, dev->ops->name);
}

int frag_policy_create(const struct frag_policy_spec *spec, const struct frag_policy_env *env,
		       struct frag_policy *out, struct frag_err *err)
{
	int rc;

	*out = (struct frag_policy){ .ops = spec->ops, .env = *env };
	out->env.inner = spec->inner ? spec->inner->text : NULL;
	rc = check_needs(spec->ops, env->dev, err);
	if (!rc && spec->library)
		rc = frag_external_create(spec->ops, spec->params, out, err);
	else if (!rc)
		rc = spec->ops->create(&out->env, spec->params, &out->self, err);
	if (rc)
		*out = (struct frag_policy){ 0 };
	return rc;
}

void frag_policy_destroy(struct frag_policy *policy)
{
	if (policy && policy->ops)
		policy->ops->destroy(policy->self);
	if (policy)
		*policy = (struct frag_policy){ 0 };
}

int frag_inner_open(const char *text, const struct frag_policy_env *env, struct frag_inner *out,
		    struct frag_err *err)
{
	int rc;

	*out = (struct frag_inner){ 0 };
	FRAG_TRY(frag_policy_spec_parse(text, &out->spec, err));
	rc = frag_policy_create(out->spec, env, &out->policy, err);
	if (rc)
		frag_inner_close(out);
	return rc;
}

void frag_inner_close(struct frag_inner *inner)
{
	frag_policy_destroy(&inner->policy);
	frag_policy_spec_destroy(inner->spec);
	inner->spec = NULL;
}

static void count_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct frag_usage *u = ctx;

	(void)addr, (void)bytes, (void)stream;
	u->segments_count++;
}

static void count_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
			uint64_t releasable)
{
	struct frag_usage *u = ctx;

	(void)addr;
	u->blocks_count++;
	if (state == FRAG_STATE_LIVE) {
		u->allocated_bytes += bytes;
	} else if (state == FRAG_STATE_WAITING) {
		u->waiting_bytes += bytes;
	} else {
		u->free_bytes += bytes;
		u->releasable_bytes += releasable;
		u->non_releasable_bytes += bytes - releasable;
		u->largest_free_bytes = FRAG_MAX(u->largest_free_bytes, bytes);
	}
}

void frag_policy_usage_walk(struct frag_policy *policy, struct frag_usage *out)
{
	struct frag_visitor v = { .ctx = out, .segment = count_segment, .block = count_block };

	*out = (struct frag_usage){ 0 };
	if (policy->ops->visit)
		policy->ops->visit(policy->self, &v);
	else if (policy->ops->usage)
		policy->ops->usage(policy->self, out);
}
