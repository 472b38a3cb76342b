/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of PyTorch's own allocator, too big for the repository: skipped
 * where they are absent. Every one must be followed event by event, its
 * counters must be those PyTorch printed, and a replay of one workload under the
 * settings of another recording must reach the peak that was recorded there.
 */
#include "recorded.h"

/* ---- verify ---- */

/*
 * empty_cache() with nothing to give back leaves no entry in a recording, only
 * one more synchronisation in the counters.
 */
static bool may_differ(const char *counter)
{
	return !strcmp(counter, "num_sync_all_streams");
}

static void same_counters(const char *path, const struct frag_verify_result *r, const json_t *notes)
{
	const json_t *stats = json_object_get(notes, "stats");
	unsigned compared = 0;

	for (const struct frag_counter *c = r->counters; c && c->name; c++) {
		const json_t *want = json_object_get(stats, c->name);

		if (!want || may_differ(c->name))
			continue;
		compared++;
		if (json_integer_value(want) != c->value)
			fail_msg("%s: %s is %lld, recorded %lld", path, c->name,
				 (long long)c->value, (long long)json_integer_value(want));
	}
	assert_int_equal(compared, 121);
}

static void verify_one(void **state)
{
	const char *path = *state;
	AUTO_TRACE t = NULL;
	json_t *notes;

	recorded_or_skip(path);
	notes = recorded_notes(path);
	t = must_read(path);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		bool whole = !t->devs[d].initial.segments_count;
		FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };

		if (!t->devs[d].events_count)
			continue;
		r = recorded_follow(t, d, recorded_limit(notes));
		assert_true(r.allocs > 0);
		/* the notes hold the counters of the process's own first device */
		if (notes && whole &&
		    (r.device_ordinal == 0 || t->devs_count == 1 || !t->devs[0].events_count))
			same_counters(path, &r, notes);
	}
	json_decref(notes);
}

/* ---- the limit ---- */

/* Settled as a command does it. said: what the file would say, 0 = nothing. */
static struct frag_settled settle_as(const char *path, uint64_t said)
{
	struct frag_trace *t = must_read(path);
	struct frag_err err = { 0 };
	struct frag_settled s;

	t->settings.limit_known = said != 0;
	t->settings.limit_bytes = said ? said : UINT64_MAX;
	if (frag_settle(t, &recorded_card, UINT64_MAX, false, &err))
		fail_msg("%s: %s", path, err.msg);
	s = t->devs[0].settled;
	frag_trace_destroy(t);
	if (!s.identical)
		fail_msg("%s: %s", path, s.difference);
	return s;
}

/* Of a recording under a limit: found where the file does not say it, taken where it does, and not
 * believed where it says twice as much. */
static void limit_one(void **state)
{
	const char *path = *state;
	json_t *notes = recorded_notes(path);
	uint64_t limit = notes ? recorded_limit(notes) : UINT64_MAX;
	struct frag_settled s;

	json_decref(notes);
	if (limit == UINT64_MAX || test_is_quick())
		skip();
	s = settle_as(path, 0);
	assert_int_equal(s.limit_source, FRAG_LIMIT_INFERRED);
	assert_true(s.limit_low_bytes <= limit && limit <= s.limit_high_bytes);
	s = settle_as(path, limit);
	assert_int_equal(s.limit_source, FRAG_LIMIT_RECORDED);
	assert_true(s.limit_bytes == limit && !s.limit_refuted_bytes && !s.assumed_trims_count);
	s = settle_as(path, 2 * limit);
	assert_int_equal(s.limit_source, FRAG_LIMIT_INFERRED);
	assert_true(s.limit_refuted_bytes == 2 * limit);
	assert_true(s.limit_low_bytes <= limit && limit <= s.limit_high_bytes);
}

/* ---- what if ---- */

struct what_if {
	const char *from, *like; /* recordings */
	uint32_t dev;
	const char *why_not; /* the recordings differ in their requests, or NULL */
	uint64_t want;	     /* peak reserved where the notes do not have it, else 0 */
};

