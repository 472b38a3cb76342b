/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every recording in the repository is followed event by event, under the limit
 * that was noted when it was imported.
 */
#include <frag/replay.h>
#include <frag/trace.h>

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void follow(void **state)
{
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	const char *path = *state;
	struct frag_err err = { 0 };
	struct frag_trace *t;
	uint64_t limit;

	if (frag_trace_read(path, NULL, &t, &err))
		fail_msg("%s", err.msg);
	limit = t->settings.limit_known ? t->settings.limit_bytes : UINT64_MAX;
	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_verify_result r;

		if (frag_verify(t, d, &card, limit, NULL, &r, &err))
			fail_msg("%s", err.msg);
		if (!r.identical)
			fail_msg("device %u: %s", r.device_ordinal, r.first_difference);
		assert_true(r.allocs > 0);
		assert_int_equal(r.allocs_same, r.allocs);
		assert_int_equal(r.segments_same, r.segments);
		assert_int_equal(r.ooms_same, r.ooms);
		assert_int_equal(r.finals_same, r.finals);
		frag_verify_result_release(&r);
	}
	frag_trace_destroy(t);
}

int main(void)
{
	struct CMUnitTest tests[128];
	glob_t g = { 0 };
	size_t n;
	int failed;

	if (glob("traces/*.cft", 0, NULL, &g) ||
	    glob("tests/golden/recorded/*.cft", GLOB_APPEND, NULL, &g))
		return 1;
	for (n = 0; n < g.gl_pathc && n < FRAG_ARRAY_LEN(tests); n++)
		tests[n] = (struct CMUnitTest){ .name = g.gl_pathv[n],
						.test_func = follow,
						.initial_state = g.gl_pathv[n] };
	failed = _cmocka_run_group_tests("bundled", tests, n, NULL, NULL);
	globfree(&g);
	return failed;
}
