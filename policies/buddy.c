/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buddy: binary buddy system over arenas taken from the device.
 *
 * Rules (Knuth, TAOCP volume 1, section 2.5):
 *  - A request becomes a block of 2^k bytes, k = ceil(log2(max(request,
 *    min-block))). It takes a free block of the smallest order >= k; among those
 *    the one with the lowest address (order=address) or the one that became
 *    free last (order=lifo). The block is halved down to k; the lower half goes
 *    on, the upper halves become free.
 *  - A freed block merges with its buddy, the other half of the block they came
 *    from, while that is free and whole. Arenas are never merged.
 *  - Growth: an arena of max(2^k, arena). Where the device or the limit refuses
 *    that much, half of it, and so on down to 2^k, so that what is left of the card
 *    is covered by a descending series of arenas.
 *  - capacity=N: no growth; the first request takes N bytes as a descending series
 *    of powers of two (the binary digits of N).
 *  - An arena that is one free block is given back on trim, and before the
 *    policy says out of memory; with give-back=free as soon as it is free, with
 *    give-back=never not before the end. capacity=N never gives back.
 *  - Before it says out of memory it waits for pending frees, if there are any.
 *
 * Structure: buddy/buddy_tree has the blocks, buddy/arenas the arenas in address order; here are
 * growth and giving back.
 */
#include "buddy/buddy_tree.h"
#include "environment.h"

enum order_rule { ORDER_ADDRESS, ORDER_LIFO };
enum give_back_rule { GIVE_BACK_TRIM, GIVE_BACK_FREE, GIVE_BACK_NEVER };

struct params {
	uint64_t min_block, arena, capacity, order, give_back;
};

static const char *const order_words[] = { "address", "lifo", NULL };
static const char *const give_back_words[] = { "trim", "free", "never", NULL };

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("min-block", struct params, min_block, 512, 256, FRAG_GIB,
		       "smallest block, bytes, a power of two", .unit = FRAG_OPT_POW2),
	FRAG_OPT_BYTES("arena", struct params, arena, FRAG_GIB, 4096, 1ull << 50,
		       "size of an arena, bytes, a power of two", .unit = FRAG_OPT_POW2,
		       .tune = "32M,128M,512M,1G,4G"),
	FRAG_OPT_BYTES("capacity", struct params, capacity, 0, 0, 1ull << 50,
		       "take this many bytes at first use, and never more; 0 = grow as needed"),
	FRAG_OPT_ENUM("order", struct params, order, ORDER_ADDRESS, order_words,
		      "which free block of a size is used: the lowest, or the one freed last"),
	FRAG_OPT_ENUM("give-back", struct params, give_back, GIVE_BACK_TRIM, give_back_words,
		      "when a wholly free arena goes back to the device"),
	FRAG_OPT_END,
};

struct self {
	struct frag_policy_env env;
	const struct params *params;
	struct frag_slab arena_slab;
	bool covered; /* capacity: taken */
	struct frag_buddy_tree tree;
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->arena < p->min_block)
		return frag_fail(err, FRAG_EUSAGE,
				 "arena is below min-block; raise arena or lower min-block");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY_CALLOC(s, 1, "policy buddy", err);
	s->env = *env;
	s->params = params;
	s->tree.lifo = s->params->order == ORDER_LIFO;
	s->tree.min_order = frag_log2(s->params->min_block);
	frag_slab_init(&s->tree.pairs, sizeof(struct frag_buddy_pair));
	frag_slab_init(&s->arena_slab, sizeof(struct frag_buddy_arena));
	*out = s;
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;
	const struct frag_buddy_arena *a = frag_buddy_arenas_first(&s->tree.arenas);

	for (; a; a = frag_buddy_arenas_next(a)) {
		const struct frag_buddy_node *n = &a->root;

		/* a second try: a call that failed once should not leak the arena */
		if (frag_dev_free(s->env.dev, n->addr, 1ull << n->order, NULL))
			frag_dev_free(s->env.dev, n->addr, 1ull << n->order, NULL);
	}
	frag_slab_release(&s->tree.pairs);
	frag_slab_release(&s->arena_slab);
	frag_host_free(s);
}

/* ---- arenas ---------------------------------------------------------------------------- */

