/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of segments run out: those that are left close ranks, and order stays. */
#include <pytorch/pt.h>

#include "test.h"

#include "rig.h"

static struct rig rig; /* large: not for the stack */

TEST(test_renumbered)
{
	static const unsigned order[] = { 0, 1, 2, 4, 5 };
	frag_addr_t at[6];
	struct pt *a;

	must_open_rig(&rig, "pytorch:version:2.13", NULL);
	a = rig.policy.self;
	for (unsigned k = 0; k < 6; k++) {
		assert_int_equal(rig_alloc(&rig, k, (k < 4 ? 12 : 14) * MIB, 0, 0), 0);
		at[k] = rig.slots[k].block.addr;
		if (k != 2)
			continue;
		rig_free(&rig, 1);
		a->made = (UINT64_MAX >> a->rank_bits) - 1;
		assert_int_equal(rig_alloc(&rig, 1, 12 * MIB, 0, 0), 0);
		rig_free(&rig, 1);
	}
	assert_true(a->made < 10);
	for (unsigned k = 6; k-- > 0;)
		if (k != 1)
			rig_free(&rig, k);
	for (unsigned k = 0; k < FRAG_ARRAY_LEN(order); k++) {
		assert_int_equal(rig_alloc(&rig, k, (k < 3 ? 12 : 14) * MIB, 0, 0), 0);
		assert_int_equal(rig.slots[k].block.addr, at[order[k]]);
	}
	rig_check(&rig);
	rig_close(&rig);
}