static const struct what_if rows[] = {
	{ "gnn.default", "gnn.expandable", 0, NULL, 0 },
	{ "gnn.default", "gnn.split128", 0, NULL, 0 },
	{ "gnn.default", "gnn.pow2", 0, NULL, 0 },
	{ "gnn.default", "gnn.gc", 0, NULL, 0 },
	{ "gnn.default", "gnn.round", 0, NULL, 0 },
	{ "gnn.default", "gnn.bigseg", 0, NULL, 0 },
	{ "gnn.default", "gnn.default", 0, NULL, 0 },
	{ "varlen.default", "varlen.expandable", 0, NULL, 0 },
	{ "varlen.default", "varlen.split128", 0, "other processes filled the card", 0 },
	{ "varlen.default", "varlen.pow2", 0, NULL, 0 },
	{ "varlen.default", "varlen.gc", 0, NULL, 0 },
	{ "varlen.default", "varlen.default", 0, NULL, 0 },
	{ "vision.default", "vision.expandable", 0, NULL, 0 },
	{ "vision.default", "vision.default", 0, NULL, 0 },
	{ "serve.default", "serve.expandable", 0, NULL, 0 },
	{ "serve.default", "serve.default", 0, NULL, 0 },
	{ "gpt2.default", "gpt2.expandable", 0, NULL, 0 },
	{ "gpt2.default", "gpt2.default", 0, NULL, 0 },
	{ "fsdp2.default", "fsdp2.expandable", 0, NULL, 0 },
	{ "fsdp2.default", "fsdp2.default", 0, NULL, 0 },
	{ "modelpar.default", "modelpar.expandable", 0, NULL, 0 },
	{ "modelpar.default", "modelpar.expandable", 1, NULL, 4448 * MIB },
	{ "modelpar.default", "modelpar.default", 0, NULL, 0 },
	{ "modelpar.default", "modelpar.default", 1, NULL, 5180 * MIB },
	{ "moe.default", "moe.default", 0, NULL, 0 },
	{ "moe.default", "moe.pow2list", 0, "57,233 allocations against 57,187", 0 },
};

static void what_if(void **state)
{
	const struct what_if *row = *state;
	char from[512], like[512];
	const char *policy;
	struct frag_run_options opt = default_run();
	struct frag_result r;
	AUTO_TRACE t = NULL;
	json_t *notes;

	snprintf(from, sizeof(from), TORCH "%s.pickle.xz", row->from);
	snprintf(like, sizeof(like), TORCH "%s.pickle.xz", row->like);
	if (row->why_not)
		skip();
	recorded_or_skip(from);
	notes = recorded_notes(like);
	assert_non_null(notes);
	policy = recorded_policy(notes, "");
	t = must_read(from);
	opt.limit_bytes = recorded_limit(notes);
	assert_int_equal(frag_resolve(t, row->dev, &recorded_card, UINT64_MAX, NULL), 0);
	r = must_replay(policy, &t->devs[row->dev], NULL, &opt);
	must_be_peak(r.m.peak_reserved_bytes, row->want ? row->want : recorded_peak(notes),
		     row->from, policy);
	frag_result_release(&r);
	json_decref(notes);
}

TESTS
{
	if (!test_add_files(verify_one, TORCH "*.pickle.xz", ""))
		test_add(verify_one, TORCH "absent", "recordings");
	test_add(limit_one, TORCH "gnn.gc.pickle.xz", "limit of gnn.gc");
	test_add(limit_one, TORCH "varlen.gc.pickle.xz", "limit of varlen.gc");
	test_add(limit_one, TORCH "oomcap.default.pickle.xz", "limit of oomcap.default");
	test_add(limit_one, TORCH "oomcap.expandable.pickle.xz", "limit of oomcap.expandable");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		test_add(what_if, &rows[i], "%s as %s, device %u", rows[i].from, rows[i].like,
			 rows[i].dev);
}
