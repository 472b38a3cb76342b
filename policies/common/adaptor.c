/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the inner policy of an adaptor, and passing calls on to it. */
#include "adaptor.h"

int frag_adaptor_create(const struct frag_policy_env *env, const struct frag_policy_env *for_inner,
			size_t bytes, const char *name, void **self, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_adaptor *a = NULL;

	if (!env->inner)
		return FRAG_USAGE(err, "policy '%s' wraps another one; write '%s:key=value/POLICY'",
				  name, name);
	a = frag_host_calloc(1, bytes);
	FRAG_CHECK_ALLOC(a, name, err);
	a->env = *env;
	FRAG_TRY(frag_inner_open(env->inner, for_inner, &a->inner, err));
	*self = FRAG_GIVE(a);
	return 0;
}

void frag_adaptor_destroy(void *self)
{
	frag_inner_close(&((struct frag_adaptor *)self)->inner);
	frag_host_free(self);
}

static struct frag_policy *inner_of(void *self)
{
	return &((struct frag_adaptor *)self)->inner.policy;
}

int frag_adaptor_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct frag_policy *p = inner_of(self);

	return p->ops->alloc(p->self, req, out, err);
}

int frag_adaptor_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_policy *p = inner_of(self);

	return p->ops->free(p->self, block, err);
}

void frag_adaptor_free_requested(void *self, const struct frag_block *block)
{
	struct frag_policy *p = inner_of(self);

	if (p->ops && p->ops->free_requested)
		p->ops->free_requested(p->self, block);
}

int frag_adaptor_trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct frag_policy *p = inner_of(self);

	return p->ops && p->ops->trim ? p->ops->trim(p->self, pool, err) : 0;
}

int frag_adaptor_synced(void *self, struct frag_err *err)
{
	struct frag_policy *p = inner_of(self);

	return p->ops && p->ops->synced ? p->ops->synced(p->self, err) : 0;
}

void frag_adaptor_mark(void *self, bool begins)
{
	struct frag_policy *p = inner_of(self);

	if (p->ops && p->ops->mark)
		p->ops->mark(p->self, begins);
}

void frag_adaptor_visit(void *self, const struct frag_visitor *v)
{
	struct frag_policy *p = inner_of(self);

	if (p->ops && p->ops->visit)
		p->ops->visit(p->self, v);
}

int frag_adaptor_check(void *self, struct frag_err *err)
{
	struct frag_policy *p = inner_of(self);

	return p->ops && p->ops->check ? p->ops->check(p->self, err) : 0;
}

void frag_adaptor_usage(void *self, struct frag_usage *out)
{
	struct frag_policy *p = inner_of(self);

	if (p->ops->usage)
		p->ops->usage(p->self, out);
	else
		frag_policy_usage_walk(p, out);
}

void frag_adaptor_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct frag_policy *p = inner_of(self);

	if (p->ops && p->ops->counters)
		p->ops->counters(p->self, fn, ctx);
}
