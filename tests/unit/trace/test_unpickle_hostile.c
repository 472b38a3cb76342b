/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle machine: every opcode it refuses, and what hostile files try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pickle_bytes.h"
#include "unpickle_rig.h"

static void expect_fail(struct result r, uint64_t offset, const char *says)
{
	assert_int_equal(r.rc, FRAG_EINPUT);
	assert_int_equal(r.err.code, FRAG_EINPUT);
	if (!strstr(r.err.msg, says))
		fail_msg("'%s' does not say '%s'", r.err.msg, says);
	assert_int_equal(r.err.offset, offset);
	frag_pickle_destroy(r.p);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_refused_opcodes(void **state)
{
	static const unsigned char ops[] = { 'c',  0x93, 'R',  'b',  'i',  'o',	 0x81, 0x92,
					     'P',  'Q',	 0x82, 0x83, 0x84, 0x96, 0x97, 0x98,
					     0x00, 0xff, 'S',  'T',  'U',  'V',	 'I',  'L',
					     'F',  'g',	 'p',  '0',  '1',  '2',	 'd',  'l',
					     'B',  'C',	 0x8e, 0x8f, 0x90, 0x91 };
	static const char *const names[] = { "GLOBAL", "STACK_GLOBAL", "REDUCE",     "BUILD",
					     "INST",   "OBJ",	       "NEWOBJ",     "NEWOBJ_EX",
					     "PERSID", "BINPERSID",    "EXT1",	     "EXT2",
					     "EXT4",   "BYTEARRAY8",   "NEXT_BUFFER" };

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++) {
		unsigned char b[] = { 0x80, 4, ']', ']', ops[i], 'x', '\n', 'y', '\n', '.' };

		expect_fail(read_bytes(b, sizeof(b)), 4,
			    i < FRAG_ARRAY_LEN(names) ? names[i] : "unknown pickle opcode 0x");
	}
}

