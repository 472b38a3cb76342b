/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy outside of cufrag: built into a shared object of its own and loaded by path.
 *
 *	gcc -std=c17 -O2 -shared -fPIC -Isrc/include -o mine.so docs/external-policy/mine.c
 *	build/release/cufrag replay traces/varlen.default.cft --policy ./mine.so:segment=64M
 *
 * It is the same struct as that of a policy in policies/, under the fixed name
 * frag_policy_external. `abi` is looked at before anything else: an object built
 * against another version of <frag/policy.h> is refused. Everything that the public
 * headers declare can be called; the program exports it.
 *
 * The rules of this one, first fit: a request is rounded up to 512 B; it takes the first free piece
 * that is large enough and belongs to its stream, in the oldest segment that has one, and what is
 * left over stays free; else a new segment comes from the device; when that refuses, wholly free
 * segments go back and it is asked once more. A freed piece merges with its free neighbours.
 *
 * Structure: all pieces in a list by address. Two neighbours of a segment are never both free.
 */
#include <frag/policy.h>

#define UNIT 512u

struct params {
	uint64_t segment;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("segment", struct params, segment, 32 * FRAG_MIB, UNIT, 64 * FRAG_GIB,
		       "smallest segment taken from the device, bytes"),
	FRAG_OPT_END,
};

struct piece {
	frag_addr_t addr;
	uint64_t bytes, segment; /* segment: its bytes, in the first piece of one; else 0 */
	uint64_t age;		 /* number of its segment */
	struct piece *prev, *next;
	uint32_t stream;
	enum frag_block_state state;
};

struct self {
	const struct params *params; /* borrowed until destroy */
	struct frag_device *dev;
	uint64_t limit_bytes;
	uint64_t segments; /* so far */
	struct piece list; /* head: prev is the last, next the first */
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->segment % UNIT)
		return frag_fail(err, FRAG_EUSAGE, "segment is not a multiple of 512");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY_CALLOC(s, 1, "policy mine", err);
	s->params = params;
	s->dev = env->dev;
	s->limit_bytes = env->limit_bytes;
	s->list.prev = s->list.next = &s->list;
	*out = s;
	return 0;
}

static void cut(struct piece *p)
{
	p->prev->next = p->next;
	p->next->prev = p->prev;
	frag_host_free(p);
}

/* A new free piece behind `before`. */
static struct piece *put(struct piece *before, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct piece *p = frag_host_calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct piece){ .addr = addr,
			     .bytes = bytes,
			     .prev = before,
			     .next = before->next,
			     .stream = stream,
			     .state = FRAG_STATE_FREE };
	p->prev->next = p->next->prev = p;
	return p;
}

static bool is_idle(const struct piece *p)
{
	return p->state == FRAG_STATE_FREE && p->segment == p->bytes;
}

static int give_back(struct self *s, struct frag_err *err)
{
	for (struct piece *p = s->list.next, *next; p != &s->list; p = next) {
		next = p->next;
		if (!is_idle(p))
			continue;
		FRAG_TRY(frag_dev_free(s->dev, p->addr, p->bytes, err));
		cut(p);
	}
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	while (s->list.next != &s->list) {
		struct piece *p = s->list.next;

		if (p->segment)
			frag_dev_free(s->dev, p->addr, p->segment, NULL);
		cut(p);
	}
	frag_host_free(s);
}

static int ask_device(struct self *s, uint64_t bytes, frag_addr_t *out, struct frag_err *err)
{
	if (bytes > s->limit_bytes || s->dev->reserved_bytes > s->limit_bytes - bytes)
		return FRAG_OOM;
	return frag_dev_alloc(s->dev, bytes, out, err);
}

/* A new segment; *cls says whether others had to go first. */
static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct piece **out,
		enum frag_class *cls, struct frag_err *err)
{
	uint64_t want = FRAG_MAX(bytes, s->params->segment);
	struct piece *before = &s->list;
	frag_addr_t addr;
	int rc = ask_device(s, want, &addr, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(give_back(s, err));
		rc = ask_device(s, want, &addr, err);
	}
	if (rc)
		return rc;
	while (before->next != &s->list && before->next->addr < addr)
		before = before->next;
	*out = put(before, addr, want, stream);
	if (!*out) {
		frag_dev_free(s->dev, addr, want, NULL);
		return frag_fail_nomem(err, "policy mine: pieces");
	}
	(*out)->segment = want;
	(*out)->age = s->segments++;
	return 0;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t want = frag_round_up(req->bytes, UNIT);
	enum frag_class cls = FRAG_CLASS_HIT;
	struct piece *p = NULL;

	for (struct piece *q = s->list.next; q != &s->list; q = q->next)
		if (q->state == FRAG_STATE_FREE && q->bytes >= want && q->stream == req->stream &&
		    (!p || q->age < p->age))
			p = q;
	if (!p)
		FRAG_TRY(grow(s, want, req->stream, &p, &cls, err));
	if (p->bytes > want) {
		struct piece *rest = put(p, p->addr + want, p->bytes - want, p->stream);

		FRAG_CHECK_ALLOC(rest, "policy mine: pieces", err);
		rest->age = p->age;
		p->bytes = want;
	}
	p->state = FRAG_STATE_LIVE;
	out->addr = p->addr;
	out->granted = want;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
	return 0;
}

static struct piece *piece_of(const struct frag_block *b)
{
	return (struct piece *)(uintptr_t)b->handle;
}

static void free_requested(void *self, const struct frag_block *block)
{
	(void)self;
	piece_of(block)->state = FRAG_STATE_WAITING;
}

/* Merges p with the piece after it, if both are free and of one segment. */
static void merge(const struct self *s, struct piece *p)
{
	struct piece *next = p->next;

	if (p == &s->list || next == &s->list || next->segment || p->state != FRAG_STATE_FREE ||
	    next->state != FRAG_STATE_FREE)
		return;
	p->bytes += next->bytes;
	cut(next);
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct piece *p = piece_of(block);

	(void)err;
	p->state = FRAG_STATE_FREE;
	merge(self, p);
	merge(self, p->prev);
	return 0;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	return pool ? 0 : give_back(self, err);
}

static void visit(void *self, const struct frag_visitor *v)
{
	const struct self *s = self;

	for (const struct piece *p = s->list.next; p != &s->list; p = p->next) {
		if (p->segment && v->segment)
			v->segment(v->ctx, p->addr, p->segment, p->stream);
		if (v->block)
			v->block(v->ctx, p->addr, p->bytes, p->state, is_idle(p) ? p->bytes : 0);
	}
}

static int check(void *self, struct frag_err *err)
{
	const struct self *s = self;

	for (const struct piece *p = s->list.next, *next = p->next; next != &s->list;
	     p = next, next = p->next) {
		if (next->segment)
			continue;
		if (p->addr + p->bytes != next->addr)
			return frag_fail(err, FRAG_ECHECK, "a piece does not follow on another");
		if (p->state == FRAG_STATE_FREE && next->state == FRAG_STATE_FREE)
			return frag_fail(err, FRAG_ECHECK, "two free neighbours are not merged");
	}
	return 0;
}

extern const struct frag_policy_ops frag_policy_external;
const struct frag_policy_ops frag_policy_external = {
	.name = "mine",
	.summary = "an example from outside: first fit",
	.source = "docs/external-policy/mine.c",
	.needs = FRAG_CAN_MALLOC,
	.validate = validate,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	.visit = visit,
	.check = check,
};
