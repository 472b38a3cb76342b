/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of nothing, and the card that its note names. Limits: tests/cli limit_fraction, bad_limit,
 * compare_recorded_limit; whole or by its head: stream_same, stream_refused; units: verify_ranks; what
 * "recorded" stands for: recorded_settings.
 */
#include "test.h"

#include "must.h"
#include "recording/estimate.h"
#include "recording/recording.h"

TEST(nothing_is_no_recording)
{
	static const struct frag_target card = { .card = { .total_bytes = 80 * GIB } };
	static const struct frag_trace none;
	const char *path = test_make_file("recording", "", 0);
	struct frag_recording r;

	SUCCEEDS(frag_trace_write_cft(&none, path, &test_err));
	assert_int_equal(frag_recording_open(&r, path, &card, 0, NULL), FRAG_EINPUT);
	assert_int_equal(frag_recording_take(&r, frag_host_calloc(1, sizeof(none)), &card, 0, NULL),
			 FRAG_EINPUT);
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
