/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls on a rig. */
#include "script.h"

#include "lib/random.h"

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
