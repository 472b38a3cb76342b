/* SPDX-License-Identifier: Apache-2.0 */
/* One policy on one device with every promise checked on the way. */
#include "rig.h"

#include "test.h"

#include "lib/random.h"

/* Fails the running test unless `cond` holds. */
#define PROMISE(r, cond, ...) \
	do { \
		if (!(cond)) { \
			print_error("%s, step %llu: ", (r)->text, (ull)((r)->step)); \
			fail_msg(__VA_ARGS__); \
		} \
	} while (0)

/* ---- open, close ------------------------------------------------------------------ */

/* The policy's "wait for everything": what is pending completes, oldest first. */
static void sync_all(void *ctx)
{
	struct rig *r = ctx;

	r->syncs++;
	for (;;) {
		unsigned oldest = RIG_SLOTS;
		int rc;

		for (unsigned i = 0; i < RIG_SLOTS; i++)
			if (r->slots[i].state == RIG_PENDING &&
			    (oldest == RIG_SLOTS || r->slots[i].serial < r->slots[oldest].serial))
				oldest = i;
		if (oldest == RIG_SLOTS)
			return;
		rc = rig_free(r, oldest);
		if (rc && !r->sync_rc)
			r->sync_rc = rc;
	}
}

static void on_placed(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr)
{
	struct rig *r = ctx;

	if (r->taken_count < RIG_TAKEN)
		r->taken[r->taken_count++] = (struct rig_taken){ addr, bytes };
}

bool rig_on_card;

static int open_device(struct rig *r, const struct rig_options *o)
{
	uint64_t total = o->total_bytes ? o->total_bytes : RIG_TOTAL;
	uint64_t context = o->total_bytes ? o->context_bytes : RIG_CONTEXT;
	struct frag_cuda_config part = { .total_bytes = total, .context_bytes = context };
	struct frag_sim_config card = { .total_bytes = total,
					.context_bytes = context,
					.place = o->watch.place,
					.place_ctx = o->watch.ctx };
	int rc = o->null_device ? frag_null_open(&r->dev, &r->err)
		 : rig_on_card	? frag_cuda_open_config(&part, &r->dev, &r->err)
				: frag_sim_open(&card, &r->dev, &r->err);

	if (rc)
		return rc;
	/* the addresses of null are made up */
	r->contents = frag_dev_has_content(r->dev) && strcmp(r->ops->name, "null") != 0;
	r->dev->fail_call = o->fail_call;
	r->dev->fail_all_after = o->fail_all_after;
	r->dev->log = o->watch.call;
	r->dev->log_ctx = o->watch.ctx;
	r->dev->placed = on_placed;
	r->dev->placed_ctx = r;
	r->usable_bytes = total - context;
	return 0;
}

int rig_open(struct rig *r, const char *text, const struct rig_options *o)
{
	struct frag_policy_env env = { .device_total_bytes =
					       o->total_bytes ? o->total_bytes : RIG_TOTAL,
				       .streams_count = 4,
				       .seed = o->seed,
				       .sync = sync_all,
				       .sync_ctx = r,
				       .journal = o->watch.journal,
				       .journal_ctx = o->watch.ctx,
				       .source_release = o->source_release };
	int rc;

	memset(r, 0, sizeof(*r));
	r->text = text;
	r->sim = !o->null_device && !rig_on_card;
	r->step_ns = o->still ? 0 : RIG_STEP_NS;
	r->limit_bytes = o->limit_bytes ? o->limit_bytes : UINT64_MAX;
	rc = frag_policy_spec_parse(text, &r->spec, &r->err);
	if (rc)
		return rc;
	r->ops = frag_policy_spec_ops(r->spec);
	rc = open_device(r, o);
	if (!rc) {
		env.dev = r->dev;
		env.limit_bytes = r->limit_bytes;
		rc = frag_policy_create(r->spec, &env, &r->policy, &r->err);
	}
	if (!rc) {
		r->ops = r->policy.ops; /* one from a shared object is called through its checks */
		return 0;
	}
	if (r->dev)
		PROMISE(r, !frag_dev_leaks(r->dev),
			"create failed (%s) and left %llu things behind", r->err.msg,
			(ull)(frag_dev_leaks(r->dev)));
	frag_dev_close(r->dev);
	frag_policy_spec_destroy(r->spec);
	r->dev = NULL;
	r->spec = NULL;
	return rc;
}

void must_open_rig(struct rig *r, const char *text, const struct rig_options *o)
{
	static const struct rig_options none;

	if (rig_open(r, text, o ? o : &none))
		fail_msg("create %s: %s", text, r->err.msg);
}

