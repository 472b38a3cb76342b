/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every recording in the repository is followed event by event, under the limit
 * that was noted when it was imported.
 */
#include "recorded.h"

static void follow(void **state)
{
	AUTO_TRACE t = must_read(*state);
	uint64_t limit = t->settings.limit_known ? t->settings.limit_bytes : UINT64_MAX;

	for (uint32_t d = 0; d < t->devs_count; d++) {
		FRAG_AUTO(frag_verify_result_release)
		struct frag_verify_result r = recorded_follow(t, d, limit);

		assert_true(r.allocs > 0);
	}
}

TESTS
{
	if (!test_add_files(follow, "traces/*.cft", "") ||
	    !test_add_files(follow, "tests/golden/recorded/*.cft", ""))
		abort();
}
