/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls on a rig. */
#include "script.h"

void script_init(struct script *s, uint64_t seed, unsigned slots)
{
	*s = (struct script){ .rng = seed * 0x9e3779b97f4a7c15u + 1,
			      .slots = slots,
			      .max_bytes = 200 * FRAG_MIB };
}

uint64_t script_random(struct script *s)
{
	uint64_t z = s->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t script_size(struct script *s)
{
	static const uint64_t limits[] = { 4 * FRAG_KIB,  4 * FRAG_KIB,	 4 * FRAG_KIB,
					   64 * FRAG_KIB, FRAG_MIB,	 2 * FRAG_MIB,
					   12 * FRAG_MIB, 24 * FRAG_MIB, 200 * FRAG_MIB };
	uint64_t limit = limits[script_random(s) % FRAG_ARRAY_LEN(limits)];
	uint64_t bytes = script_random(s) % FRAG_MIN(limit, s->max_bytes);

	/* every other one a round number, as real tensors are */
	if (script_random(s) & 1)
		bytes = frag_round_down(bytes, 512);
	return bytes + !bytes;
}

/* A random slot in this state, -1 if there is none. */
static int pick(struct script *s, const struct rig *r, enum rig_state state)
{
	unsigned from = (unsigned)(script_random(s) % s->slots);

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
	uint32_t stream = (uint32_t)(script_random(s) % 10);
	uint16_t pool = (uint16_t)(script_random(s) % 24);
	uint64_t bytes = script_size(s);
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
	unsigned dice = (unsigned)(script_random(s) % 100);
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
		return rig_trim(r, (uint16_t)(1 + script_random(s) % 2));
	if (dice < 99)
		return rig_synced(r);
	if (r->ops->mark)
		r->ops->mark(r->policy.self, script_random(s) & 1);
	return 0;
}

int script_soak(struct script *s, struct rig *r, unsigned steps, bool failures)
{
	for (unsigned i = 0; i < steps; i++) {
		int rc;

		if (failures && i % 16 == 15)
			r->dev->fail_call = r->dev->driver_calls + 1 + script_random(s) % 12;
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
