/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are none: refused with a reason, whatever the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot_bytes.h"

/* ---- refused ------------------------------------------------------------------------------ */

static void test_not_a_snapshot(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };

	(void)state;
	pb_begin(&b);
	pb_int(&b, 5);
	pb_end(&b);
	sb_expect_fail(&b, "neither a snapshot");
	sb_top(&b);
	pb_text_int(&b, "weights", 5);
	sb_finish(&b);
	sb_expect_fail(&b, "neither 'segments' nor");
	sb_top(&b);
	pb_text_int(&b, "device_traces", 5);
	sb_finish(&b);
	sb_expect_fail(&b, "'device_traces' is not a list");
	sb_top(&b);
	pb_text_int(&b, "segments", 5);
	sb_finish(&b);
	sb_expect_fail(&b, "'segments' is not a list");
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	sb_close_traces(&b);
	sb_finish(&b);
	sb_expect_fail(&b, "nothing was recorded");
}

static void bad_entries(struct pickle_bytes *b, int which)
{
	sb_top(b);
	sb_no_segments(b);
	sb_open_traces(b);
	pb_entry(b, "alloc", S0, 1, 0, T0);
	switch (which) {
	case 0:
		pb_int(b, 5);
		break;
	case 1:
		pb_dict(b);
		pb_text_int(b, "addr", 5);
		pb_close_dict(b);
		break;
	case 2:
		pb_dict(b);
		pb_text_text(b, "action", "alloc");
		pb_text_text(b, "addr", "here");
		pb_close_dict(b);
		break;
	case 3:
		pb_dict(b);
		pb_text_text(b, "action", "alloc");
		pb_text_int(b, "size", -5);
		pb_close_dict(b);
		break;
	case 4: /* the device's list twice */
		pb_close_list(b);
		pb_op(b, 'h');
		pb_le(b, 5, 1);
		pb_op(b, '(');
		break;
	default: /* the list of lists holds itself */
		pb_close_list(b);
		pb_op(b, 'h');
		pb_le(b, 4, 1);
		pb_op(b, '(');
		break;
	}
	sb_close_traces(b);
	sb_finish(b);
}

static void test_bad_entries(void **state)
{
	static const char *const says[] = { "is not a dict", "has no action", "wrong kind",
					    "wrong kind",    "listed twice",  "listed twice" };

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct pickle_bytes b = { .dialect = PICKLE_PYTHON };

		bad_entries(&b, i);
		sb_expect_fail(&b, says[i]);
	}
}

static void test_bad_segments(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };

	(void)state;
	/* blocks that leave a hole, or reach over the end */
	for (int over = 0; over < 2; over++) {
		pb_begin(&b);
		pb_list(&b);
		sb_open_segment(&b, 0, S0, 2 * MIB, "small", 0, 0);
		sb_block(&b, S0, over ? 4 * MIB : 512, 5, "inactive");
		sb_block(&b, S0 + 1024, 512, 5, "inactive");
		sb_close_segment(&b);
		pb_close_list(&b);
		pb_end(&b);
		sb_expect_fail(&b, "does not follow");
	}
	pb_begin(&b);
	pb_list(&b);
	sb_open_segment(&b, 1 << 20, S0, 2 * MIB, "small", 0, 0);
	sb_close_segment(&b);
	pb_close_list(&b);
	pb_end(&b);
	sb_expect_fail(&b, "not possible");
	pb_begin(&b);
	pb_list(&b);
	sb_open_segment(&b, 0, S0, 2 * MIB, "small", 0, 0);
	sb_close_segment(&b);
	sb_open_segment(&b, 0, S0, 2 * MIB, "small", 0, 0);
	sb_close_segment(&b);
	pb_close_list(&b);
	pb_end(&b);
	sb_expect_fail(&b, "two final segments");
	/* one segment dict, listed twice */
	pb_begin(&b);
	pb_list(&b);
	sb_open_segment(&b, 0, S0, 2 * MIB, "small", 0, 0);
	sb_close_segment(&b);
	pb_op(&b, 'h');
	pb_le(&b, 1, 1);
	pb_close_list(&b);
	pb_end(&b);
	sb_expect_fail(&b, "listed twice");
}

static void test_truncated_everywhere(void **state)
{
	(void)state;
	for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
		struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };

		sb_everything(&b);
		for (size_t n = 1; n < b.len; n++) {
			unsigned char *part = malloc(n);
			struct frag_trace *t;
			struct frag_err err = { 0 };

			assert_non_null(part);
			memcpy(part, b.bytes, n);
			assert_int_equal(sb_read(part, n, NULL, &t, &err), FRAG_EINPUT);
			assert_null(t);
			assert_non_null(strstr(err.msg, "truncated"));
			free(part);
		}
		pb_release(&b);
	}
}

/* Any byte may be anything: never a crash, a hang or a leak. */
static void test_damaged_everywhere(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff, 0x10, 0x74 };
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };

	(void)state;
	sb_everything(&b);
	for (size_t at = 0; at < b.len; at++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			struct frag_trace *t;
			struct frag_err err = { 0 };
			int rc;

			b.bytes[at] ^= flips[k];
			rc = sb_read(b.bytes, b.len, NULL, &t, &err);
			assert_true(rc == 0 || (rc == FRAG_EINPUT && err.msg[0] && !t));
			frag_trace_destroy(t);
			b.bytes[at] ^= flips[k];
		}
	}
	pb_release(&b);
}

static void test_out_of_memory(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	int rc = FRAG_ENOMEM;

	(void)state;
	sb_everything(&b);
	for (uint64_t n = 1; rc; n++) {
		struct frag_trace *t;

		assert_true(n < 1000);
		frag_host_fail_after(n);
		rc = sb_read(b.bytes, b.len, NULL, &t, NULL);
		frag_host_fail_after(0);
		assert_true(rc == 0 || rc == FRAG_ENOMEM);
		frag_trace_destroy(t);
	}
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_a_snapshot),
		cmocka_unit_test(test_bad_entries),
		cmocka_unit_test(test_bad_segments),
		cmocka_unit_test(test_truncated_everywhere),
		cmocka_unit_test(test_damaged_everywhere),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