uint64_t rig_max_bytes(const char *text)
{
	static struct rig probe;
	static char known_text[256];
	static uint64_t known;
	static const struct rig_options none;

	if (known && !strcmp(text, known_text))
		return known;
	snprintf(known_text, sizeof(known_text), "%s", text);
	for (known = 256 * MIB; known; known /= 2) {
		int rc = rig_open(&probe, text, &none);

		PROMISE(&probe, !rc, "create: %s", probe.err.msg);
		rc = rig_alloc(&probe, 0, known, 0, 0);
		rig_close_count_leaks(&probe);
		if (!rc)
			break;
	}
	return known;
}

uint64_t rig_close_count_leaks(struct rig *r)
{
	uint64_t leaks;

	frag_policy_destroy(&r->policy);
	leaks = frag_dev_leaks(r->dev);
	if (!leaks && r->sim && r->dev->reserved_bytes)
		leaks = 1;
	frag_dev_close(r->dev);
	frag_policy_spec_destroy(r->spec);
	r->dev = NULL;
	r->spec = NULL;
	return leaks;
}

void rig_close(struct rig *r)
{
	struct frag_content_fault fault;
	uint64_t leaks;

	PROMISE(r, !frag_dev_content_fault(r->dev, true, &fault, &r->err), "%s", r->err.msg);
	PROMISE(r, !fault.count, "block of slot %u, life %u: %llu pieces of 16 bytes are wrong",
		fault.id, fault.generation, (ull)(fault.count));
	PROMISE(r, !r->sync_rc, "a free inside of a synchronisation failed: %s", r->err.msg);
	leaks = rig_close_count_leaks(r);
	PROMISE(r, !leaks, "%llu things leaked", (ull)(leaks));
}

/* ---- calls ------------------------------------------------------------------------ */

static void tick(struct rig *r)
{
	r->step++;
	r->dev->now_ns += r->step_ns;
}

/* What must hold after a call, whatever its result. */
static void check_call(struct rig *r, int rc)
{
	uint64_t used;

	r->failed |= rc < 0 || r->dev->fail_call;
	PROMISE(r, rc == 0 || rc == FRAG_OOM || (rc < 0 && rc == r->err.code && r->err.msg[0]),
		"result %d without its message", rc);
	if (r->sim)
		PROMISE(r, r->dev->reserved_bytes <= r->usable_bytes,
			"more reserved than there is");
	/* the driver's pool grows in pieces of its own: there the limit is on what is handed out */
	used = r->ops->needs & FRAG_CAN_ASYNC ? r->granted_bytes : r->dev->reserved_bytes;
	PROMISE(r, used <= r->limit_bytes, "%llu bytes are used, the limit is %llu", (ull)(used),
		(ull)(r->limit_bytes));
}

static void check_block(struct rig *r, const struct frag_block *b, uint64_t bytes)
{
	uint64_t low_bit = b->addr & -b->addr, end = b->addr + b->granted;

	PROMISE(r, end > b->addr, "block wraps around the address space");
	for (const struct rig_slot *s = r->slots; s < r->slots + RIG_SLOTS; s++)
		PROMISE(r,
			s->state == RIG_EMPTY || s->block.addr >= end ||
				s->block.addr + s->block.granted <= b->addr,
			"block at %#llx overlaps the live one at %#llx", (ull)(b->addr),
			(ull)(s->block.addr));
	PROMISE(r, b->granted >= bytes, "%llu bytes granted for %llu", (ull)(b->granted),
		(ull)(bytes));
	PROMISE(r, b->addr, "block at address 0");
	PROMISE(r, b->cls < FRAG_CLASS_COUNT && b->cls != FRAG_CLASS_REFUSED, "class %u", b->cls);
	if (!r->alignment || low_bit < r->alignment)
		r->alignment = low_bit;
}

/* Fills, or verifies, the block of a slot; then looks whether any verify found something. */
static void content(struct rig *r, unsigned slot, enum frag_content_op op)
{
	const struct rig_slot *s = &r->slots[slot];
	struct frag_content block = { .addr = s->block.addr,
				      .bytes = s->block.requested,
				      .stream = s->block.stream,
				      .id = slot,
				      .generation = s->serial };
	struct frag_content_fault fault;
	int rc;

	if (!r->contents)
		return;
	rc = frag_dev_content(r->dev, op, &block, &r->err);
	if (!rc)
		rc = frag_dev_content_fault(r->dev, false, &fault, &r->err);
	PROMISE(r, !rc, "contents: %s", r->err.msg);
	PROMISE(r, !fault.count,
		"block of slot %u, life %u: foreign content at offset %llu, of slot %u, life %u",
		fault.id, fault.generation, (ull)(fault.offset), fault.other_id,
		fault.other_generation);
}

