/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole replays on card 0: every policy that can run on its own, a short trace with several
 * streams and one with a private pool, contents verified, work on the streams; the device
 * calls of those that do not look at the time are those on the simulated card; verify, and what it
 * says of differences. Skipped without a card.
 */
#include "must.h"
#include "test.h"

static struct frag_err err;

static void must(int rc)
{
	if (rc)
		fail_msg("result %d: %s", rc, err.msg);
}

static bool wanted(const struct frag_policy_ops *ops)
{
	return !(ops->flags & (FRAG_POLICY_HIDDEN | FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK)) &&
	       strcmp(ops->name, "null") != 0;
}

static struct frag_result replay(const struct frag_trace_dev *td, const char *policy,
				 struct frag_device *dev, bool contents)
{
	struct frag_run_options opt;
	struct frag_policy_spec *spec = must_parse_policy(policy);
	struct frag_result result = { 0 };
	struct frag_run *run;
	int rc;

	frag_run_options_defaults(&opt);
	if (contents) {
		opt.fill = FRAG_FILL_VERIFY;
		opt.work_ns = 10000;
	}
	must(frag_run_create(spec, dev, td, &opt, &run, &err));
	rc = frag_run_feed(run, td->events, td->events_count, &err);
	if (!rc)
		rc = frag_run_finish(run, &result, &err);
	if (rc)
		fail_msg("%s: %s", policy, err.msg);
	frag_run_destroy(run);
	frag_policy_spec_destroy(spec);
	assert_true(dev->reserved_bytes == 0);
	frag_dev_close(dev);
	return result;
}

static void verified(void **state)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	size_t count;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);

	if (!frag_cuda_count())
		skip();
	trace = must_read(*state);
	for (size_t i = 0; i < count; i++) {
		struct frag_device *dev;
		FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

		if (!wanted(list[i]))
			continue;
		must(frag_cuda_open(0, &dev, &err));
		r = replay(&trace->devs[0], list[i]->name, dev, true);
		print_message("%s: %llu allocs, peak reserved %llu\n", list[i]->name,
			      (unsigned long long)r.m.allocs_count,
			      (unsigned long long)r.m.peak_reserved_bytes);
	}
}

TESTS
{
	test_add(verified, "traces/seeddemo.default.cft", "verified seeddemo");
	test_add(verified, "traces/mempool.default.cft", "verified mempool");
	test_add(verified, "traces/cudagraph.default.cft", "verified cudagraph");
}

/* A simulated card as large as the real one. */
static struct frag_sim_config card_like_this(void)
{
	struct frag_device_info info;
	struct frag_device *dev;

	must(frag_cuda_open(0, &dev, &err));
	frag_dev_info(dev, &info);
	frag_dev_close(dev);
	return (struct frag_sim_config){ .total_bytes = info.total_bytes,
					 .context_bytes = info.context_bytes };
}

/* Kind and size of every device call, in order. */
static void hash_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	uint64_t *h = ctx;

	*h = (*h ^ ((uint64_t)call << 56 | (uint64_t)(result != 0) << 55) ^ bytes) * 0x100000001b3u;
}

TEST(calls_as_on_sim)
{
	static const char *const policies[] = { "pytorch", "pytorch:expandable_segments:True",
						"buddy", "native", "rmm-pool" };
	struct frag_sim_config card;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;

	if (!frag_cuda_count())
		skip();
	card = card_like_this();
	trace = must_read("traces/leak.frames.cft");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(policies); i++) {
		uint64_t hash[2] = { 0 }, peak[2];

		for (unsigned k = 0; k < 2; k++) {
			struct frag_device *dev;
			FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

			must(k ? frag_cuda_open(0, &dev, &err) : frag_sim_open(&card, &dev, &err));
			dev->log = hash_call;
			dev->log_ctx = &hash[k];
			r = replay(&trace->devs[0], policies[i], dev, false);
			peak[k] = r.m.peak_reserved_bytes;
		}
		assert_true(hash[0] == hash[1]);
		assert_true(peak[0] == peak[1]);
	}
}

/* The recorded settings: what differs from the recording differs by the addresses of the card. */
TEST(verify_explained)
{
	static const char *const paths[] = { "traces/leak.frames.cft",
					     "traces/modelpar.default.cft",
					     "traces/gnn.expandable.cft",
					     "traces/streams.default.cft" };
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;

	if (!frag_cuda_count())
		skip();
	must(frag_cuda_open(0, &dev, &err));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(paths); i++) {
		FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = must_read(paths[i]);

		for (uint32_t d = 0; d < trace->devs_count; d++) {
			FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };

			must(frag_verify_card(trace, d, dev, &card, UINT64_MAX, NULL, &r, &err));
			print_message("%s, device %u: %s%s\n", paths[i], d,
				      r.identical ? "same segments" : "", r.cause_text);
			assert_int_equal(r.cause,
					 r.identical ? FRAG_CAUSE_NONE : FRAG_CAUSE_ADDRESSES);
		}
	}
}

/* And what other settings make is not said to be made by addresses. */
TEST(verify_other_settings)
{
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;

	if (!frag_cuda_count())
		skip();
	must(frag_cuda_open(0, &dev, &err));
	trace = must_read("traces/gnn.default.cft");
	must(frag_verify_card(trace, 0, dev, &card, UINT64_MAX, "max_split_size_mb:128", &r, &err));
	assert_false(r.identical);
	print_message("%s\n", r.cause_text);
	assert_int_equal(r.cause, FRAG_CAUSE_INPUT);
}
