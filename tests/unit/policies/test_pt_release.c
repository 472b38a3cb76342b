/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between the releases of PyTorch where text does not do (tests/policies/pytorch.rules): numbers that
 * run out, and what parsing makes of lists and reservations.
 */
#include <pytorch/pt.h>

#include "test.h"

#include "rig.h"

/* The numbers of segments run out: those that are left close ranks, and order stays. */
TEST(test_renumbered)
{
	static const unsigned order[] = { 0, 1, 2, 4, 5 };
	static struct rig r; /* large: not for the stack */
	frag_addr_t at[6];
	struct pt *a;

	must_open_rig(&r, "pytorch:version:2.13", NULL);
	a = r.policy.self;
	for (unsigned k = 0; k < 6; k++) {
		assert_int_equal(rig_alloc(&r, k, (k < 4 ? 12 : 14) * MIB, 0, 0), 0);
		at[k] = r.slots[k].block.addr;
		if (k != 2)
			continue;
		rig_free(&r, 1);
		a->made = (UINT64_MAX >> a->rank_bits) - 1;
		assert_int_equal(rig_alloc(&r, 1, 12 * MIB, 0, 0), 0);
		rig_free(&r, 1);
	}
	assert_true(a->made < 10);
	for (unsigned k = 6; k-- > 0;)
		if (k != 1)
			rig_free(&r, k);
	for (unsigned k = 0; k < FRAG_ARRAY_LEN(order); k++) {
		assert_int_equal(rig_alloc(&r, k, (k < 3 ? 12 : 14) * MIB, 0, 0), 0);
		assert_int_equal(r.slots[k].block.addr, at[order[k]]);
	}
	rig_check(&r);
	rig_close(&r);
}

/* ---- settings ---- */

/* Up to 2.10 '>' also overwrites the interval that was named last. */
TEST(test_rest_of_list)
{
	uint32_t before[PT_ROUNDUPS], since[PT_ROUNDUPS];

	assert_int_equal(pt_conf_roundup("[256:2,1024:4,>:1]", FRAG_TORCH(2, 10), before, NULL), 0);
	assert_int_equal(pt_conf_roundup("[256:2,1024:4,>:1]", FRAG_TORCH(2, 11), since, NULL), 0);
	for (unsigned i = 0; i < PT_ROUNDUPS; i++) {
		assert_int_equal(before[i], i <= 8 ? 2 : i == 9 ? 0 : 1);
		assert_int_equal(since[i], i <= 8 ? 2 : i == 9 ? 0 : i == 10 ? 4 : 1);
	}
	assert_int_equal(pt_conf_roundup("[>:8]", FRAG_TORCH(2, 1), before, NULL), 0);
	assert_int_equal(before[0], 8);
	assert_int_equal(pt_conf_roundup("[>:8]", FRAG_TORCH(2, 15), since, NULL), 0);
	assert_int_equal(since[0], 0);
	assert_int_equal(since[1], 8);
}

TEST(test_reserve)
{
	static const struct {
		const char *text;
		uint64_t gib;
	} cases[] = { { "", 90 },  { "0.5", 40 },  { "40G", 40 },
		      { "1", 80 }, { "200G", 90 }, { "1e20G", 90 } };
	uint64_t bytes;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		struct pt_conf c = { 0 };

		snprintf(c.reserve_text, sizeof(c.reserve_text), "%s", cases[i].text);
		assert_int_equal(pt_conf_reserve(&c, 80 * GIB, &bytes, NULL), 0);
		assert_true(bytes == cases[i].gib * GIB);
	}
}
