/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of policies: create, destroy, the inner policy of an adaptor, and usage by walking. The
 * instance copies its environment, but the spec must outlive it, because params and the inner text
 * are borrowed from it.
 */
#include <frag/policy.h>

#include <search.h>
#include <string.h>

#include "spec.h"

/* ---- external policies ---- */

/*
 * Results of an external policy are untrusted input. A table of calls with the same name stands
 * between it and the engine and checks every result:
 *
 * 	- a return code is 0, FRAG_OOM if that is allowed, or one of cufrag's with a message;
 * 	- a granted block is at least as long as its request, overlaps no other one, and has a valid
 * 	  class; all blocks together are not more than the device has given.
 *
 * Structure: the blocks in use are in a search tree of disjoint ranges, where overlapping ranges
 * compare equal, so that one search finds both an overlap and the place. Cost: O(log n) per call.
 * `check/` checks more; these checks always run.
 */
struct range {
	frag_addr_t from, to; /* `to` is exclusive */
};

struct external {
	struct frag_policy_ops ops; /* the policy's own table, with the checked calls */
	const struct frag_policy_ops *theirs;
	void *self;
	struct frag_device *dev;
	void *ranges;	      /* tsearch(3) */
	uint64_t granted_sum; /* bytes of all blocks */
};

#define LL(x) ((unsigned long long)(x))

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->to <= y->from ? -1 : x->from >= y->to;
}

/* The result of a call: its code and message, or what is wrong with them. */
static int answer(const char *call, int rc, bool may_oom, const struct frag_err *said,
		  struct frag_err *err)
{
	if (!rc || (rc == FRAG_OOM && may_oom))
		return rc;
	if (rc > 0 || !strcmp(frag_code_name(rc), "?"))
		return frag_fail(err, FRAG_EPOLICY,
				 "its '%s' returned %d, which is not a valid code", call, rc);
	if (said->code != rc || !memchr(said->msg, 0, sizeof(said->msg)) || !*said->msg)
		return frag_fail(err, FRAG_EPOLICY, "its '%s' failed with %s and gave no reason",
				 call, frag_code_name(rc));
	if (err)
		*err = *said;
	return rc;
}

/* Registers the block as in use, if it is valid. */
static int take(struct external *f, const struct frag_request *req, const struct frag_block *b,
		struct frag_err *err)
{
	struct range *r, **found;

	if (b->granted < req->bytes || b->granted > UINT64_MAX - b->addr)
		return frag_fail(err, FRAG_EPOLICY,
				 "it granted %llu bytes at 0x%llx where %llu were requested",
				 LL(b->granted), LL(b->addr), LL(req->bytes));
	if (b->cls >= FRAG_CLASS_COUNT)
		return frag_fail(err, FRAG_EPOLICY, "it returned a block of class %u; there are %u",
				 b->cls, (unsigned)FRAG_CLASS_COUNT);
	if (b->granted > f->dev->reserved_bytes ||
	    f->granted_sum > f->dev->reserved_bytes - b->granted)
		return frag_fail(err, FRAG_EPOLICY,
				 "it granted %llu bytes at 0x%llx, more than it holds of the "
				 "device",
				 LL(b->granted), LL(b->addr));
	r = frag_host_alloc(sizeof(*r));
	FRAG_CHECK_ALLOC(r, "blocks of a policy", err);
	*r = (struct range){ b->addr, b->addr + b->granted };
	found = tsearch(r, &f->ranges, compare);
	if (found && *found == r) {
		f->granted_sum += b->granted;
		return 0;
	}
	frag_host_free(r);
	FRAG_CHECK_ALLOC(found, "blocks of a policy", err);
	return frag_fail(err, FRAG_EPOLICY, "its block 0x%llx overlaps the one at 0x%llx",
			 LL(b->addr), LL((*found)->from));
}

