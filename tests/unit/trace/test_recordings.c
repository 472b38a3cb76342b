/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of real recordings beside what tests/golden/run.py follows. */
#include "test.h"

#include <unistd.h>

#include <frag/replay.h>

#include "must.h"

/* A MemPool's pools are gone at the end of this one, yet they are found: who served what is
 * known from the program that was recorded (its random choices can be repeated). */
TEST(test_recorded_mempool)
{
	static const char path[] = FRAG_SHARED_TRACES "/torch/mempool.default.pickle.xz";
	AUTO_TRACE t = NULL;
	size_t of_pool[3] = { 0 };

	if (access(path, R_OK))
		skip();
	t = must_read(path);
	assert_int_equal(frag_resolve(t, 0, NULL, UINT64_MAX, NULL), 0);
	assert_int_equal(t->devs[0].pools_count, 3);
	for (size_t i = 0; i < t->devs[0].events_count; i++)
		if (t->devs[0].events[i].kind == FRAG_EV_ALLOC)
			of_pool[t->devs[0].events[i].pool]++;
	assert_int_equal(of_pool[0], 99);
	assert_int_equal(of_pool[1], 46); /* pools without a name are numbered as they were made */
	assert_int_equal(of_pool[2], 55);
}

TEST(test_recorded_kineto)
{
	static const char path[] = FRAG_SHARED_TRACES "/diagnose/kineto.json.xz";
	AUTO_TRACE t = NULL;

	if (access(path, R_OK))
		skip();
	t = must_read(path);
	assert_int_equal(t->devs[0].events_count, 4238);
	assert_int_equal(t->devs[0].uncertain_blocks, 0);
	/* counted from the file by another program: 100 blocks live at its end */
	assert_int_equal(t->devs[0].slots_count, 196);
}
