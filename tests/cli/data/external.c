/* SPDX-License-Identifier: Apache-2.0 */
/* A policy in a shared object: one cudaMalloc per request, rounded up. */
#include <frag/policy.h>

struct params {
	uint64_t round;
};
static const struct frag_opt opts[] = { FRAG_OPT_BYTES("round", struct params, round, 512, 1,
						       1 << 30, "sizes are multiples of it"),
					FRAG_OPT_END };

/* live blocks, chained: destroy has to give all of them back */
struct block {
	struct block *prev, *next;
	frag_addr_t addr;
	uint64_t bytes;
};
struct self {
	struct frag_device *dev;
	uint64_t round;
	struct block *first;
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s = frag_host_calloc(1, sizeof(*s));

	if (!s)
		return frag_fail_nomem(err, "external policy");
	s->dev = env->dev;
	s->round = ((const struct params *)params)->round;
	*out = s;
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct block *b = (struct block *)(uintptr_t)block->handle;

	FRAG_TRY(frag_dev_free(s->dev, b->addr, b->bytes, err));
	if (b->prev)
		b->prev->next = b->next;
	else
		s->first = b->next;
	if (b->next)
		b->next->prev = b->prev;
	frag_host_free(b);
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	while (s->first)
		if (release(s, &(struct frag_block){ .handle = (uintptr_t)s->first }, NULL))
			break;
	frag_host_free(s);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	struct block *b = frag_host_calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return frag_fail_nomem(err, "external policy");
	b->bytes = frag_round_up(req->bytes, s->round);
	rc = frag_dev_alloc(s->dev, b->bytes, &b->addr, err);
	if (rc) {
		frag_host_free(b);
		return rc;
	}
	b->next = s->first;
	if (b->next)
		b->next->prev = b;
	s->first = b;
	*out = (struct frag_block){
		.addr = b->addr, .granted = b->bytes, .handle = (uintptr_t)b, .cls = FRAG_CLASS_GROW
	};
	return 0;
}

static void visit(void *self, const struct frag_visitor *v)
{
	for (struct block *b = ((struct self *)self)->first; b; b = b->next) {
		v->segment(v->ctx, b->addr, b->bytes, 0);
		v->block(v->ctx, b->addr, b->bytes, FRAG_STATE_LIVE, 0);
	}
}

#ifdef WRONG_ABI
#define ABI (FRAG_POLICY_ABI + 1)
#else
#define ABI FRAG_POLICY_ABI
#endif

/* What policies that include this file and define MINE_ONLY leave as it is. */
#define MINE_TABLE \
	.abi = ABI, .source = "tests of the command line", .needs = FRAG_CAN_MALLOC, \
	.params_size = sizeof(struct params), .destroy = destroy, .visit = visit

#ifndef MINE_ONLY
const struct frag_policy_ops frag_policy_external = {
	.name = "mine",
	.summary = "one cudaMalloc per request, rounded up",
	MINE_TABLE,
	.opts = opts,
	.create = create,
	.alloc = alloc,
	.free = release,
};
#endif