static void let_go(struct external *f, const struct frag_block *b)
{
	struct range key = { b->addr, b->addr + 1 }, **found, *r;

	found = tfind(&key, &f->ranges, compare);
	if (!found)
		return;
	r = *found;
	f->granted_sum -= r->to - r->from;
	tdelete(&key, &f->ranges, compare);
	frag_host_free(r);
}

static int checked_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			 struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };
	int rc = answer("alloc", f->theirs->alloc(f->self, req, out, &said), true, &said, err);

	return rc ? rc : take(f, req, out, err);
}

static int checked_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };

	let_go(f, block);
	return answer("free", f->theirs->free(f->self, block, &said), false, &said, err);
}

static void checked_free_requested(void *self, const struct frag_block *block)
{
	struct external *f = self;

	f->theirs->free_requested(f->self, block);
}

static int checked_trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };

	return answer("trim", f->theirs->trim(f->self, pool, &said), false, &said, err);
}

static int checked_synced(void *self, struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };

	return answer("synced", f->theirs->synced(f->self, &said), false, &said, err);
}

static void checked_mark(void *self, bool begins)
{
	struct external *f = self;

	f->theirs->mark(f->self, begins);
}

static void checked_visit(void *self, const struct frag_visitor *v)
{
	struct external *f = self;

	f->theirs->visit(f->self, v);
}

static int checked_check(void *self, struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };

	return answer("check", f->theirs->check(f->self, &said), false, &said, err);
}

static void checked_usage(void *self, struct frag_usage *out)
{
	struct external *f = self;

	f->theirs->usage(f->self, out);
}

static void checked_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct external *f = self;

	f->theirs->counters(f->self, fn, ctx);
}

static int checked_restore(void *self, const struct frag_initial_state *initial, uint64_t *handles,
			   struct frag_err *err)
{
	struct external *f = self;
	struct frag_err said = { 0 };

	return answer("restore", f->theirs->restore(f->self, initial, handles, &said), true, &said,
		      err);
}

static void forget_range(void *range)
{
	frag_host_free(range);
}

static void checked_destroy(void *self)
{
	struct external *f = self;

	f->theirs->destroy(f->self);
	tdestroy(f->ranges, forget_range);
	frag_host_free(f);
}

/* Calls that the policy omits are omitted here. */
static struct frag_policy_ops watched(const struct frag_policy_ops *theirs)
{
	struct frag_policy_ops ops = *theirs;

	ops.destroy = checked_destroy;
	ops.alloc = checked_alloc;
	ops.free = checked_free;
	ops.free_requested = theirs->free_requested ? checked_free_requested : NULL;
	ops.trim = theirs->trim ? checked_trim : NULL;
	ops.synced = theirs->synced ? checked_synced : NULL;
	ops.mark = theirs->mark ? checked_mark : NULL;
	ops.visit = theirs->visit ? checked_visit : NULL;
	ops.check = theirs->check ? checked_check : NULL;
	ops.usage = theirs->usage ? checked_usage : NULL;
	ops.counters = theirs->counters ? checked_counters : NULL;
	ops.restore = theirs->restore ? checked_restore : NULL;
	return ops;
}

/* Like ops->create, for the ops of a shared object: *policy (with env set) becomes an instance with
 * the checks above. Errors: the policy's own; FRAG_EPOLICY if it broke the contract or failed without
 * a reason. */
static int create_external(const struct frag_policy_ops *ops, const void *params,
			   struct frag_policy *policy, struct frag_err *err)
{
	FRAG_AUTO_FREE struct external *f = NULL;
	struct frag_err said = { 0 };

	FRAG_TRY_CALLOC(f, 1, "policy", err);
	f->theirs = ops;
	f->ops = watched(ops);
	f->dev = policy->env.dev;
	FRAG_TRY(answer("create", ops->create(&policy->env, params, &f->self, &said), false, &said,
			err));
	policy->ops = &f->ops;
	policy->self = FRAG_GIVE(f);
	return 0;
}

/* ---- instances ---- */

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
		rc = create_external(spec->ops, spec->params, out, err);
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
