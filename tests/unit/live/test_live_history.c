/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy behind PyTorch's hooks tells of itself: history, counters, a recording. */
#include "must.h"
#include "test.h"

#include <string.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <frag/trace.h>

#include "live_rig.h"

static uint32_t asked;

static uint32_t where(void)
{
	/* no lock is held: the caller may come back in */
	frag_live_history_read(0, NULL, 0);
	return ++asked;
}

TEST(test_history)
{
	static const uint32_t all[] = { FRAG_LIVE_DID_SEGMENT_ALLOC, FRAG_LIVE_DID_ALLOC,
					FRAG_LIVE_DID_REQUEST,	     FRAG_LIVE_DID_COMPLETE,
					FRAG_LIVE_DID_OOM,	     FRAG_LIVE_DID_SEGMENT_FREE };
	struct frag_live_event e[8];
	frag_addr_t addr;
	void *p;

	live_start("pytorch", GIB, 0);
	frag_live_history(6, UINT32_MAX, 1);
	frag_live_on_context(where, NULL);
	asked = 0;
	p = frag_live_alloc(5000, 0, NULL);
	frag_live_free(p, 5000, 0, NULL);
	assert_int_equal(live_take(4 * GIB, 0, &addr), FRAG_OOM);
	frag_live_reset();
	/* the cache was given back for the request: before it was refused */
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	for (unsigned i = 0, seen = 0; i < 6; i++, seen = 0) {
		for (unsigned k = 0; k < 6; k++)
			seen += e[k].action == all[i];
		assert_int_equal(seen, 1);
	}
	assert_int_equal(e[0].context, 1);
	assert_int_equal(e[3].context, 1); /* a free without a context has its request's */
	assert_int_equal(e[1].addr, (uintptr_t)p);
	assert_true(e[0].time_us && e[5].time_us >= e[0].time_us);
	/* the oldest go */
	p = frag_live_alloc(700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	assert_int_equal(e[5].action, FRAG_LIVE_DID_ALLOC);
	assert_int_equal(e[5].bytes, 700);
	assert_int_equal(e[0].action, FRAG_LIVE_DID_REQUEST);
	frag_live_history(0, 0, 0);
	frag_live_free(p, 700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	frag_live_history(2, 1u << FRAG_LIVE_DID_ALLOC, 0); /* too small for the entries */
	assert_int_equal(frag_live_history_read(0, e, 8), 0);
	frag_live_free(frag_live_alloc(700, 0, NULL), 700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 1);
	frag_live_history(0, UINT32_MAX, 0);
	frag_live_on_context(NULL, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 0);
	assert_int_equal(frag_live_history_read(9, e, 8), 0);
	live_close();
}

TEST(test_what_python_asks)
{
	struct frag_live_call call[100];
	struct frag_live_counter counter[200];
	int64_t active = 0, calls = 0;
	void *p;

	live_start("pytorch", GIB, 0);
	p = frag_live_alloc(5000, 0, NULL);
	for (size_t i = frag_live_counters(0, counter, 200); i-- > 0;)
		active += strcmp(counter[i].name, "active.all.current") ? 0 : counter[i].value;
	assert_int_equal(active, 1);
	for (size_t i = frag_live_calls(0, call, 100); i-- > 0;)
		calls += strcmp(call[i].name, "cudaMalloc") ? 0 : (int64_t)call[i].count;
	assert_int_equal(calls, 1);
	assert_string_equal(frag_live_policy(), "pytorch");
	frag_live_free(p, 5000, 0, NULL);
	live_close();
}

/*
 * A recording can be read at any time; only a sole writer truncates it. The
 * last test: it goes on recording.
 */
TEST(test_recording)
{
	const char *path = test_make_file("live", "keep", 4);
	char text[512];
	struct frag_live_options o = { .size = sizeof(o), .policy = "vmm", .record = path };
	struct frag_trace *trace = NULL;
	int fd = open(path, O_RDWR);

	assert_int_equal(flock(fd, LOCK_EX), 0);
	fake_reset(GIB);
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EOUTPUT);
	assert_non_null(strstr(text, "another process records into"));
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	close(fd);

	assert_int_equal(frag_live_start(&o, text, sizeof(text)), 0);
	frag_live_flush();
	FAILS(FRAG_EINPUT, "contains no request yet",
	      frag_trace_read(path, NULL, &trace, &test_err));
	for (unsigned round = 1; round < 4; round++) {
		uint64_t a = 0;

		assert_int_equal(live_take(MIB * round, 0, &a), 0);
		frag_live_flush();
		trace = must_read(path);
		assert_int_equal(trace->devs[0].events_count, 2 * round - 1);
		frag_trace_destroy(trace);
		frag_live_free((void *)(uintptr_t)a, 0, 0, NULL);
	}
	live_close();
}
