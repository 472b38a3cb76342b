/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever holds what adds up: at every moment that is looked at, for every policy with blocks, the
 * live blocks are the allocated bytes of the metrics, the waiting ones the waiting bytes, and
 * what blocks keep from being given back is non-releasable, each to the byte.
 */
#include "must.h"
#include "test.h"

#include "explain/replay_cursor.h"

#define MOMENTS 7

static size_t moments; /* that were looked at */

static const char *const traces[] = { "gnn.default", "streams.default", "mempool.default",
				      "cudagraph.default" };

static void check_moment(struct frag_cursor *s, const char *policy)
{
	struct frag_heap_view view;
	struct frag_loss loss;
	uint64_t live = 0, requested = 0, waiting = 0, non_releasable_bytes = 0;

	frag_cursor_loss(s, &loss);
	if (frag_heap_view_take(s, &view, &test_err))
		fail_msg("%s: %s", policy, test_err.msg);
	for (size_t i = 0; i < view.count; i++) {
		const struct frag_heap_block *h = &view.list[i];

		*(h->waiting ? &waiting : &live) += h->granted;
		requested += h->waiting ? 0 : h->requested;
		non_releasable_bytes += h->non_releasable_bytes;
	}
	if (live != loss.requested_bytes + loss.rounding_bytes ||
	    requested != loss.requested_bytes || waiting != loss.waiting_bytes ||
	    non_releasable_bytes + view.ownerless != loss.non_releasable_bytes ||
	    view.releasable != loss.releasable_bytes)
		fail_msg("%s at event %llu: %llu live, %llu waiting, %llu not releasable: not as "
			 "in the "
			 "metrics",
			 policy, (ull)s->next, (ull)live, (ull)waiting, (ull)non_releasable_bytes);
	frag_heap_view_release(&view);
	moments++;
}

static void check_policy(const struct frag_trace *t, const struct frag_policy_ops *ops)
{
	const struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_events ev = { .trace = t };
	AUTO_SPEC spec = NULL;
	struct frag_run_options opt = default_run();
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	if (frag_policy_spec_parse(ops->name, &spec, &test_err))
		return; /* one that needs a word of its own: a plan */
	if (!frag_cursor_open(&s, &ev, spec, &card, &opt, &test_err)) {
		for (uint64_t i = 1; i <= MOMENTS; i++) {
			if (frag_cursor_to(&s, t->devs[0].events_count * i / (MOMENTS + 1),
					   &test_err))
				fail_msg("%s: %s", ops->name, test_err.msg);
			check_moment(&s, ops->name);
		}
	}
}

TEST(adds_up)
{
	size_t n;
	const struct frag_policy_ops *const *list = frag_policy_list(&n);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(traces); i++) {
		AUTO_TRACE t = must_read_bundled(traces[i]);

		for (size_t k = 0; k < n; k++) {
			if (list[k]->flags & (FRAG_POLICY_HIDDEN | FRAG_POLICY_STACK) ||
			    !list[k]->visit || !strcmp(list[k]->name, "null"))
				continue;
			check_policy(t, list[k]);
		}
	}
	print_message("%zu moments\n", moments);
	assert_true(moments > 40 * MOMENTS);
}
