/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null: no policy at all. An address counter that only grows; frees do
 * nothing and the device is never asked. Its figures are what the simulator
 * itself costs per event; its memory figures mean nothing (reserved is 0).
 *
 * Addresses start at 512 GiB and step by 512 B, so that blocks that live at the same time
 * are disjoint and aligned as cudaMalloc aligns them.
 */
#include <frag/policy.h>

#define FIRST_ADDR (512 * FRAG_GIB)
#define STEP 512u

struct self {
	frag_addr_t next;
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s = frag_host_alloc(sizeof(*s));

	(void)env, (void)params;
	FRAG_CHECK_ALLOC(s, "policy null", err);
	s->next = FIRST_ADDR;
	*out = s;
	return 0;
}

static void destroy(void *self)
{
	frag_host_free(self);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;

	(void)err;
	out->addr = s->next;
	out->granted = req->bytes;
	out->cls = FRAG_CLASS_HIT;
	s->next += frag_round_up(req->bytes, STEP);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	(void)self, (void)block, (void)err;
	return 0;
}

/* It holds nothing. */
static void visit(void *self, const struct frag_visitor *v)
{
	(void)self, (void)v;
}

static void usage(void *self, struct frag_usage *out)
{
	(void)self;
	*out = (struct frag_usage){ 0 };
}

const struct frag_policy_ops frag_policy_null = {
	.name = "null",
	.summary = "no memory, no work: what the simulator itself costs",
	.source = "cufrag",
	.trims = "nothing",
	.flags = FRAG_POLICY_NO_MEMORY,
	FRAG_POLICY_HOOKS,
	.visit = visit,
	.usage = usage,
};
