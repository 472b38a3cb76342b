/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of PyTorch's own allocator, too big for the repository: skipped
 * where they are absent. Every one must be followed event by event, its
 * counters must be those PyTorch printed, and a replay of one workload under the
 * settings of another recording must reach the peak that was recorded there.
 */
#include <frag/replay.h>
#include <frag/trace.h>

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define TORCH FRAG_SHARED_TRACES "/torch/"
#define CARD_BYTES 150109880320ull

static const struct frag_sim_config card = { .context_bytes = UINT64_MAX };

/* What stands beside a recording: NAME.json. NULL if there is none. */
static json_t *notes_of(const char *pickle)
{
	char path[512];
	const char *dot = strstr(pickle, ".pickle");

	snprintf(path, sizeof(path), "%.*s.json", (int)(dot - pickle), pickle);
	return json_load_file(path, 0, NULL);
}

/* The limit of a recording: a fraction in its notes, or 7.5 GiB in the program itself. */
static uint64_t limit_of(const json_t *notes)
{
	const char *fraction = json_string_value(json_object_get(notes, "memfrac"));
	const char *workload = json_string_value(json_object_get(notes, "workload"));
	double f = 1;

	if (fraction && *fraction)
		f = strtod(fraction, NULL);
	else if (workload && !strcmp(workload, "oomcap"))
		f = 7.5 * (double)FRAG_GIB / (double)CARD_BYTES;
	return f < 1 ? (uint64_t)(f * (double)CARD_BYTES) : UINT64_MAX;
}

static struct frag_trace *load(const char *path)
{
	struct frag_err err = { 0 };
	struct frag_trace *t;

	if (frag_trace_read(path, NULL, &t, &err))
		fail_msg("%s: %s", path, err.msg);
	return t;
}

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
	struct frag_trace *t;
	struct frag_err err = { 0 };
	json_t *notes;

	if (access(path, R_OK) != 0 || getenv("FRAG_TEST_QUICK"))
		skip();
	notes = notes_of(path);
	t = load(path);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_verify_result r;
		bool whole = !t->devs[d].initial.segments_count;

		if (!t->devs[d].events_count)
			continue;
		if (frag_verify(t, d, &card, limit_of(notes), NULL, &r, &err))
			fail_msg("%s: %s", path, err.msg);
		if (!r.identical)
			fail_msg("%s: device %u: %s", path, r.device_ordinal, r.first_difference);
		assert_int_equal(r.allocs, r.allocs_same);
		assert_int_equal(r.segments, r.segments_same);
		assert_int_equal(r.ooms, r.ooms_same);
		assert_int_equal(r.finals, r.finals_same);
		assert_true(r.allocs > 0);
		/* the notes hold the counters of the process's own first device */
		if (notes && whole &&
		    (r.device_ordinal == 0 || t->devs_count == 1 || !t->devs[0].events_count))
			same_counters(path, &r, notes);
		frag_verify_result_release(&r);
	}
	frag_trace_destroy(t);
	json_decref(notes);
}

/* ---- the limit ---- */

/* Settled as a command does it. said: what the file would say, 0 = nothing. */
static struct frag_settled settle_as(const char *path, uint64_t said)
{
	struct frag_trace *t = load(path);
	struct frag_err err = { 0 };
	struct frag_settled s;

	t->settings.limit_known = said != 0;
	t->settings.limit_bytes = said ? said : UINT64_MAX;
	if (frag_settle(t, &card, UINT64_MAX, false, &err))
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
	json_t *notes = notes_of(path);
	uint64_t limit = notes ? limit_of(notes) : UINT64_MAX;
	struct frag_settled s;

