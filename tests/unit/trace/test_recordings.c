/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings from files, among them real ones (tests/golden/run.py follows those). */
#include "test.h"

#include <unistd.h>

#include <frag/replay.h>

#include "must.h"
#include "pickle_text.h"

TEST(test_from_files)
{
	FRAG_AUTO(pb_release)
	struct pickle_bytes b = pickle_of(PICKLE_PYTHON, "{ segments [ ] device_traces [ [ @entry "
							 "alloc S0 1 0 T0 ] ] }");
	const char *path = test_make_file("job.7.pickle", b.bytes, b.len);
	struct frag_trace *t = must_read(path);

	assert_string_equal(t->name, "job.7");
	assert_string_equal(t->format, "torch-snapshot");
	frag_trace_destroy(t);
	unlink(path);
	assert_int_equal(frag_trace_read(path, NULL, &t, NULL), FRAG_EINPUT);
}

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