int rig_alloc(struct rig *r, unsigned slot, uint64_t bytes, uint32_t stream, uint16_t pool)
{
	struct frag_request req = { .bytes = bytes, .stream = stream, .pool = pool };
	struct rig_slot *s = &r->slots[slot];
	struct frag_block block = { .stream = stream, .requested = bytes };
	int rc;

	assert_true(slot < RIG_SLOTS && s->state == RIG_EMPTY);
	tick(r);
	r->err.code = 0;
	rc = r->ops->alloc(r->policy.self, &req, &block, &r->err);
	check_call(r, rc);
	PROMISE(r, rc < 0 || !r->err.code || r->sync_rc, "'%s' was reported, but the result is %d",
		r->err.msg, rc);
	if (rc)
		return rc;
	block.stream = stream;
	block.requested = bytes;
	check_block(r, &block, bytes);
	*s = (struct rig_slot){ .block = block, .state = RIG_LIVE, .serial = ++r->serial };
	r->count++;
	r->granted_bytes += block.granted;
	content(r, slot, FRAG_CONTENT_FILL);
	return 0;
}

int rig_free(struct rig *r, unsigned slot)
{
	struct rig_slot *s = &r->slots[slot];
	int rc;

	assert_true(slot < RIG_SLOTS && s->state != RIG_EMPTY);
	tick(r);
	content(r, slot, FRAG_CONTENT_VERIFY);
	r->count--;
	r->granted_bytes -= s->block.granted;
	s->state = RIG_EMPTY;
	r->err.code = 0;
	rc = r->ops->free(r->policy.self, &s->block, &r->err);
	PROMISE(r, rc <= 0, "free returned %d", rc);
	check_call(r, rc);
	return rc;
}

void rig_request(struct rig *r, unsigned slot)
{
	struct rig_slot *s = &r->slots[slot];

	assert_true(slot < RIG_SLOTS && s->state == RIG_LIVE);
	tick(r);
	s->state = RIG_PENDING;
	if (r->ops->free_requested)
		r->ops->free_requested(r->policy.self, &s->block);
}

int rig_top(const struct rig *r)
{
	int top = -1;

	for (int i = 0; i < RIG_SLOTS; i++)
		if (r->slots[i].state != RIG_EMPTY &&
		    (top < 0 || r->slots[i].serial > r->slots[top].serial))
			top = i;
	return top;
}

int rig_free_all(struct rig *r)
{
	int first = 0;

	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		int slot = r->ops->flags & FRAG_POLICY_STACK ? rig_top(r) : (int)i, rc;

		if (slot < 0)
			break;
		if (r->slots[slot].state == RIG_EMPTY)
			continue;
		rc = rig_free(r, (unsigned)slot);
		if (rc && !first)
			first = rc;
	}
	return first;
}

int rig_trim(struct rig *r, uint16_t pool)
{
	int rc;

	if (!r->ops->trim)
		return 0;
	tick(r);
	r->err.code = 0;
	rc = r->ops->trim(r->policy.self, pool, &r->err);
	PROMISE(r, rc <= 0, "trim returned %d", rc);
	check_call(r, rc);
	return rc;
}

int rig_synced(struct rig *r)
{
	int rc;

	tick(r);
	r->err.code = 0;
	rc = frag_dev_sync_all(r->dev, &r->err);
	if (!rc)
		sync_all(r);
	if (!rc && r->ops->synced)
		rc = r->ops->synced(r->policy.self, &r->err);
	check_call(r, rc);
	return rc;
}

/* ---- a walk: what a policy says it holds against what is known of it --------------------------- */

void rig_check(struct rig *r)
{
	if (r->ops->check)
		PROMISE(r, !r->ops->check(r->policy.self, &test_err), "check: %s", test_err.msg);
}

struct walk {
	struct rig *r;
	frag_addr_t segment_end, block_end;	/* of the current ones */
	uint64_t left;				/* of the segment, in further blocks */
	const struct rig_slot *ours[RIG_SLOTS]; /* occupied ones in order of address */
	size_t next, found; /* the one that comes next; those met at their very place */
	bool any, holes;    /* segments of mapped pages may have holes between their blocks */
};

FRAG_COMPARE(by_addr, const struct rig_slot *, FRAG_ORDER((*x)->block.addr, (*y)->block.addr))

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct walk *w = ctx;

	PROMISE(w->r, !w->left, "walk: a segment of %lld bytes more than its blocks",
		(long long)(w->left));
	PROMISE(w->r, addr >= w->segment_end, "walk: segments out of order");
	w->any = true;
	w->segment_end = addr + bytes;
	w->block_end = addr;
	w->left = bytes;
}