	json_decref(notes);
	if (limit == UINT64_MAX || getenv("FRAG_TEST_QUICK"))
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
	{ "modelpar.default", "modelpar.expandable", 1, NULL, 4448 * FRAG_MIB },
	{ "modelpar.default", "modelpar.default", 0, NULL, 0 },
	{ "modelpar.default", "modelpar.default", 1, NULL, 5180 * FRAG_MIB },
	{ "moe.default", "moe.default", 0, NULL, 0 },
	{ "moe.default", "moe.pow2list", 0, "57,233 allocations against 57,187", 0 },
};

static void what_if(void **state)
{
	const struct what_if *row = *state;
	char from[512], like[512], text[300];
	struct frag_run_options opt;
	struct frag_policy_spec *spec;
	struct frag_result r = { 0 };
	struct frag_err err = { 0 };
	struct frag_trace *t;
	json_t *notes;
	uint64_t want;

	snprintf(from, sizeof(from), TORCH "%s.pickle.xz", row->from);
	snprintf(like, sizeof(like), TORCH "%s.pickle.xz", row->like);
	if (access(from, R_OK) != 0 || row->why_not || getenv("FRAG_TEST_QUICK"))
		skip();
	notes = notes_of(like);
	assert_non_null(notes);
	snprintf(text, sizeof(text), "pytorch:%s",
		 json_string_value(json_object_get(notes, "conf")));
	t = load(from);
	frag_run_options_defaults(&opt);
	opt.limit_bytes = limit_of(notes);
	assert_int_equal(frag_resolve(t, row->dev, &card, UINT64_MAX, &err), 0);
	assert_int_equal(frag_policy_spec_parse(text, &spec, &err), 0);
	if (frag_replay_sim(spec, &card, &t->devs[row->dev], &opt, &r, &err))
		fail_msg("%s", err.msg);
	want = row->want ? row->want
			 : (uint64_t)json_integer_value(json_object_get(
				   json_object_get(notes, "stats"), "reserved_bytes.all.peak"));
	if (r.m.peak_reserved_bytes != want)
		fail_msg("%s under %s: %llu, recorded %llu", row->from, text,
			 (unsigned long long)r.m.peak_reserved_bytes, (unsigned long long)want);
	frag_result_release(&r);
	frag_policy_spec_destroy(spec);
	frag_trace_destroy(t);
	json_decref(notes);
}

int main(void)
{
	static const char *const limited[] = { TORCH "gnn.gc.pickle.xz",
					       TORCH "varlen.gc.pickle.xz",
					       TORCH "oomcap.default.pickle.xz",
					       TORCH "oomcap.expandable.pickle.xz" };
	struct CMUnitTest tests[128 + FRAG_ARRAY_LEN(limited)];
	char names[FRAG_ARRAY_LEN(rows)][96];
	size_t n = 0;
	glob_t g = { 0 };

	if (glob(TORCH "*.pickle.xz", 0, NULL, &g)) {
		g.gl_pathc = 0;
		tests[n++] = (struct CMUnitTest){ .name = "recordings",
						  .test_func = verify_one,
						  .initial_state = (void *)TORCH "absent" };
	}
	for (size_t i = 0; i < g.gl_pathc && n < 96; i++)
		tests[n++] = (struct CMUnitTest){ .name = strrchr(g.gl_pathv[i], '/') + 1,
						  .test_func = verify_one,
						  .initial_state = g.gl_pathv[i] };
	for (size_t i = 0; i < FRAG_ARRAY_LEN(limited); i++)
		tests[n++] = (struct CMUnitTest){ .name = strrchr(limited[i], '/') + 1,
						  .test_func = limit_one,
						  .initial_state = (void *)limited[i] };
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		snprintf(names[i], sizeof(names[i]), "%s as %s, device %u", rows[i].from,
			 rows[i].like, rows[i].dev);
		tests[n++] = (struct CMUnitTest){ .name = names[i],
						  .test_func = what_if,
						  .initial_state = (void *)&rows[i] };
	}
	n = (size_t)_cmocka_run_group_tests("recordings", tests, n, NULL, NULL);
	globfree(&g);
	return (int)n;
}