/* Takes an arena of 2^k: 0, FRAG_OOM or an error. */
static int add_arena(struct self *s, unsigned k, uint32_t stream, struct frag_err *err)
{
	uint64_t bytes = 1ull << k;
	struct frag_buddy_arena *a;
	frag_addr_t addr;

	if (frag_env_over_limit(&s->env, bytes))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!frag_slab_reserve(&s->arena_slab, 1), "arenas of policy buddy", err);
	FRAG_TRY(frag_dev_alloc(s->env.dev, bytes, &addr, err));
	a = frag_slab_alloc(&s->arena_slab);
	*a = (struct frag_buddy_arena){ .root = { .addr = addr, .order = (uint8_t)k },
					.stream = stream };
	s->tree.free_bytes += bytes;
	s->tree.blocks_count++;
	frag_buddy_put_free(&s->tree, &a->root);
	frag_buddy_arenas_add(&s->tree.arenas, a);
	frag_env_journal(&s->env, FRAG_SEGMENT_ALLOC, addr, bytes, stream);
	return 0;
}

/* Gives an arena back. When the device fails it stays, free. pre: it is one free block. */
static int drop_arena(struct self *s, struct frag_buddy_arena *a, struct frag_err *err)
{
	uint64_t bytes = 1ull << a->root.order;

	FRAG_TRY(frag_dev_free(s->env.dev, a->root.addr, bytes, err));
	frag_env_journal(&s->env, FRAG_SEGMENT_FREE, a->root.addr, bytes, a->stream);
	frag_buddy_cut_free(&s->tree, &a->root);
	s->tree.free_bytes -= bytes;
	s->tree.blocks_count--;
	frag_buddy_arenas_remove(&s->tree.arenas, a);
	frag_slab_free(&s->arena_slab, a);
	return 0;
}

static int give_back(struct self *s, struct frag_err *err)
{
	struct frag_buddy_arena *a = frag_buddy_arenas_first(&s->tree.arenas), *next;

	for (; a && s->tree.idle_count; a = next) {
		next = frag_buddy_arenas_next(a);
		if (a->root.state == FRAG_STATE_FREE)
			FRAG_TRY(drop_arena(s, a, err));
	}
	return 0;
}

static bool may_give_back(const struct self *s)
{
	return s->params->give_back != GIVE_BACK_NEVER && !s->params->capacity;
}

/* capacity=N: the binary digits of N, largest first. Stops at the first refusal. */
static int cover(struct self *s, uint32_t stream, struct frag_err *err)
{
	uint64_t left = s->params->capacity;
	int rc = 0;

	s->covered = true;
	while (!rc && left >= s->params->min_block) {
		unsigned k = frag_log2(left);

		rc = add_arena(s, k, stream, err);
		left -= 1ull << k;
	}
	return rc;
}

/* An arena for a block of order k, smaller than usual if need be. */
static int grow(struct self *s, unsigned k, uint32_t stream, struct frag_err *err)
{
	unsigned size = FRAG_MAX(k, frag_log2(s->params->arena));
	int rc;

	do {
		rc = add_arena(s, size, stream, err);
	} while (rc == FRAG_OOM && size-- > k);
	return rc;
}

/* ---- hooks ----------------------------------------------------------------------------- */

/* When nothing free fits. 0: now something does. */
static int make_room(struct self *s, unsigned k, uint32_t stream, bool *released,
		     struct frag_err *err)
{
	int rc;

	if (s->params->capacity) {
		rc = s->covered ? FRAG_OOM : cover(s, stream, err);
		if (rc >= 0)
			rc = frag_buddy_find(&s->tree, k) ? 0 : FRAG_OOM;
	} else {
		rc = grow(s, k, stream, err);
	}
	if (rc != FRAG_OOM)
		return rc;
	*released = true;
	if (s->env.sync) {
		s->env.sync(s->env.sync_ctx);
		if (frag_buddy_find(&s->tree, k))
			return 0;
	}
	if (!may_give_back(s) || !s->tree.idle_count)
		return FRAG_OOM;
	FRAG_TRY(give_back(s, err));
	return grow(s, k, stream, err);
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	bool grown = false, released = false;
	struct frag_buddy_node *n;
	unsigned k, from;

