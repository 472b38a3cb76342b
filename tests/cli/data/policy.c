/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy in a shared object: one cudaMalloc per request, rounded up. Its third allocation, and
 * its frees, do what LIE in the environment says. While it begins with round=2K, or at allocation
 * number INTERRUPT_AT, it is as if Ctrl-C were pressed (INTERRUPT_WITH: another signal, by its
 * number); it goes on.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <frag/policy.h>

struct params {
	uint64_t round;
};
static const struct frag_opt opts[] = { { .key = "round",
					  .type = FRAG_OPT_T_BYTES,
					  .def = 512,
					  .min = 1,
					  .max = 1 << 30,
					  .help = "sizes are multiples of it",
					  .tune = "1K,2K,4K,8K" },
					FRAG_OPT_END };

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static int lies(const char *how)
{
	const char *lie = getenv("LIE");

	return lie && !strcmp(lie, how);
}

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
	if (s->round == 2048)
		raise(SIGINT);
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

static int release_or_lie(void *self, const struct frag_block *block, struct frag_err *err)
{
	FRAG_TRY(release(self, block, err));
	return lies("free") ? FRAG_OOM : 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	while (s->first)
		if (release(s, &(struct frag_block){ .handle = (uintptr_t)s->first }, NULL))
			break;
	frag_host_free(s);
}

static int lie(struct frag_block *out, frag_addr_t first)
{
	if (lies("code"))
		return 77;
	if (lies("negative"))
		return -5;
	if (lies("silent"))
		return FRAG_EDEVICE;
	if (lies("class"))
		out->cls = 200;
	else if (lies("overlap"))
		out->addr = first;
	else if (lies("short"))
		out->granted = 1;
	else if (lies("long"))
		out->granted = 1ull << 50;
	else if (lies("endless"))
		out->granted = UINT64_MAX;
	return 0;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	static frag_addr_t first;
	static int calls;
	struct self *s = self;
	struct block *b = frag_host_calloc(1, sizeof(*b));
	int rc;

	if (++calls == number("INTERRUPT_AT", 0))
		raise(number("INTERRUPT_WITH", SIGINT));
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
	if (calls == 1)
		first = out->addr;
	return calls == 3 ? lie(out, first) : 0;
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

const struct frag_policy_ops frag_policy_external = {
	.abi = ABI,
	.name = "mine",
	.source = "tests of the command line",
	.summary = "one cudaMalloc per request, rounded up",
	.needs = FRAG_CAN_MALLOC,
	.params_size = sizeof(struct params),
	.opts = opts,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = release_or_lie,
	.visit = visit,
};