/* Is this one of ours, with the state we think it has? */
static void match_block(struct walk *w, frag_addr_t addr, uint64_t bytes,
			enum frag_block_state state)
{
	struct rig *r = w->r;
	const struct rig_slot *s;

	while (w->next < r->count && w->ours[w->next]->block.addr < addr)
		w->next++;
	s = w->next < r->count ? w->ours[w->next] : NULL;
	if (!s || s->block.addr != addr || s->block.granted != bytes)
		return;
	w->found++;
	if (r->ops->free_requested)
		PROMISE(r, (state == FRAG_STATE_WAITING) == (s->state == RIG_PENDING),
			"walk: block at %#llx waits here or there only", (ull)(addr));
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct walk *w = ctx;

	PROMISE(w->r, w->any && bytes, "walk: block at %#llx is empty or without a segment",
		(ull)(addr));
	PROMISE(w->r, w->holes ? addr >= w->block_end : addr == w->block_end,
		"walk: block at %#llx, the one before ends at %#llx", (ull)(addr),
		(ull)(w->block_end));
	PROMISE(w->r, releasable <= (state == FRAG_STATE_FREE ? bytes : 0),
		"walk: more releasable than is free");
	w->block_end = addr + bytes;
	w->left -= bytes;
	if (state != FRAG_STATE_FREE)
		match_block(w, addr, bytes, state);
}

/*
 * The O(1) counters, where a policy has them, against a walk. The largest free block may be left to
 * the walk; a segment that could not be given back is free and of no use.
 */
static void check_usage(struct rig *r, const struct frag_usage *walk)
{
	struct frag_usage told = { 0 };

	if (!r->ops->usage)
		return;
	r->ops->usage(r->policy.self, &told);
#define SAME(field) \
	PROMISE(r, told.field == walk->field, "usage: " #field " %llu, walk: %llu", \
		(ull)(told.field), (ull)(walk->field))
	SAME(allocated_bytes);
	SAME(waiting_bytes);
	SAME(free_bytes);
	SAME(releasable_bytes);
	SAME(non_releasable_bytes);
	/* mapped pages: where one segment ends and another begins is seen by the walk only */
	if (!r->dev->stat[FRAG_CALL_RESERVE].count || r->usage_exact)
		SAME(segments_count);
	if (r->usage_exact)
		SAME(blocks_count);
	if (!r->failed && (told.largest_free_bytes || r->usage_exact))
		SAME(largest_free_bytes);
#undef SAME
}

/*
 * Segments against what the device counts. The driver packs and rounds small
 * segments into its pages, so it may count up to two pages more for each; a memory pool
 * and managed memory are out of the policy's sight.
 */
static void check_reserved(struct rig *r, const struct frag_usage *walk)
{
	uint64_t bytes = RIG_HELD(walk), slack = 2 * FRAG_PAGE * (walk->segments_count + 1);

	if (!r->sim || r->ops->needs & FRAG_CAN_MANAGED)
		return;
	PROMISE(r,
		bytes <= r->dev->reserved_bytes &&
			(r->ops->needs & FRAG_CAN_ASYNC || r->dev->reserved_bytes <= bytes + slack),
		"walk: segments of %llu bytes, but %llu are reserved", (ull)(bytes),
		(ull)(r->dev->reserved_bytes));
}

void rig_walk(struct rig *r, struct frag_usage *out)
{
	struct walk w = { .r = r };
	struct frag_visitor v = { .ctx = &w, .segment = on_segment, .block = on_block };
	struct frag_usage sum = { 0 };

	if (out)
		*out = sum;
	/* null holds nothing, whatever it handed out */
	if (!r->ops->visit || !(r->ops->needs | (r->ops->flags & FRAG_POLICY_ADAPTOR)))
		return;
	w.holes = r->ops->needs & FRAG_CAN_VMM || r->ops->flags & FRAG_POLICY_ADAPTOR;
	for (size_t i = 0, n = 0; i < RIG_SLOTS; i++)
		if (r->slots[i].state != RIG_EMPTY)
			w.ours[n++] = &r->slots[i];
	qsort(w.ours, r->count, sizeof(w.ours[0]), by_addr);
	r->ops->visit(r->policy.self, &v);
	on_segment(&w, w.segment_end, 0, 0); /* ends the last one */
	frag_policy_usage_walk(&r->policy, &sum);
	PROMISE(r, sum.allocated_bytes + sum.waiting_bytes == r->granted_bytes,
		"walk: %llu bytes live or waiting, %llu were granted",
		(ull)(sum.allocated_bytes + sum.waiting_bytes), (ull)(r->granted_bytes));
	PROMISE(r, w.holes || w.found == r->count, "walk: %zu of %zu live blocks found", w.found,
		r->count);
	check_usage(r, &sum);
	check_reserved(r, &sum);
	if (out)
		*out = sum;
}

