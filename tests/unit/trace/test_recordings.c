/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings from files, among them real ones. */
#include "test.h"

#include <unistd.h>

#include <frag/replay.h>

#include "must.h"
#include "pickle_text.h"

/* ---- frag_trace_read ------------------------------------------------------------------------ */

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

/* ---- recordings ------------------------------------------------------------------------------ */

struct recording {
	const char *name;
	uint32_t dev;
	uint64_t allocs, events, segment_events, ooms;
};

static void check_recording(const struct recording *r, const struct frag_trace_dev *d)
{
	uint64_t allocs = 0, segments = 0, ooms = 0;

	for (size_t i = 0; i < d->events_count; i++)
		allocs += d->events[i].kind == FRAG_EV_ALLOC &&
			  !(d->events[i].flags & FRAG_EVF_INITIAL);
	for (size_t i = 0; i < d->seen_count; i++) {
		segments += d->seen[i].kind <= FRAG_SEEN_SEGMENT_UNMAP;
		ooms += d->seen[i].kind == FRAG_SEEN_OOM;
	}
	assert_int_equal(allocs, r->allocs);
	assert_int_equal(d->recorded_count, r->events);
	assert_int_equal(segments, r->segment_events);
	assert_int_equal(ooms, r->ooms);
}

/* Counts as the recordings' own list has them. */
TEST(test_recordings)
{
	static const struct recording rows[] = {
		{ "cudagraph.default", 0, 2069, 6514, 335, 0 },
		{ "fsdp2x2.default.rank1", 1, 14972, 44954, 268, 0 },
		{ "gnn.expandable", 0, 9630, 28919, 35, 0 },
		{ "gnn.late", 0, 6400, 19264, 2, 0 },
		{ "leak.frames", 0, 2457, 7579, 214, 0 },
		{ "mempool.default", 0, 200, 668, 68, 0 },
		{ "modelpar.default", 0, 12951, 39135, 288, 0 },
		{ "modelpar.default", 1, 5667, 17121, 126, 0 },
		{ "oomcap.expandable", 0, 34708, 104446, 317, 9 },
		{ "seeddemo.default", 0, 2, 8, 2, 0 },
		{ "streams.default", 0, 8673, 26196, 221, 0 },
		{ "varlen.ring", 0, 1402, 6000, 0, 0 },
		{ "vision.default", 0, 52897, 158835, 151, 0 },
	};
	bool all = true;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		char path[512];
		AUTO_TRACE t = NULL;
		bool found = false;

		snprintf(path, sizeof(path), FRAG_SHARED_TRACES "/torch/%s.pickle.xz",
			 rows[i].name);
		if (access(path, R_OK)) {
			all = false;
			continue;
		}
		t = must_read(path);
		for (uint32_t d = 0; d < t->devs_count; d++)
			if (t->devs[d].ordinal == rows[i].dev) {
				check_recording(&rows[i], &t->devs[d]);
				found = true;
			}
		assert_true(found);
	}
	if (!all)
		skip();
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
