/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy on every bundled trace with its invariants checked (and an oracle for overlaps: the
 * adaptor `check`): after every event of the short ones, of the others so often that the whole
 * stays within some twenty seconds; every night three times as often. FRAG_EVERY_EVENT=1 in the
 * environment: after every event of every trace, which takes some ten minutes.
 */
#include <glob.h>

#include "must.h"
#include "test.h"

/* Events from one check to the next. */
static size_t check_every(const struct frag_trace_dev *td)
{
	const size_t checks = test_is_nightly() ? 10000 : 3000;

	if (getenv("FRAG_EVERY_EVENT") || td->events_count <= 3 * checks)
		return 1;
	return td->events_count / checks;
}

static void replay_checked(const struct frag_trace_dev *td, const char *policy)
{
	struct frag_run_options opt = default_run();
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	char text[128];

	snprintf(text, sizeof(text), "check:every=%zu/%s", check_every(td), policy);
	opt.skip_oom = true; /* policies of one block size refuse most: still checked */
	r = must_replay(text, td, NULL, &opt);
	assert_int_equal(r.m.events_count, td->events_count);
}

static void one_policy(void **state)
{
	glob_t g = { 0 };

	assert_int_equal(glob("traces/*.cft", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		AUTO_TRACE t = must_read(g.gl_pathv[i]);

		/* the quick part leaves the long ones out */
		for (uint32_t d = 0; d < t->devs_count; d++)
			if (!test_is_quick() || t->devs[d].events_count <= 10000)
				replay_checked(&t->devs[d], *state);
	}
	globfree(&g);
}

TESTS
{
	size_t count;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);

	test_add(one_policy, "pytorch:expandable_segments:True", "expandable");
	for (size_t i = 0; i < count; i++)
		/* stack-shaped policies reject other traces; adaptors need an inner one; null
		 * holds nothing that could be walked */
		if (!(list[i]->flags & (FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK)) &&
		    strcmp(list[i]->name, "null") != 0)
			test_add(one_policy, list[i]->name, "%s", list[i]->name);
}
