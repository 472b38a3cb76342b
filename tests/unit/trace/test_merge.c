/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces become one: devices, clocks, texts and stacks. */
#include "test.h"

#include "trace/merge.h"
#include "sample_trace.h"

static struct frag_trace *part(const char *name, uint64_t start_us)
{
	struct frag_trace *t = sample_trace_small();

	frag_host_free(t->name);
	t->name = frag_host_strdup(name);
	t->start_us = start_us;
	/* room on the clock */
	t->devs[0].events[11].time_us = (1u << 30) + 600;
	return t;
}

static void destroy(struct frag_trace **parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		frag_trace_destroy(parts[i]);
}

TEST(test_same_texts)
{
	struct frag_trace *parts[] = { part("job.rank0", 5000), part("job.rank1", 2000) };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *plain = part("job", 5000), *all = NULL;

	SUCCEEDS(frag_trace_merge(parts, 2, &all, &test_err));
	assert_string_equal(all->name, "job");
	assert_string_equal(all->settings.conf, plain->settings.conf);
	assert_int_equal(all->start_us, 2000);
	assert_int_equal(all->devs_count, 4);
	assert_int_equal(all->stacks.count, plain->stacks.count);
	assert_int_equal(all->stacks.frames_count, plain->stacks.frames_count);
	/* 3 and 5 twice: numbered anew */
	for (uint32_t d = 0; d < 4; d++)
		assert_int_equal(all->devs[d].ordinal, d);
	for (size_t i = 0; i < plain->devs[0].events_count; i++) {
		const struct frag_event *a = &all->devs[0].events[i],
					*p = &plain->devs[0].events[i];

		assert_int_equal(a->time_us, p->time_us + 3000);
		assert_int_equal(a->stack, p->stack);
		assert_int_equal(a->slot, p->slot);
		assert_int_equal(all->devs[2].events[i].time_us, p->time_us);
	}
	assert_int_equal(all->devs[0].seen[1].time_us, plain->devs[0].seen[1].time_us + 3000);
	destroy(parts, 2);
}

/* A part without texts of its own keeps its ordinals if none clashes. */
TEST(test_other_texts)
{
	struct frag_trace *parts[] = { sample_trace_random(1, 100, false, false), part("x", 0) };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *all = NULL;
	uint32_t name = parts[1]->devs[0].events[5].slot;
	char *text;

	frag_host_free(parts[0]->name);
	parts[0]->name = NULL;
	/* other texts under the same numbers */
	parts[0]->stacks.frames[0].name = 4;
	text = frag_host_strdup(frag_trace_string(parts[1], name));
	SUCCEEDS(frag_trace_merge(parts, 2, &all, NULL));
	assert_string_equal(all->name, "merged");
	assert_int_equal(all->devs[0].ordinal, 0);
	assert_int_equal(all->devs[1].ordinal, 3);
	assert_string_equal(frag_trace_string(all, all->devs[1].events[5].slot), text);
	assert_int_equal(all->stacks.frames_count, 3);
	for (uint32_t d = 0; d < 3; d++)
		for (size_t i = 0; i < all->devs[d].events_count; i++)
			assert_true(!all->devs[d].events[i].stack ||
				    all->devs[d].events[i].stack < all->stacks.count);
	frag_host_free(text);
	destroy(parts, 2);
}

TEST(test_too_far_apart)
{
	struct frag_trace *parts[] = { part("a", 1), part("b", 1ull << 41) }, *all = NULL;

	assert_int_equal(frag_trace_merge(parts, 2, &all, &test_err), FRAG_EINPUT);
	assert_null(all);
	destroy(parts, 2);
}

TEST(test_memory_short)
{
	int rc = FRAG_ENOMEM;

	for (uint64_t n = 1; rc; n++) {
		struct frag_trace *parts[] = { part("a", 1), part("b", 2) }, *all = NULL;

		frag_host_fail_after(n);
		rc = frag_trace_merge(parts, 2, &all, NULL);
		frag_host_fail_after(0);
		assert_true(!rc || rc == FRAG_ENOMEM);
		assert_true(n < 200);
		destroy(parts, 2);
		frag_trace_destroy(all);
	}
}
