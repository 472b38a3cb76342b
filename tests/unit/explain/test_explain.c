/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explanations add up at every asked moment, for policies of every kind: call sites to the live
 * bytes of the metrics, what they hold to the non-releasable bytes, kinds to the live bytes; what a
 * trim would give back is the releasable bytes. Moments that do not exist: tests/cli explain_bad_at.
 */
#include "must.h"
#include "test.h"

#include "explain/moment/explain.h"

/* Beside every policy that is listed. */
static const char *const settings[] = { "pytorch:expandable_segments:True",
					"pytorch:max_split_size_mb:20",
					"pytorch:garbage_collection_threshold:0.6" };
#define MOMENTS 3 /* the peak, and parts of the events */

static size_t policies(const char **names, size_t cap)
{
	const struct frag_policy_ops *const *list;
	size_t n = 0, count;

	list = frag_policy_list(&count);
	for (size_t i = 0; i < count && n < cap; i++) {
		struct frag_policy_spec *spec;

		if (list[i]->flags & FRAG_POLICY_HIDDEN ||
		    frag_policy_spec_parse(list[i]->name, &spec, NULL))
			continue; /* not listed, or nothing without an option that says what */
		frag_policy_spec_destroy(spec);
		names[n++] = list[i]->name;
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(settings) && n < cap; i++)
		names[n++] = settings[i];
	return n;
}

static void check(const struct frag_explained *x, const char *what)
{
	uint64_t live = 0, requested = 0, waiting = 0, held = 0, kinds = 0;

	for (size_t i = 0; i < x->rows_count; i++) {
		live += x->rows[i].allocated_bytes;
		requested += x->rows[i].requested_bytes;
		waiting += x->rows[i].waiting_bytes;
		held += x->rows[i].non_releasable_bytes;
	}
	for (size_t k = 0; k < x->m.kinds.count; k++)
		kinds += x->kind_rows[k].live_bytes;
	if (live != x->loss.requested_bytes + x->loss.rounding_bytes || kinds != live ||
	    requested != x->loss.requested_bytes || waiting != x->loss.waiting_bytes ||
	    held + x->view.ownerless != x->loss.non_releasable_bytes ||
	    x->view.releasable != x->loss.releasable_bytes)
		fail_msg("%s does not add up", what);
}

static int explain(const struct frag_trace *t, const char *policy, const char *at,
		   enum frag_site_by by, struct frag_answer *texts, struct frag_explained *x,
		   struct frag_err *err)
{
	struct frag_explain_options opt = { .by = by, .top = 3 };
	struct frag_case in = { .events = { .trace = t },
				.target = { .card = { .context_bytes = UINT64_MAX } },
				.threads = 1 };
	struct frag_policy_spec *spec = must_parse_policy(policy);
	int rc;

	assert_int_equal(frag_at_parse(at, &opt.at, err), 0);
	in.spec = spec;
	rc = frag_explain(&in, &opt, texts, x, err);
	frag_policy_spec_destroy(spec);
	return rc;
}

TEST(adds_up)
{
	static const char *const traces[] = { "leak.frames", "streams.default", "gnn.default",
					      "mempool.default", "cudagraph.default" };
	const char *names[64];
	size_t count = policies(names, FRAG_ARRAY_LEN(names)), checked = 0;
	size_t step = test_is_quick() ? MOMENTS : 1; /* a sanitizer: one each */
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	struct frag_explained x;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(traces); i++) {
		AUTO_TRACE t = must_read_bundled(traces[i]);

		for (size_t p = 0; p < count; p++) {
			for (size_t m = (p + i) % step; m < MOMENTS; m += step) {
				char at[40] = "peak";
				int rc;

				if (m)
					snprintf(at, sizeof(at), "event:%zu",
						 t->devs[0].events_count * m / MOMENTS);
				rc = explain(t, names[p], at, (p + m) % (FRAG_BY_STACK + 1), &texts,
					     &x, &test_err);
				if (rc && strstr(test_err.msg, "needs another policy"))
					continue; /* ggml-vmm is a stack */
				if (rc)
					fail_msg("%s %s %s: %s", traces[i], names[p], at,
						 test_err.msg);
				check(&x, names[p]);
				checked++;
				frag_explained_release(&x);
			}
		}
	}
	assert_true(checked > 5 * MOMENTS * 25 / step);
}
