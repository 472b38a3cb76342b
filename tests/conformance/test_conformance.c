/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every policy promises, on the simulated card and on the null device.
 * The array of tests is filled from the registry; the rig (tests/support/rig.h)
 * checks each call. CONFORMANCE=name runs only the policies that begin so.
 */
#include "test.h"

#include "rig.h"
#include "variants.h"

static struct rig rig_a, rig_b; /* large: not for the stack */

static struct rig *open_rig(struct rig *r, void **state, const struct rig_options *o)
{
	must_open_rig(r, *state, o);
	return r;
}

static void must(struct rig *r, int rc)
{
	if (rc)
		fail_msg("%s, step %llu: result %d, '%s'", r->text, (ull)r->step, rc, r->err.msg);
}

/* Allocates; what this policy refuses by its own rule, however empty it is, is made smaller. */
static void get(struct rig *r, unsigned slot, uint64_t bytes, uint32_t stream, uint16_t pool)
{
	must(r, rig_alloc(r, slot, FRAG_MIN(bytes, rig_max_bytes(r->text)), stream, pool));
}

static void check_all(struct rig *r)
{
	rig_check(r);
	rig_walk(r, NULL);
}

static bool is_stack(const struct rig *r)
{
	return r->ops->flags & FRAG_POLICY_STACK;
}

/* From one byte up, around every border there is; each alone, then all at once. */
static void sizes(void **state)
{
	static const uint64_t around[] = { 1,	     2,	       64,	 128,	   256,
					   512,	     1024,     4096,	 65536,	   MIB,
					   2 * MIB,  4 * MIB,  10 * MIB, 20 * MIB, 32 * MIB,
					   64 * MIB, 128 * MIB };
	FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, NULL);
	unsigned n = 0;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(around); i++) {
		for (int d = -1; d <= 1; d++) {
			uint64_t bytes = around[i] + (uint64_t)(int64_t)d;

			if (!bytes)
				continue;
			get(r, 0, bytes, 0, 0);
			must(r, rig_free(r, 0));
			rig_check(r);
		}
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(around); i++)
		get(r, n++, around[i], 0, 0);
	check_all(r);
	must(r, rig_free_all(r));
	check_all(r);
	assert_true(r->alignment >= 16);
	print_message("%s: blocks are aligned to %llu bytes\n", r->text,
		      (ull)FRAG_MIN(r->alignment, FRAG_PAGE));
}

/* Beyond the card: a result, not an error, and nothing has happened. */
static void huge(void **state)
{
	static const uint64_t bytes[] = { RIG_TOTAL - RIG_CONTEXT + 1,
					  RIG_TOTAL,
					  RIG_TOTAL + 1,
					  1ull << 40,
					  (1ull << 47) + 1,
					  (1ull << 48) - 1 };
	struct rig *r = open_rig(&rig_a, state, NULL);

	/* managed memory may be larger than the card, null does not look at it */
	if (r->ops->needs & FRAG_CAN_MANAGED || !r->ops->needs) {
		rig_close(r);
		skip();
	}
	get(r, 0, 1000, 0, 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(bytes); i++) {
		if (rig_alloc(r, 1, bytes[i], 0, 0) != FRAG_OOM)
			fail_msg("%s: %llu bytes were not refused: %s", r->text, (ull)bytes[i],
				 r->err.msg);
		check_all(r);
	}
	get(r, 1, MIB, 1, 0);
	must(r, rig_free_all(r));
	rig_close(r);
}

/* Allocates blocks of this size until the card is full (or 1000). Returns how many. */
static unsigned fill(struct rig *r, uint64_t bytes)
{
	bytes = FRAG_MIN(bytes, rig_max_bytes(r->text));
	for (unsigned n = 0;; n++) {
		int rc = n < 1000 ? rig_alloc(r, n, bytes, 0, 0) : FRAG_OOM;

		if (rc != 0 && rc != FRAG_OOM)
			must(r, rc);
		if (rc)
			return n;
	}
}

/* Full, empty, full again: as many as before, whatever size came between. */
static void oom_and_recovery(void **state)
{
	static const uint64_t bytes[] = { 64 * MIB, 150 * MIB, 7 * MIB };
	struct rig *r = open_rig(&rig_a, state, NULL);
	unsigned first = 0, again;

	if (rig_on_card && r->ops->needs & FRAG_CAN_MANAGED) {
		/* has no end of its own; a real card refuses more as an error */
		rig_close(r);
		skip();
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(bytes); i++) {
		unsigned n = fill(r, bytes[i]);

		check_all(r);
		assert_true(n > 0);
		first = i ? first : n;
		must(r, rig_free_all(r));
		check_all(r);
		must(r, rig_trim(r, 0));
		check_all(r);
	}
	again = fill(r, bytes[0]);
	if (again < first / 2 || !again)
		fail_msg("%s: %u blocks fitted at first, %u after everything was freed", r->text,
			 first, again);
	must(r, rig_free_all(r));
	rig_close(r);
}

