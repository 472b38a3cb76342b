/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's FixedPool: objects of one size, the lowest free one of the newest
 * sub-pool first. The rules are in slotpool.h; this file is the policy around one
 * such pool (LLNL/Umpire src/umpire/strategy/FixedPool.cpp, 2026).
 *
 * The source takes requests of exactly the object size; here smaller ones get a
 * whole object, too, and larger ones are refused. The sub-pool of the constructor
 * is taken by the first request.
 */
#include <frag/policy.h>

#include <slotpool.h>
#include <upstream.h>

struct params {
	uint64_t object, objects;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES_TUNED("object", struct params, object, FRAG_MIB, 1, 64 * FRAG_GIB,
			     "size of every object", "4M,16M,64M,256M,512M,1G,2G,4G"),
	FRAG_OPT_UINT_TUNED("objects-per-pool", struct params, objects, 2048, 1, 262144,
			    "objects taken from the upstream at once", "1,8,64"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"), FRAG_OPT_END
};

struct fixed {
	struct frag_upstream up; /* first: see upstream.h */
	struct frag_slotpool s;
};

static int fixed_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct fixed *a = self;

	if (req->bytes > a->s.object_bytes)
		return FRAG_OOM;
	return frag_slotpool_alloc(&a->s, req->stream, out, err);
}

static void fixed_free_requested(void *self, const struct frag_block *block)
{
	frag_slotpool_free_requested(&((struct fixed *)self)->s, block);
}

static int fixed_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	(void)err;
	frag_slotpool_free(&((struct fixed *)self)->s, block);
	return 0;
}

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_slotpool_visit(c, v);
}

static void fixed_visit(void *self, const struct frag_visitor *v)
{
	frag_upstream_visit(self, v, inside, self);
}

static void fixed_usage(void *self, struct frag_usage *out)
{
	struct fixed *a = self;
	bool known;

	frag_upstream_usage(&a->up, out, &known);
	frag_slotpool_usage(&a->s, out);
	if (!known)
		out->largest_free_bytes = 0;
}

static int fixed_check(void *self, struct frag_err *err)
{
	struct fixed *a = self;

	FRAG_TRY(frag_upstream_check(&a->up, err));
	return frag_slotpool_check(&a->s, err);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct fixed *a = frag_host_calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return frag_fail_nomem(err, "umpire-fixed");
	rc = frag_upstream_open(&a->up, env, env->inner ? env->inner : p->upstream, err);
	if (rc) {
		frag_host_free(a);
		return rc;
	}
	frag_slotpool_init(&a->s, &a->up, p->object, p->objects);
	*self = a;
	return 0;
}

static void destroy(void *self)
{
	struct fixed *a = self;

	frag_slotpool_release(&a->s);
	frag_upstream_close(&a->up);
	frag_host_free(a);
}

const struct frag_policy_ops frag_policy_umpire_fixed = {
	.abi = FRAG_POLICY_ABI,
	.name = "umpire-fixed",
	.summary = "Umpire's FixedPool: objects of one size, larger requests are refused",
	.source = "LLNL/Umpire src/umpire/strategy/FixedPool.cpp, 2026",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.create = create,
	.destroy = destroy,
	.alloc = fixed_alloc,
	.free = fixed_free,
	.free_requested = fixed_free_requested,
	.trim = frag_upstream_op_trim,
	.synced = frag_upstream_op_synced,
	.mark = frag_upstream_op_mark,
	.visit = fixed_visit,
	.check = fixed_check,
	.usage = fixed_usage,
};
