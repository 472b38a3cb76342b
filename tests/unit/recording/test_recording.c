/* SPDX-License-Identifier: Apache-2.0 */
/* One recording: limits, opening whole and by its head, units, what "recorded" stands for. */
#include "test.h"

#include "must.h"
#include "recording/estimate.h"
#include "recording/recording.h"

static const struct frag_target card = { .card = { .total_bytes = 80 * GIB } };

TEST(test_limits)
{
	static const struct {
		const char *text;
		uint64_t total, bytes;
	} rows[] = {
		{ "8G", 80 * GIB, 8 * GIB }, { "0.5", 1001, 500 }, { "1.0", 1000, UINT64_MAX },
		{ "1000", 10, 1000 },	     { "0.0", 1000, 0 },
	};
	struct frag_limit limit = { 0 };

	assert_true(frag_limit_bytes(&limit, 1000) == UINT64_MAX);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		SUCCEEDS(frag_limit_parse(rows[i].text, &limit, NULL));
		assert_true(frag_limit_bytes(&limit, rows[i].total) == rows[i].bytes);
	}
	assert_int_equal(frag_limit_parse("1.5", &limit, NULL), FRAG_EUSAGE);
	assert_int_equal(frag_limit_parse("much", &limit, NULL), FRAG_EUSAGE);
}

/* --limit, else the recording's where its replay is identical, else none. */
TEST(test_limit_of_a_replay)
{
	struct frag_trace_dev dev = { .settled = { .identical = true, .limit_bytes = 7 } };
	struct frag_target given = card;

	given.limit = (struct frag_limit){ .text = "9", .bytes = 9 };
	assert_true(frag_target_limit_for(&card, &dev) == 7);
	assert_true(frag_target_keeps_limit(&card, &dev));
	assert_true(frag_target_limit_for(&given, &dev) == 9);
	assert_false(frag_target_keeps_limit(&given, &dev));
	dev.settled.identical = false;
	assert_true(frag_target_limit_for(&card, &dev) == UINT64_MAX);
	assert_false(frag_target_keeps_limit(&card, &dev));
}

/* ---- opening --------------------------------------------------------------------- */

static const char *path; /* of a recording */

static void tell(void *ctx, enum frag_recording_stage stage, const char *called,
		 const struct frag_trace *trace)
{
	char *told = ctx;

	assert_true(called || trace);
	told[strlen(told)] = "RrSsF"[stage];
}

/* Whole or by its head: the same units, and each stage is told. */
TEST(test_open)
{
	static const struct {
		unsigned how;
		bool whole;
		const char *told; /* a head is settled by reading all of it, and dropping that */
	} rows[] = { { 0, true, "RrSs" },
		     { FRAG_OPEN_LONG_HEAD, true, "RrSs" },
		     { FRAG_OPEN_HEAD, false, "rRSs" },
		     { FRAG_OPEN_SOURCE, false, "r" } };

	path = "traces/mempool.default.cft";
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		char told[16] = "";
		struct frag_target t = card;
		FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };

		t.tell = tell;
		t.tell_ctx = told;
		SUCCEEDS(frag_recording_open(&r, path, &t, rows[i].how, &test_err));
		assert_string_equal(told, rows[i].told);
		assert_int_equal(r.source == NULL, rows[i].whole);
		assert_int_equal(r.units[0].events.path == NULL, rows[i].whole);
		assert_false(r.pipe);
		assert_true(frag_trace_events_count(r.trace) >= 400);
		assert_int_equal(r.units[0].dev->settled.checked, i != 3);
		assert_string_equal(r.units[0].label, r.trace->name);
	}
}

TEST(test_errors)
{
	static const char log[] = "time_us,action,addr,size\n1,alloc,1,512\n";
	static const struct frag_trace none;
	struct frag_recording r;

	path = test_make_file("recording", "", 0);
	SUCCEEDS(frag_trace_write_cft(&none, path, &test_err));
	assert_int_equal(frag_recording_open(&r, path, &card, 0, NULL), FRAG_EINPUT);
	SUCCEEDS(frag_recording_open(&r, path, &card, FRAG_OPEN_SOURCE, NULL));
	frag_recording_release(&r);
	path = test_make_file("recording", log, sizeof(log) - 1);
	assert_int_equal(frag_recording_open(&r, path, &card, FRAG_OPEN_HEAD, NULL), FRAG_EUSAGE);
	assert_int_equal(frag_recording_open(&r, "/nowhere/a.cft", &card, 0, NULL), FRAG_EINPUT);
	assert_int_equal(frag_recording_take(&r, frag_host_calloc(1, sizeof(none)), &card, 0, NULL),
			 FRAG_EINPUT);
}

TEST(test_units)
{
	char *paths[2];
	FRAG_AUTO(frag_recordings_release) struct frag_recordings all = { 0 };
	const struct frag_unit *unit;
	char label[200];

	paths[0] = paths[1] = (char *)(uintptr_t) "traces/modelpar.default.cft";
	SUCCEEDS(frag_recordings_open(&all, paths, 2, &card, 0, &test_err));
	assert_int_equal(all.units_count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct frag_trace *trace = all.list[i / 2].trace;

		unit = &all.units[i];
		assert_ptr_equal(unit->dev, &trace->devs[i % 2]);
		snprintf(label, sizeof(label), "%s device %u", trace->name, unit->dev->ordinal);
		assert_string_equal(unit->label, label);
		SUCCEEDS(frag_recording_unit(&all.list[i / 2], unit->dev->ordinal, &unit, NULL));
		assert_string_equal(unit->label, label);
	}
	assert_int_equal(frag_recording_unit(&all.list[0], 99, &unit, NULL), FRAG_EUSAGE);
}

TEST(test_recorded)
{
	AUTO_TRACE trace = must_read_bundled("seeddemo.default");
	struct frag_policy_spec *spec;

	assert_true(frag_policy_is_recorded(NULL));
	assert_true(frag_policy_is_recorded("recorded"));
	assert_false(frag_policy_is_recorded("pytorch"));
	trace->settings.present = false;
	SUCCEEDS(frag_recording_spec(trace, "recorded", &spec, NULL));
	assert_null(spec);
	SUCCEEDS(frag_recording_spec(trace, "pytorch", &spec, NULL));
	assert_string_equal(frag_policy_spec_text(spec), "pytorch");
	frag_policy_spec_destroy(spec);
	assert_int_equal(frag_recording_spec(trace, "pytroch", &spec, NULL), FRAG_EUSAGE);
}

/* The card of a note, which anybody may have written: possible or not taken. */
TEST(the_card_of_a_note)
{
	static const struct {
		const char *note;
		uint64_t total_bytes, context_bytes;
	} rows[] = {
		{ "card l4\nchip l4\ntotal 1000\ncontext 10\nstatus 0\n", 1000, 10 },
		{ "card l4\ntotal 1000\nstatus 0\n", 7, 5 }, /* of an older cufrag */
		{ "card l4\ntotal 10\ncontext 1000\nstatus 0\n", 7, 5 },
		{ "card l4\ntotal 0\ncontext 0\nstatus 0\n", 7, 5 },
		{ "card l4\ntotal -1\ncontext 10\nstatus 0\n", 7, 5 },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_trace trace = { .estimate = (char *)rows[i].note };
		struct frag_sim_config own = { .total_bytes = 7, .context_bytes = 5 };

		assert_int_equal(frag_estimate_card(&trace, &own), rows[i].total_bytes == 1000);
		assert_int_equal(own.total_bytes, rows[i].total_bytes);
		assert_int_equal(own.context_bytes, rows[i].context_bytes);
	}
}
