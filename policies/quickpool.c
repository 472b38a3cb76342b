/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's QuickPool (LLNL/Umpire src/umpire/strategy/QuickPool.cpp, 2026): best fit,
 * oldest among equals, exact splits; wholly free chunks are given back or made one
 * by a heuristic that is asked after every free, by default when all of the pool
 * is free. The rules are in quickcore.h; this file is the policy around one pool.
 *
 * Umpire knows no streams: a block may be reused once the engine completes its
 * free. empty_cache does what the program's own release() would.
 */
#include <frag/policy.h>

#include <quickcore.h>
#include <upstream.h>

struct params {
	struct frag_quick_params pool;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = { FRAG_QUICK_OPTS(struct params),
					FRAG_UPSTREAM_OPT(struct params, upstream, "device"),
					FRAG_OPT_END };

struct quickpool {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_quick q;
};

static int quick_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	return frag_quick_alloc(&((struct quickpool *)self)->q, req, out, err);
}

static void quick_free_requested(void *self, const struct frag_block *block)
{
	frag_quick_free_requested(&((struct quickpool *)self)->q, block);
}

static int quick_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	return frag_quick_free(&((struct quickpool *)self)->q, block, err);
}

static int quick_trim(void *self, uint16_t pool, struct frag_err *err)
{
	/* it knows no private pools: an empty_cache of one is of all */
	FRAG_TRY(frag_quick_give_back(&((struct quickpool *)self)->q, err));
	return frag_upstream_op_trim(self, pool, err);
}

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_quick_visit(c, v);
}

static void quick_visit(void *self, const struct frag_visitor *v)
{
	frag_upstream_visit(self, v, inside, self);
}

static void quick_usage(void *self, struct frag_usage *out)
{
	struct quickpool *a = self;
	bool known;

	frag_upstream_usage(&a->up, out, &known);
	frag_quick_usage(&a->q, out);
	if (!known)
		out->largest_free_bytes = 0;
}

static int quick_check(void *self, struct frag_err *err)
{
	struct quickpool *a = self;

	FRAG_TRY(frag_upstream_check(&a->up, err));
	return frag_quick_check(&a->q, err);
}

static int validate(const void *params, struct frag_err *err)
{
	return frag_quick_validate(&((const struct params *)params)->pool, err);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct quickpool *a = frag_host_calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return frag_fail_nomem(err, "quickpool");
	rc = frag_upstream_open(&a->up, env, env->inner ? env->inner : p->upstream, err);
	if (rc) {
		frag_host_free(a);
		return rc;
	}
	frag_quick_init(&a->q, &a->up, &p->pool);
	*self = a;
	return 0;
}

static void destroy(void *self)
{
	struct quickpool *a = self;

	frag_quick_release(&a->q);
	frag_upstream_close(&a->up);
	frag_host_free(a);
}

const struct frag_policy_ops frag_policy_quickpool = {
	.abi = FRAG_POLICY_ABI,
	.name = "quickpool",
	.summary = "Umpire's QuickPool: best fit, oldest first, coalesced by a heuristic",
	.source = "LLNL/Umpire src/umpire/strategy/QuickPool.cpp, 2026",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = quick_alloc,
	.free = quick_free,
	.free_requested = quick_free_requested,
	.trim = quick_trim,
	.synced = frag_upstream_op_synced,
	.mark = frag_upstream_op_mark,
	.visit = quick_visit,
	.check = quick_check,
	.usage = quick_usage,
};
