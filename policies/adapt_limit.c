/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptor: a limit on what the inner policy may reserve.
 *
 *	The inner policy gets the limit as its own process limit, so that it can do
 *	what its source does when memory is refused. If reserved is above the limit
 *	all the same after a request, the block goes back, what is cached is given
 *	back, and the request is refused.
 *
 * Reserved is what the device counts since the instance was created.
 * (RMM's limiting_resource_adaptor counts live bytes instead; here the word is
 * that of the reports.)
 */
#include <frag/policy.h>

#include <adaptor.h>

struct params {
	uint64_t bytes;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("bytes", struct params, bytes, UINT64_MAX, 1, UINT64_MAX,
		       "most bytes that the inner policy may reserve; max: no limit"),
	FRAG_OPT_END,
};

struct limit {
	struct frag_adaptor a; /* first: see adaptor.h */
	uint64_t most;	       /* the device's reserved bytes must not be above */
	int64_t refused_count; /* by this adaptor, not by the inner policy */
};

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int limit_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct limit *l = self;

	FRAG_TRY(frag_adaptor_alloc(l, req, out, err));
	if (FRAG_LIKELY(l->a.env.dev->reserved_bytes <= l->most))
		return 0;
	out->stream = req->stream;
	out->requested = req->bytes;
	l->refused_count++;
	FRAG_TRY(frag_adaptor_free(l, out, err));
	FRAG_TRY(frag_adaptor_trim(l, 0, err));
	return FRAG_OOM;
}

static void limit_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct limit *l = self;

	frag_adaptor_counters(l, fn, ctx);
	fn(ctx, "limit.refused", l->refused_count);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	uint64_t most = add_saturated(env->dev->reserved_bytes, p->bytes);
	struct frag_policy_env for_inner = *env;

	for_inner.limit_bytes = FRAG_MIN(env->limit_bytes, most);
	FRAG_TRY(frag_adaptor_create(env, &for_inner, sizeof(struct limit), "limit", self, err));
	((struct limit *)*self)->most = most;
	return 0;
}

const struct frag_policy_ops frag_policy_adapt_limit = {
	.abi = FRAG_POLICY_ABI,
	.name = "limit",
	.summary = "adaptor: limits what the inner policy may reserve",
	.source = "cufrag; compare rapidsai/rmm limiting_resource_adaptor",
	FRAG_ADAPTOR_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	.destroy = frag_adaptor_destroy,
	.alloc = limit_alloc,
	.free = frag_adaptor_free,
	.trim = frag_adaptor_trim,
	.synced = frag_adaptor_synced,
	.counters = limit_counters,
};