#define ORDER_BLOCKS 5u

/* The k-th of all 120 orders. */
static void order_of(unsigned *p, unsigned k)
{
	for (unsigned i = 0; i < ORDER_BLOCKS; i++)
		p[i] = i;
	for (unsigned i = 0; i < ORDER_BLOCKS; k /= ORDER_BLOCKS - i, i++) {
		unsigned other = i + k % (ORDER_BLOCKS - i), was = p[i];

		p[i] = p[other];
		p[other] = was;
	}
}

/* Five blocks, freed in all 120 orders (stack policies: in theirs). */
static void free_orders(void **state)
{
	static const uint64_t bytes[][ORDER_BLOCKS] = {
		{ 512, 512, 512, 512, 512 },
		{ 100, 5000, 300000, 70, 2000 },
		{ 3 * MIB, 512, 9 * MIB, 40 * MIB, MIB },
	};
	FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, NULL);
	unsigned orders = is_stack(r) ? 1 : 120;

	for (unsigned n = 0; n < FRAG_ARRAY_LEN(bytes) * orders; n++) {
		unsigned order[ORDER_BLOCKS] = { 4, 3, 2, 1, 0 };

		if (!is_stack(r))
			order_of(order, n % orders);
		for (unsigned i = 0; i < ORDER_BLOCKS; i++)
			get(r, i, bytes[n / orders][i], 0, 0);
		for (unsigned i = 0; i < ORDER_BLOCKS; i++) {
			must(r, rig_free(r, order[i]));
			check_all(r);
		}
	}
}

/* Four streams side by side; blocks that another stream still uses wait. */
static void streams(void **state)
{
	struct rig *r = open_rig(&rig_a, state, NULL);

	if (is_stack(r)) {
		rig_close(r);
		skip();
	}
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < 32; i++)
			get(r, i, 1 + (i * 37u + round) * 7919u % (3u << 20), i % 4, 0);
		check_all(r);
		for (unsigned i = 0; i < 32; i += 3)
			rig_request(r, i);
		check_all(r);
		/* new blocks must keep clear of those that wait: the rig sees to that */
		for (unsigned i = 32; i < 64; i++)
			get(r, i, 1 + i * 104729u % (3u << 20), i % 4, 0);
		check_all(r);
		if (round & 1)
			must(r, rig_synced(r));
		check_all(r);
		must(r, rig_free_all(r));
		check_all(r);
	}
	rig_close(r);
}

/* Blocks of private pools, trims of one pool and of all. */
static void pools(void **state)
{
	FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, NULL);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 24; i++)
			get(r, i, (i + 1) * 300000u, 0, (uint16_t)(i % 3));
		check_all(r);
		must(r, rig_trim(r, 1));
		check_all(r);
		if (!is_stack(r))
			for (unsigned i = 1; i < 24; i += 3)
				must(r, rig_free(r, i));
		must(r, rig_trim(r, 1));
		check_all(r);
		must(r, rig_free_all(r));
		must(r, rig_trim(r, 0));
		must(r, rig_trim(r, 2));
		check_all(r);
	}
}

static void random_calls(void **state, bool null_device, unsigned steps)
{
	struct rig_options o = { .null_device = null_device, .seed = 7 };
	FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, &o);
	struct script s;

	script_init(&s, 11, 200);
	must(r, script_soak(&s, r, steps, false));
	must(r, rig_free_all(r));
	check_all(r);
}

static void random_on_sim(void **state)
{
	random_calls(state, false, (unsigned)test_rounds(3000));
}

static void random_on_null(void **state)
{
	random_calls(state, true, 1000);
}

/* What an outsider sees of a run: folded results and addresses. */
static uint64_t observe(uint64_t hash, const struct rig *r)
{
	int top = rig_top(r);
	uint64_t values[4] = { r->count, r->granted_bytes, 0, r->dev->reserved_bytes };

	if (top >= 0)
		values[2] = r->slots[top].block.addr ^ (uint64_t)r->slots[top].block.cls << 56;
	for (size_t i = 0; i < 4; i++)
		hash = (hash ^ values[i]) * 0x100000001b3u;
	return hash;
}

#define TWIN_STEPS 800

static void record(struct rig *r, struct script *s, uint64_t *seen, unsigned step)
{
	must(r, script_step(s, r));
	seen[step] = observe(step ? seen[step - 1] : 0, r);
}

