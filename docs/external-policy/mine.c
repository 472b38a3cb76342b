/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy outside of cufrag: built into a shared object of its own and loaded by path.
 *
 *	gcc -std=c17 -O2 -shared -fPIC -Isrc/include -o mine.so docs/external-policy/mine.c
 *	build/release/cufrag replay traces/varlen.default.cft --policy ./mine.so:smallest=4K
 *
 * It is the same struct as that of a policy in policies/, under the fixed name
 * frag_policy_external. `abi` is looked at before anything else: an object built
 * against another version of <frag/policy.h> is refused. Everything that the public
 * headers declare can be called; the program exports it.
 *
 * The rules of this one: a request is rounded up to a power of two; it takes the
 * free block of that size that was freed last, else a new one from the device; when the
 * device refuses, all free blocks go back and it is asked once more. Blocks are
 * never split or merged, so every block is a segment.
 *
 * Structure: a list of free blocks per size, and all blocks in one array.
 */
#include <frag/policy.h>

#include <stdlib.h>

#define SIZES 64

struct params {
	uint64_t smallest;
};

static const struct frag_opt opts[] = { FRAG_OPT_BYTES("smallest", struct params, smallest, 512, 1,
						       FRAG_GIB,
						       "smallest block, bytes, a power of two"),
					FRAG_OPT_END };

struct block {
	frag_addr_t addr;
	uint64_t bytes;
	size_t place;	    /* in the array of all */
	struct block *next; /* free list */
	enum frag_block_state state;
};

struct self {
	const struct params *params; /* borrowed until destroy */
	struct frag_device *dev;
	uint64_t limit_bytes;
	struct block *free[SIZES]; /* by log2 of the size, the latest first */
	struct block **all;
	size_t count, room;
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (!frag_is_pow2(p->smallest))
		return frag_fail(err, FRAG_EUSAGE, "smallest is not a power of two");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s = frag_host_calloc(1, sizeof(*s));

	if (!s)
		return frag_fail_nomem(err, "policy mine");
	s->params = params;
	s->dev = env->dev;
	s->limit_bytes = env->limit_bytes;
	*out = s;
	return 0;
}

/* The block has gone back to the device. */
static void forget(struct self *s, struct block *b)
{
	struct block *last = s->all[--s->count];

	s->all[b->place] = last;
	last->place = b->place;
	frag_host_free(b);
}

static int give_back(struct self *s, struct frag_err *err)
{
	for (unsigned i = 0; i < SIZES; i++) {
		while (s->free[i]) {
			struct block *b = s->free[i];

			FRAG_TRY(frag_dev_free(s->dev, b->addr, b->bytes, err));
			s->free[i] = b->next;
			forget(s, b);
		}
	}
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	while (s->count) {
		frag_dev_free(s->dev, s->all[0]->addr, s->all[0]->bytes, NULL);
		forget(s, s->all[0]);
	}
	frag_host_free(s->all);
	frag_host_free(s);
}

static int ask_device(struct self *s, uint64_t bytes, frag_addr_t *out, struct frag_err *err)
{
	if (bytes > s->limit_bytes || s->dev->reserved_bytes > s->limit_bytes - bytes)
		return FRAG_OOM;
	return frag_dev_alloc(s->dev, bytes, out, err);
}

/* A new block; *cls says whether others had to go first. */
static int grow(struct self *s, uint64_t bytes, struct block **out, enum frag_class *cls,
		struct frag_err *err)
{
	struct block *b = frag_host_calloc(1, sizeof(*b));
	int rc;

	*cls = FRAG_CLASS_GROW;
	if (b && s->count == s->room) {
		struct block **all = frag_host_realloc(s->all, 2 * s->room + 64, sizeof(*all));

		s->all = all ? all : s->all;
		s->room = all ? 2 * s->room + 64 : s->room;
	}
	if (!b || s->count == s->room) {
		frag_host_free(b);
		return frag_fail_nomem(err, "policy mine: blocks");
	}
	rc = ask_device(s, bytes, &b->addr, err);
	if (rc == FRAG_OOM) {
		*cls = FRAG_CLASS_RELEASE;
		rc = give_back(s, err);
		if (!rc)
			rc = ask_device(s, bytes, &b->addr, err);
	}
	if (rc) {
		frag_host_free(b);
		return rc;
	}
	b->bytes = bytes;
	b->place = s->count;
	s->all[s->count++] = b;
	*out = b;
	return 0;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t want = FRAG_MAX(req->bytes, s->params->smallest);
	unsigned order = want > 1 ? frag_log2(want - 1) + 1 : 0;
	enum frag_class cls = FRAG_CLASS_HIT;
	struct block *b;

	if (order >= SIZES)
		return FRAG_OOM;
	b = s->free[order];
	if (b)
		s->free[order] = b->next;
	else
		FRAG_TRY(grow(s, 1ull << order, &b, &cls, err));
	b->state = FRAG_STATE_LIVE;
	out->addr = b->addr;
	out->granted = b->bytes;
	out->handle = (uintptr_t)b;
	out->cls = (uint8_t)cls;
	return 0;
}

static struct block *block_of(const struct frag_block *b)
{
	return (struct block *)(uintptr_t)b->handle;
}

static void free_requested(void *self, const struct frag_block *block)
{
	(void)self;
	block_of(block)->state = FRAG_STATE_WAITING;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct block *b = block_of(block);
	unsigned order = frag_log2(b->bytes);

	(void)err;
	b->state = FRAG_STATE_FREE;
	b->next = s->free[order];
	s->free[order] = b;
	return 0;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	return pool ? 0 : give_back(self, err);
}

static int by_addr(const void *x, const void *y)
{
	const struct block *a = *(struct block *const *)x, *b = *(struct block *const *)y;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;

	if (s->count)
		qsort(s->all, s->count, sizeof(struct block *), by_addr);
	for (size_t i = 0; i < s->count; i++) {
		struct block *b = s->all[i];

		b->place = i;
		if (v->segment)
			v->segment(v->ctx, b->addr, b->bytes, 0);
		if (v->block)
			v->block(v->ctx, b->addr, b->bytes, b->state,
				 b->state == FRAG_STATE_FREE ? b->bytes : 0);
	}
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t listed = 0, free_count = 0;

	for (unsigned i = 0; i < SIZES; i++) {
		for (const struct block *b = s->free[i]; b; b = b->next, listed++)
			if (b->state != FRAG_STATE_FREE || b->bytes != 1ull << i)
				return frag_fail(err, FRAG_ECHECK, "a wrong block in list %u", i);
	}
	for (size_t i = 0; i < s->count; i++) {
		if (s->all[i]->place != i)
			return frag_fail(err, FRAG_ECHECK, "a block is not in its place");
		free_count += s->all[i]->state == FRAG_STATE_FREE;
	}
	if (listed != free_count)
		return frag_fail(err, FRAG_ECHECK, "%zu blocks are free, %zu are in lists",
				 free_count, listed);
	return 0;
}

extern const struct frag_policy_ops frag_policy_external;
const struct frag_policy_ops frag_policy_external = {
	.abi = FRAG_POLICY_ABI,
	.name = "mine",
	.summary = "an example from outside: powers of two, the block freed last first",
	.source = "docs/external-policy/mine.c",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.free_requested = free_requested,
	.trim = trim,
	.visit = visit,
	.check = check,
};
