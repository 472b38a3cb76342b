/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four-step story of a caching allocator, on the recording of a real one:
 * allocate 400 MiB; delete: reserved stays, allocated falls; allocate 200 MiB: the
 * cached memory is used again; empty_cache: reserved falls to nothing once the
 * block is gone.
 */
#include <frag/replay.h>
#include <frag/trace.h>

#include "test.h"

#include "must.h"

#define MIB_400 (400 * MIB)

struct moment {
	uint64_t allocated, reserved;
};

TEST(seeddemo)
{
	struct frag_run_options opt = default_run();
	AUTO_SPEC spec = must_parse_policy("pytorch");
	struct moment seen[16];
	AUTO_TRACE t = must_read("traces/seeddemo.default.cft");
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	AUTO_DEVICE dev = must_open_sim(NULL);
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	size_t n = 0, frees = 0, trims = 0;

	assert_int_equal(frag_run_create(spec, dev, &t->devs[0], &opt, &run, &test_err), 0);
	for (size_t i = 0; i < t->devs[0].events_count; i++) {
		const struct frag_event *e = &t->devs[0].events[i];

		assert_int_equal(frag_run_feed(run, e, 1, &test_err), 0);
		if (e->kind == FRAG_EV_ALLOC)
			seen[n++] = (struct moment){ e->bytes, dev->reserved_bytes };
		else if (e->kind == FRAG_EV_FREE)
			frees++, seen[n++] = (struct moment){ 0, dev->reserved_bytes };
		else if (e->kind == FRAG_EV_TRIM)
			trims++, seen[n++] = (struct moment){ 0, dev->reserved_bytes };
	}
	assert_int_equal(n, 5);
	assert_int_equal(seen[0].allocated, MIB_400); /* allocate */
	assert_int_equal(seen[0].reserved, MIB_400);
	assert_int_equal(seen[1].reserved, MIB_400);	  /* delete: the memory stays cached */
	assert_int_equal(seen[2].allocated, MIB_400 / 2); /* allocate half: no new memory */
	assert_int_equal(seen[2].reserved, MIB_400);
	assert_int_equal(seen[3].reserved, MIB_400); /* delete that */
	assert_int_equal(seen[4].reserved, 0);	     /* empty_cache */
	assert_int_equal(frees, 2);
	assert_int_equal(trims, 1);
	assert_int_equal(frag_run_finish(run, &r, &test_err), 0);
	assert_int_equal(r.m.peak_reserved_bytes, MIB_400);
	assert_int_equal(r.m.final_reserved_bytes, 0);
}

/* A difference must be found and named: other settings than the recorded ones. */
TEST(difference)
{
	struct frag_verify_result r;
	AUTO_TRACE t = must_read("traces/gnn.default.cft");

	assert_int_equal(
		frag_verify(t, 0, NULL, UINT64_MAX, "max_split_size_mb:128", &r, &test_err), 0);
	assert_false(r.identical);
	assert_true(r.allocs_same < r.allocs);
	assert_non_null(strstr(r.first_difference, "event "));
	frag_verify_result_release(&r);
	/* one address that was recorded otherwise */
	t->devs[0].addrs[1234] += 512;
	for (size_t i = 1234; t->devs[0].events[i].kind != FRAG_EV_ALLOC; i++)
		t->devs[0].addrs[i + 1] += t->devs[0].events[i + 1].kind == FRAG_EV_ALLOC ? 512 : 0;
	assert_int_equal(frag_verify(t, 0, NULL, UINT64_MAX, NULL, &r, &test_err), 0);
	assert_false(r.identical);
	frag_verify_result_release(&r);
}