static void test_unsound(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint64_t offset;
		const char *says;
	} rows[] = {
#define ROW(text, at, says) { text, sizeof(text) - 1, at, says }
		ROW("\x80\x01.", 2, "protocol"),
		ROW("\x80\x06.", 2, "protocol"),
		ROW("\x80\x04.", 3, "STOP with an unfinished stack"),
		ROW("\x80\x04]].", 5, "STOP with an unfinished stack"),
		ROW("\x80\x04](.", 5, "STOP with an unfinished stack"),
		ROW("\x80\x04h\x00.", 4, "memo entry"),
		ROW("\x80\x04j\0\0\0\0.", 7, "memo entry"),
		ROW("\x80\x04]q\x01h\x00.", 7, "memo entry"),
		ROW("\x80\x04\x94.", 3, "nothing to remember"),
		ROW("\x80\x04](\x94.", 5, "nothing to remember"),
		ROW("\x80\x04q\x00.", 4, "nothing to remember"),
		ROW("\x80\x04]r\xff\xff\xff\xff.", 8, "memo index"),
		ROW("\x80\x04"
		    "a.",
		    3, "underflow"),
		ROW("\x80\x04]a.", 4, "underflow"),
		ROW("\x80\x04K\x01(K\x02"
		    "a.",
		    8, "underflow"),
		ROW("\x80\x04"
		    "e.",
		    3, "no mark"),
		ROW("\x80\x04(e.", 4, "no container"),
		ROW("\x80\x04(u.", 4, "no container"),
		ROW("\x80\x04](( e", 5, "unknown pickle opcode"),
		ROW("\x80\x04]((e.", 6, "no container"),
		ROW("\x80\x04}(K\x01u.", 7, "key without a value"),
		ROW("\x80\x04](K\x01K\x01u.", 9, "not a dict"),
		ROW("\x80\x04}(K\x01"
		    "e.",
		    7, "not a list"),
		ROW("\x80\x04}K\x01"
		    "a.",
		    6, "not a list"),
		ROW("\x80\x04]K\x01K\x01s.", 8, "not a dict"),
		ROW("\x80\x04K\x01s.", 5, "underflow"),
		ROW("\x80\x04\x86.", 3, "underflow"),
		ROW("\x80\x04K\x01(K\x01\x86.", 8, "underflow"),
		ROW("\x80\x04t.", 3, "no mark"),
		ROW("\x80\x04\x8b\xff\xff\xff\xff", 3, "negative length"),
		ROW("\x80\x04].x", 4, "goes on behind the end"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		expect_fail(read_bytes(rows[i].bytes, rows[i].n), rows[i].offset, rows[i].says);
}

static void test_gigantic_lengths(void **state)
{
	(void)state;
	expect_fail(READ("X\xff\xff\xff\xff"), 7, "longer than is believable");
	expect_fail(READ("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), 11, "longer than is believable");
	/* believable, but not there: nothing of that size is allocated */
	expect_fail(READ("X\0\0\0\x01"), 8, "truncated");
	expect_fail(READ("\x8b\xff\xff\xff\x7f"), 8, "truncated");
}

static void test_deep_nesting(void **state)
{
	static const size_t depths[] = { 100, 900, 2000, 100000 };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(depths); i++) {
		struct pickle_bytes b = { 0 };
		struct result r;

		pb_begin(&b);
		for (size_t k = 0; k < depths[i]; k++)
			pb_list(&b);
		for (size_t k = 0; k < depths[i]; k++)
			pb_close_list(&b);
		pb_end(&b);
		r = read_bytes(b.bytes, b.len);
		if (depths[i] <= 1000) {
			assert_int_equal(r.rc, 0);
			frag_pickle_destroy(r.p);
		} else {
			expect_fail(r, r.err.offset, "nested too deeply");
		}
		pb_release(&b);
		/* without marks there is no limit to mind, and nothing recurses */
		pb_begin(&b);
		for (size_t k = 0; k <= depths[i]; k++)
			pb_op(&b, ']');
		for (size_t k = 0; k < depths[i]; k++)
			pb_op(&b, 'a');
		pb_end(&b);
		r = read_bytes(b.bytes, b.len);
		assert_int_equal(r.rc, 0);
		frag_pickle_destroy(r.p);
		pb_release(&b);
	}
}

/* Something of everything, so that a cut can fall into every opcode. */
static void mixed(struct pickle_bytes *b)
{
	pb_begin(b);
	pb_dict(b);
	pb_text_int(b, "a", 1);
	pb_text_int(b, "b", 300);
	pb_text_int(b, "c", 1 << 20);
	pb_text_int(b, "d", 1ll << 46);
	pb_text_text(b, "a text that is long enough", "x");
	pb_text(b, "g");
	pb_float(b, 0.25);
	pb_text(b, "list");
	pb_list(b);
	pb_bool(b, 1);
	pb_int(b, 3);
	pb_int(b, 4);
	pb_op(b, 0x86);
	pb_remember(b);
	pb_op(b, 'N');
	pb_close_list(b);
	pb_text(b, "again");
	pb_op(b, 'h');
	pb_le(b, 1, 1);
	pb_text(b, "wide");
	pb_op(b, 0x8b);
	pb_le(b, 3, 4);
	pb_le(b, 77, 3);
	pb_close_dict(b);
	pb_end(b);
}

static void test_truncated_everywhere(void **state)
{
	(void)state;
	for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
		struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };
		struct result r;

		mixed(&b);
		r = read_bytes(b.bytes, b.len);
		if (r.rc)
			fail_msg("%s", r.err.msg);
		frag_pickle_destroy(r.p);
		for (size_t n = 1; n < b.len; n++) {
			/* in a block of that size: a reader that looks further is caught by ASan */
			unsigned char *part = malloc(n);

			assert_non_null(part);
			memcpy(part, b.bytes, n);
			expect_fail(read_bytes(part, n), n, "truncated");
			free(part);
		}
		pb_release(&b);
	}
}

static void test_out_of_memory(void **state)
{
	struct pickle_bytes b = { 0 };
	bool failed = true;

	(void)state;
	mixed(&b);
	for (uint64_t n = 1; failed; n++) {
		struct result r;

		assert_true(n < 1000);
		frag_host_fail_after(n);
		r = read_bytes(b.bytes, b.len);
		frag_host_fail_after(0);
		failed = r.rc != 0;
		if (failed)
			assert_int_equal(r.rc, FRAG_ENOMEM);
		frag_pickle_destroy(r.p);
	}
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_opcodes),	     cmocka_unit_test(test_unsound),
		cmocka_unit_test(test_gigantic_lengths),     cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_truncated_everywhere), cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