/* Alone, alone once more, and beside another instance: the same. */
static void twins(void **state)
{
	static uint64_t alone[TWIN_STEPS], again[TWIN_STEPS], beside[TWIN_STEPS], other[TWIN_STEPS];
	struct rig_options o = { .seed = 3 }, p = { .seed = 4 };
	struct script s, t;
	uint64_t *runs[] = { alone, again };

	if (rig_on_card)
		skip(); /* a real driver gives other addresses every time */
	for (unsigned run = 0; run < 2; run++) {
		open_rig(&rig_a, state, &o);
		script_init(&s, 5, 150);
		for (unsigned i = 0; i < TWIN_STEPS; i++)
			record(&rig_a, &s, runs[run], i);
		rig_close(&rig_a);
	}
	open_rig(&rig_a, state, &o);
	open_rig(&rig_b, state, &p);
	script_init(&s, 5, 150);
	script_init(&t, 6, 150);
	for (unsigned i = 0; i < TWIN_STEPS; i++) {
		record(&rig_a, &s, beside, i);
		record(&rig_b, &t, other, i);
	}
	rig_close(&rig_b);
	rig_close(&rig_a);
	for (unsigned i = 0; i < TWIN_STEPS; i++) {
		if (alone[i] != again[i])
			fail_msg("two runs with the same seed differ from step %u on", i);
		if (alone[i] != beside[i])
			fail_msg("beside another instance it differs from step %u on", i);
	}
}

/* What the walk calls releasable is what a trim gives back. */
static void trim(void **state)
{
	FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, NULL);
	struct frag_usage before, after;
	struct script s;

	script_init(&s, 17, 200);
	s.plain = true;
	for (unsigned i = 0; i < 400; i++) {
		must(r, script_step(&s, r));
		if (i % 50 != 49 && i != 399)
			continue;
		if (i == 399)
			must(r, rig_free_all(r));
		/* pages wait for the work queued before their free: let it end */
		must(r, rig_synced(r));
		r->dev->now_ns += 1000000000u;
		rig_walk(r, &before);
		must(r, rig_trim(r, 0));
		check_all(r);
		rig_walk(r, &after);
		if (!r->ops->trim)
			continue;
		if (after.releasable_bytes)
			fail_msg("%s: %llu bytes are still releasable after a trim", r->text,
				 (ull)after.releasable_bytes);
		if (RIG_HELD(&before) - RIG_HELD(&after) != before.releasable_bytes)
			fail_msg("%s: %llu bytes were releasable, a trim gave back %llu", r->text,
				 (ull)before.releasable_bytes,
				 (ull)(RIG_HELD(&before) - RIG_HELD(&after)));
	}
}

/* Destroy gives everything back, whatever is still live or waits. */
static void live_at_destroy(void **state)
{
	for (unsigned steps = 1; steps <= 400; steps = steps * 3 + 1) {
		FRAG_AUTO(rig_close_at) struct rig *r = open_rig(&rig_a, state, NULL);
		struct script s;

		script_init(&s, steps, 200);
		for (unsigned i = 0; i < steps; i++)
			must(r, script_step(&s, r));
	}
	/* and of an instance that never did anything */
	rig_close(open_rig(&rig_a, state, NULL));
}

/* The limit of the process is kept at every moment (the rig looks); full is FRAG_OOM. */
static void limit(void **state)
{
	struct rig_options o = { .limit_bytes = GIB };
	int rc = rig_open(&rig_a, *state, &o);
	FRAG_AUTO(rig_close_at) struct rig *r = &rig_a;
	unsigned n;

	/* a policy that takes all it wants at the start may not fit */
	if (rc) {
		assert_true(rc == FRAG_OOM || r->err.msg[0]);
		skip();
	}
	n = fill(r, 40 * MIB);
	check_all(r);
	if (r->ops->needs && rig_max_bytes(r->text) >= 40 * MIB)
		assert_true(n <= GIB / (40 * MIB));
	must(r, rig_free_all(r));
	check_all(r);
}

TESTS
{
	conformance_add("sizes", sizes, false);
	conformance_add("huge sizes", huge, false);
	conformance_add("oom and recovery", oom_and_recovery, true);
	conformance_add("free orders", free_orders, true);
	conformance_add("streams", streams, true);
	conformance_add("private pools", pools, false);
	conformance_add("random calls on sim", random_on_sim, true);
	conformance_add("random calls on null", random_on_null, false);
	conformance_add("twins", twins, true);
	conformance_add("trim", trim, true);
	conformance_add("live blocks at destroy", live_at_destroy, true);
	conformance_add("limit", limit, false);
}
