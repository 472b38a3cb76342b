/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy on every bundled trace with its invariants checked (and an oracle
 * for overlaps: the adaptor `check`): after every event of most traces, of the long ones
 * so often that the whole stays within a minute. FRAG_EVERY_EVENT=1 in the environment:
 * after every event of every trace, which takes some ten minutes.
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

/* Sanitizers take several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define EVERY_EVENT 6000u
#define CHECKS 500u
#else
#define EVERY_EVENT 30000u /* traces up to so many events */
#define CHECKS 10000u	   /* of longer ones */
#endif

/* Events from one check to the next. */
static size_t check_every(const struct frag_trace_dev *td)
{
	if (getenv("FRAG_EVERY_EVENT") || td->events_count <= EVERY_EVENT)
		return 1;
	return FRAG_MAX(td->events_count / CHECKS, 1u);
}

static void replay_checked(const struct frag_trace *t, uint32_t d, const char *name)
{
	const struct frag_trace_dev *td = &t->devs[d];
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_run_options opt;
	struct frag_policy_spec *spec;
	struct frag_result r = { 0 };
	struct frag_err err = { 0 };
	char text[128];
	int rc;

	snprintf(text, sizeof(text), "check:every=%zu/%s", check_every(td), name);
	if (frag_policy_spec_parse(text, &spec, &err))
		fail_msg("%s: %s", text, err.msg);
	frag_run_options_defaults(&opt);
	opt.skip_oom = true; /* policies of one block size refuse most: still checked */
	rc = frag_replay_sim(spec, &card, td, &opt, &r, &err);
	if (rc)
		fail_msg("%s on %s: %s", text, t->name, err.msg);
	assert_int_equal(r.m.events_count, td->events_count);
	frag_result_release(&r);
	frag_policy_spec_destroy(spec);
}

static void one_policy(void **state)
{
	const struct frag_policy_ops *ops = *state;
	struct frag_err err = { 0 };
	glob_t g = { 0 };

	assert_int_equal(glob("traces/*.cft", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct frag_trace *t;

		if (frag_trace_read(g.gl_pathv[i], NULL, &t, &err))
			fail_msg("%s", err.msg);
		/* the quick part leaves the long ones out */
		for (uint32_t d = 0; d < t->devs_count; d++)
			if (!getenv("FRAG_TEST_QUICK") || t->devs[d].events_count <= 10000)
				replay_checked(t, d, ops->name);
		frag_trace_destroy(t);
	}
	globfree(&g);
}

static void expandable(void **state)
{
	static struct frag_policy_ops named;
	const struct frag_policy_ops *p = &named;

	(void)state;
	named.name = "pytorch:expandable_segments:True";
	one_policy((void **)&p);
}

int main(void)
{
	size_t count, n = 0;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);
	struct CMUnitTest tests[128];

	tests[n++] = (struct CMUnitTest)cmocka_unit_test(expandable);
	for (size_t i = 0; i < count && n < FRAG_ARRAY_LEN(tests); i++) {
		/* stack-shaped policies reject other traces; adaptors need an inner one; null
		 * holds nothing that could be walked */
		if (list[i]->flags & (FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK) ||
		    !strcmp(list[i]->name, "null"))
			continue;
		tests[n++] = (struct CMUnitTest){ .name = list[i]->name,
						  .test_func = one_policy,
						  .initial_state = (void *)list[i] };
	}
	return _cmocka_run_group_tests("invariants", tests, n, NULL, NULL);
}