/* ---- random calls --------------------------------------------------------------------------- */

void script_init(struct script *s, uint64_t seed, unsigned slots)
{
	*s = (struct script){ .rng = seed * 0x9e3779b97f4a7c15u + 1,
			      .slots = slots,
			      .max_bytes = 200 * FRAG_MIB };
}

/* A size from 1 B to s->max_bytes: small ones are frequent. */
static uint64_t random_size(struct script *s)
{
	static const uint64_t limits[] = { 4 * FRAG_KIB,  4 * FRAG_KIB,	 4 * FRAG_KIB,
					   64 * FRAG_KIB, FRAG_MIB,	 2 * FRAG_MIB,
					   12 * FRAG_MIB, 24 * FRAG_MIB, 200 * FRAG_MIB };
	uint64_t limit = limits[frag_random(&s->rng) % FRAG_ARRAY_LEN(limits)];
	uint64_t bytes = frag_random(&s->rng) % FRAG_MIN(limit, s->max_bytes);

	/* every other one a round number, as real tensors are */
	if (frag_random(&s->rng) & 1)
		bytes = frag_round_down(bytes, 512);
	return bytes + !bytes;
}

/* A random slot in this state, -1 if there is none. */
static int pick(struct script *s, const struct rig *r, enum rig_state state)
{
	unsigned from = (unsigned)(frag_random(&s->rng) % s->slots);

	for (unsigned i = 0; i < s->slots; i++) {
		unsigned slot = (from + i) % s->slots;

		if (r->slots[slot].state == state)
			return (int)slot;
	}
	return -1;
}

static int do_alloc(struct script *s, struct rig *r)
{
	int slot = pick(s, r, RIG_EMPTY);
	uint32_t stream = (uint32_t)(frag_random(&s->rng) % 10);
	uint16_t pool = (uint16_t)(frag_random(&s->rng) % 24);
	uint64_t bytes = random_size(s);
	int rc;

	if (slot < 0)
		return 0;
	stream = s->plain || stream > 3 ? 0 : stream;
	pool = s->plain || pool > 2 ? 0 : pool;
	rc = rig_alloc(r, (unsigned)slot, bytes, stream, pool);
	return rc == FRAG_OOM ? 0 : rc;
}

static int do_free(struct script *s, struct rig *r, enum rig_state state)
{
	int slot = r->ops->flags & FRAG_POLICY_STACK ? rig_top(r) : pick(s, r, state);

	return slot < 0 ? 0 : rig_free(r, (unsigned)slot);
}

int script_step(struct script *s, struct rig *r)
{
	unsigned dice = (unsigned)(frag_random(&s->rng) % 100);
	bool stack = r->ops->flags & FRAG_POLICY_STACK;
	int slot;

	if (dice < 48)
		return do_alloc(s, r);
	if (dice < 84 || s->plain || stack)
		return do_free(s, r, RIG_LIVE);
	if (dice < 90) {
		slot = pick(s, r, RIG_LIVE);
		if (slot >= 0)
			rig_request(r, (unsigned)slot);
		return 0;
	}
	if (dice < 95)
		return do_free(s, r, RIG_PENDING);
	if (dice < 97)
		return rig_trim(r, 0);
	if (dice < 98)
		return rig_trim(r, (uint16_t)(1 + frag_random(&s->rng) % 2));
	if (dice < 99)
		return rig_synced(r);
	if (r->ops->mark)
		r->ops->mark(r->policy.self, frag_random(&s->rng) & 1);
	return 0;
}

int script_soak(struct script *s, struct rig *r, unsigned steps, bool failures)
{
	for (unsigned i = 0; i < steps; i++) {
		int rc;

		if (failures && i % 16 == 15)
			r->dev->fail_call = r->dev->driver_calls + 1 + frag_random(&s->rng) % 12;
		rc = script_step(s, r);
		if (rc && !failures)
			return rc;
		rig_check(r);
		if (i % 8 == 0)
			rig_walk(r, NULL);
	}
	r->dev->fail_call = 0;
	r->sync_rc = failures ? 0 : r->sync_rc;
	rig_walk(r, NULL);
	return 0;
}