	if (req->bytes > 1ull << (FRAG_BUDDY_ORDERS - 1))
		return FRAG_OOM;
	k = req->bytes <= s->params->min_block ? s->tree.min_order : frag_log2(req->bytes - 1) + 1;
	n = frag_buddy_find(&s->tree, k);
	if (FRAG_UNLIKELY(!n)) {
		FRAG_TRY(make_room(s, k, req->stream, &released, err));
		grown = true;
		n = frag_buddy_find(&s->tree, k);
	}
	if (FRAG_UNLIKELY(s->tree.pairs.spare_count < FRAG_BUDDY_ORDERS) &&
	    frag_slab_reserve(&s->tree.pairs, FRAG_BUDDY_ORDERS))
		return frag_fail_nomem(err, "policy buddy");
	from = n->order;
	n = frag_buddy_carve(&s->tree, n, k);
	out->addr = n->addr;
	out->granted = 1ull << k;
	out->handle = (uintptr_t)n;
	out->cls = released   ? FRAG_CLASS_RELEASE
		   : grown    ? FRAG_CLASS_GROW
		   : from > k ? FRAG_CLASS_SPLIT
			      : FRAG_CLASS_HIT;
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_buddy_node *n = (void *)(uintptr_t)block->handle;
	uint64_t bytes = 1ull << n->order;

	if (FRAG_LIKELY(n->state == FRAG_STATE_LIVE))
		s->tree.live_bytes -= bytes;
	else
		s->tree.waiting_bytes -= bytes;
	s->tree.free_bytes += bytes;
	n = frag_buddy_merge(&s->tree, n);
	if (n->in || s->params->give_back != GIVE_BACK_FREE || s->params->capacity)
		return 0;
	/* more than this one are idle only after the device has failed to take one */
	return s->tree.idle_count == 1 ? drop_arena(s, frag_buddy_arena_of(n), err)
				       : give_back(s, err);
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;
	struct frag_buddy_node *n = (void *)(uintptr_t)block->handle;

	if (n->state != FRAG_STATE_LIVE)
		return;
	n->state = FRAG_STATE_WAITING;
	s->tree.live_bytes -= 1ull << n->order;
	s->tree.waiting_bytes += 1ull << n->order;
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct self *s = self;

	(void)pool;
	return may_give_back(s) ? give_back(s, err) : 0;
}

static void visit_node(const struct frag_visitor *v, const struct frag_buddy_node *n, bool back)
{
	if (n->state == FRAG_BUDDY_SPLIT) {
		visit_node(v, &n->pair->half[0], back);
		visit_node(v, &n->pair->half[1], back);
		return;
	}
	v->block(v->ctx, n->addr, 1ull << n->order, (enum frag_block_state)n->state,
		 back && !n->in && n->state == FRAG_STATE_FREE ? 1ull << n->order : 0);
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;
	const struct frag_buddy_arena *a = frag_buddy_arenas_first(&s->tree.arenas);

	for (; a; a = frag_buddy_arenas_next(a)) {
		const struct frag_buddy_node *n = &a->root;

		if (v->segment)
			v->segment(v->ctx, n->addr, 1ull << n->order, a->stream);
		if (v->block)
			visit_node(v, n, may_give_back(s));
	}
}

static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;
	uint64_t releasable = may_give_back(s) ? s->tree.idle_bytes : 0;

	*out = (struct frag_usage){
		.allocated_bytes = s->tree.live_bytes,
		.waiting_bytes = s->tree.waiting_bytes,
		.non_releasable_bytes = s->tree.free_bytes - releasable,
		.releasable_bytes = releasable,
		.largest_free_bytes =
			s->tree.free_orders ? 1ull << frag_log2(s->tree.free_orders) : 0,
		.free_bytes = s->tree.free_bytes,
		.segments_count = s->tree.arenas.count,
		.blocks_count = s->tree.blocks_count,
	};
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	const char *bad = frag_buddy_broken(&s->tree);

	return bad ? frag_fail(err, FRAG_ECHECK, "%s", bad) : 0;
}

const struct frag_policy_ops frag_policy_buddy = {
	.name = "buddy",
	.summary = "power-of-two blocks in arenas, merged on free",
	.source = "Knuth, The Art of Computer Programming, volume 1, 2.5",
	.trims = "wholly free arenas, unless give-back=never",
	.needs = FRAG_CAN_MALLOC,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	FRAG_POLICY_LOOKS,
};
