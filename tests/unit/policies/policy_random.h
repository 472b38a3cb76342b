/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For unit tests of policies: random calls on the rig (tests/support/rig.h), with options and
 * sizes that the conformance suite does not use, `check` after every call, and the counters of
 * `usage` against a walk. With failures every few calls one of the next driver calls fails;
 * nothing may leak. Include after cmocka.h.
 */
#ifndef FRAG_TESTS_POLICY_RANDOM_H
#define FRAG_TESTS_POLICY_RANDOM_H

#include <rig.h>
#include <script.h>

struct random_options {
	const char *text;
	uint64_t seed, max_bytes; /* 0 = as the script has it */
	unsigned steps, slots;	  /* 0 = 4000, 150 */
	bool failures, one_stream;
};

/* exact: nothing has failed, so all that is free can be used. */
static inline void random_usage(struct rig *r, bool exact)
{
	struct frag_usage u, w;

	rig_walk(r, NULL);
	r->ops->usage(r->policy.self, &u);
	frag_policy_usage_walk(&r->policy, &w);
	assert_int_equal(u.allocated_bytes, w.allocated_bytes);
	assert_int_equal(u.waiting_bytes, w.waiting_bytes);
	assert_int_equal(u.free_bytes, w.free_bytes);
	assert_int_equal(u.non_releasable_bytes, w.non_releasable_bytes);
	assert_int_equal(u.releasable_bytes, w.releasable_bytes);
	assert_int_equal(u.segments_count, w.segments_count);
	if (exact && u.largest_free_bytes)
		assert_int_equal(u.largest_free_bytes, w.largest_free_bytes);
}

static inline void random_run(const struct random_options *o)
{
	static struct rig rig;
	struct rig_options ro = { .seed = o->seed };
	struct script s;

	if (rig_open(&rig, o->text, &ro))
		fail_msg("%s: %s", o->text, rig.err.msg);
	script_init(&s, o->seed, o->slots ? o->slots : 150);
	s.max_bytes = o->max_bytes ? o->max_bytes : s.max_bytes;
	s.plain = o->one_stream;
	for (unsigned i = 0; i < (o->steps ? o->steps : 4000); i++) {
		int rc;

		if (o->failures && i % 16 == 15)
			rig.dev->fail_call = rig.dev->driver_calls + 1 + script_random(&s) % 12;
		rc = script_step(&s, &rig);
		if (rc && !o->failures)
			fail_msg("%s, step %u: %d, '%s'", o->text, i, rc, rig.err.msg);
		rig_check(&rig);
		if (i % 8 == 0)
			random_usage(&rig, !o->failures);
	}
	rig.dev->fail_call = 0;
	random_usage(&rig, !o->failures);
	/* half of it goes first, the rest is left for destroy */
	for (int top; rig.count > 20 && (top = rig_top(&rig)) >= 0;)
		assert_int_equal(rig_free(&rig, (unsigned)top), 0);
	rig_check(&rig);
	rig_walk(&rig, NULL);
	assert_int_equal(rig_close_count_leaks(&rig), 0);
}

#endif
