/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle machine: every opcode it knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pickle_bytes.h"
#include "unpickle_rig.h"

static int64_t int_of(struct result *r)
{
	int64_t v = INT64_MIN;

	if (r->rc)
		fail_msg("%s", r->err.msg);
	assert_true(frag_pickle_i64(r->p, r->root, &v));
	frag_pickle_destroy(r->p);
	return v;
}

/* ---- values ---------------------------------------------------------------------- */

static void test_integers(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int64_t value;
	} rows[] = {
#define ROW(text, v) { "\x80\x02" text ".", sizeof("\x80\x02" text ".") - 1, v }
		ROW("K\x00", 0),
		ROW("K\xff", 255),
		ROW("M\xff\xff", 65535),
		ROW("J\xff\xff\xff\x7f", INT32_MAX),
		ROW("J\x00\x00\x00\x80", INT32_MIN),
		ROW("J\xff\xff\xff\xff", -1),
		ROW("\x8a\x00", 0),
		ROW("\x8a\x01\xff", -1),
		ROW("\x8a\x02\x00\x80", -32768),
		ROW("\x8a\x06\x00\x00\x00\x00\x00\x7f", 0x7f0000000000),
		ROW("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x0f", (1ll << 60) - 1),
		ROW("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10", 1ll << 60),
		ROW("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\xf0", -(1ll << 60)),
		ROW("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xef", -(1ll << 60) - 1),
		ROW("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", INT64_MAX),
		ROW("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80", INT64_MIN),
		ROW("\x8b\x02\x00\x00\x00\x34\x12", 0x1234),
		ROW("\x88", 1),
		ROW("\x89", 0),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct result r = read_bytes(rows[i].bytes, rows[i].n);

		assert_true(int_of(&r) == rows[i].value);
	}
}

static void test_big_integers(void **state)
{
	struct result r = READ("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00");
	uint64_t u = 0;
	int64_t s;
	double d;

	(void)state;
	assert_int_equal(r.rc, 0);
	assert_true(frag_pickle_u64(r.p, r.root, &u));
	assert_true(u == 1ull << 63);
	assert_false(frag_pickle_i64(r.p, r.root, &s));
	frag_pickle_destroy(r.p);
	/* wider than 64 bits: a value, but no number for us */
	r = READ("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x80\x00\x01");
	assert_int_equal(r.rc, 0);
	assert_false(frag_pickle_u64(r.p, r.root, &u));
	assert_false(frag_pickle_f64(r.p, r.root, &d));
	frag_pickle_destroy(r.p);
	/* negative ones are none of ours either */
	r = READ("J\xff\xff\xff\xff");
	assert_false(frag_pickle_u64(r.p, r.root, &u));
	frag_pickle_destroy(r.p);
}

static void test_long4_across_the_window(void **state)
{
	struct pickle_bytes b = { 0 };
	struct result r;

	(void)state;
	/* [huge, 7]: the huge one is longer than any buffer */
	pb_begin(&b);
	pb_list(&b);
	pb_op(&b, 0x8b);
	pb_le(&b, 700000, 4);
	for (int i = 0; i < 700000; i++)
		pb_op(&b, i & 0xff);
	pb_int(&b, 7);
	pb_close_list(&b);
	pb_end(&b);
	r = read_bytes(b.bytes, b.len);
	assert_int_equal(r.rc, 0);
	assert_int_equal(frag_pickle_list(r.p, r.root)->count, 2);
	r.root = frag_pickle_list(r.p, r.root)->items[1];
	assert_int_equal(int_of(&r), 7);
	pb_release(&b);
}

static void test_floats_and_constants(void **state)
{
	struct result r = READ("G\x3f\xe3\x33\x33\x33\x33\x33\x33");
	double d = 0;

	(void)state;
	assert_int_equal(r.rc, 0);
	assert_true(frag_pickle_f64(r.p, r.root, &d));
	assert_true(d == 0.6);
	frag_pickle_destroy(r.p);
	r = READ("N");
	assert_int_equal(r.rc, 0);
	assert_true(r.root == FRAG_PV_NONE);
	assert_false(frag_pickle_f64(r.p, r.root, &d));
	assert_null(frag_pickle_text(r.p, r.root, NULL));
	assert_null(frag_pickle_list(r.p, r.root));
	assert_null(frag_pickle_node(r.p, r.root));
	frag_pickle_destroy(r.p);
}

static void test_texts(void **state)
{
	static const size_t lengths[] = { 0, 1, 7, 8, 9, 255, 256, 65000, 65536, 300000, 1000000 };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(lengths); i++) {
		for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
			struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };
			char *text = malloc(lengths[i] + 1);
			struct result r;
			size_t len = 0;

			assert_non_null(text);
			memset(text, 'a' + (int)i, lengths[i]);
			text[lengths[i]] = 0;
			pb_begin(&b);
			pb_text(&b, text);
			pb_end(&b);
			r = read_bytes(b.bytes, b.len);
			if (r.rc)
				fail_msg("%s", r.err.msg);
			assert_string_equal(frag_pickle_text(r.p, r.root, &len), text);
			assert_int_equal(len, lengths[i]);
			frag_pickle_destroy(r.p);
			free(text);
			pb_release(&b);
		}
	}
}

static void test_binunicode8(void **state)
{
	struct result r = READ("\x8d\x02\0\0\0\0\0\0\0hi");

	(void)state;
	assert_int_equal(r.rc, 0);
	assert_string_equal(frag_pickle_text(r.p, r.root, NULL), "hi");
	frag_pickle_destroy(r.p);
}

/* Equal texts have one index, and the words given have theirs. */
static void test_texts_are_interned(void **state)
{
	struct result r = READ("](\x8c\x04size\x8c\x06"
			       "action\x8c\x02zz\x8c\x02zzX\x02\0\0\0zz"
			       "\x8c\x0bzzzzzzzzzzz\x8c\x0bzzzzzzzzzzze");
	const uint32_t *v;

	(void)state;
	assert_int_equal(r.rc, 0);
	v = frag_pickle_list(r.p, r.root)->items;
	assert_int_equal(frag_pv_index(v[0]), 2);
	assert_int_equal(frag_pv_index(v[1]), 1);
	assert_int_equal(v[2], v[3]);
	assert_int_equal(v[2], v[4]);
	assert_int_equal(v[5], v[6]);
	assert_int_not_equal(v[2], v[5]);
	frag_pickle_destroy(r.p);
}

static void test_tuples(void **state)
{
	/* [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2)] */
	struct result r = READ("]()K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87(K\x01K\x02K\x03K\x04t"
			       "K\x01K\x02\x86"
			       "e");
	struct frag_pickle_list *l, *t;

	(void)state;
	if (r.rc)
		fail_msg("%s", r.err.msg);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->count, 6);
	for (uint32_t i = 0; i < 5; i++) {
		t = frag_pickle_tuple(r.p, l->items[i]);
		assert_non_null(t);
		assert_null(frag_pickle_list(r.p, l->items[i]));
		assert_int_equal(t->count, i);
		for (uint32_t k = 0; k < i; k++)
			assert_int_equal(t->items[k] >> 3, k + 1);
	}
	t = frag_pickle_tuple(r.p, l->items[5]);
	assert_int_equal(t->count, 2);
	frag_pickle_destroy(r.p);
}

/* ---- containers ----------------------------------------------------------------------- */

static void test_lists_in_batches(void **state)
{
	/* [1] by APPEND, then (2, 3) by APPENDS, then nothing by APPENDS, then 4 */
	struct result r = READ("]\x94K\x01"
			       "a(K\x02K\x03"
			       "e(eK\x04"
			       "a");
	struct frag_pickle_list *l;

	(void)state;
	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(l->items[i], (i + 1) << 3);
	frag_pickle_destroy(r.p);
}

static void test_dicts_in_batches(void **state)
{
	/* one by SETITEM, two by SETITEMS, a key that comes again, an empty batch */
	struct result r = READ("}\x94\x8c\x01"
			       "aK\x01s(\x8c\x01"
			       "bK\x02\x8c\x01"
			       "cK\x03u(u"
			       "\x8c\x01"
			       "aK\x09s");
	const struct frag_pickle_node *n;

	(void)state;
	assert_int_equal(r.rc, 0);
	n = frag_pickle_node(r.p, r.root);
	assert_int_equal(n->count, 4);
	assert_int_equal(frag_node_get(n, frag_pv_index(n->pairs[0])), 9 << 3);
	assert_int_equal(frag_node_get(n, frag_pv_index(n->pairs[2])), 2 << 3);
	assert_int_equal(frag_node_get(n, 12345), FRAG_PV_HOLE);
	frag_pickle_destroy(r.p);
	r = READ("}");
	assert_int_equal(r.rc, 0);
	assert_int_equal(frag_pickle_node(r.p, r.root)->count, 0);
	frag_pickle_destroy(r.p);
}

/* Integers that do not fit a list's 32-bit value come out of it whole. */
static void test_wide_integers_in_lists(void **state)
{
	struct result r = READ("](\x8a\x06\x00\x12\x34\x56\x78\x7f"
			       "J\xff\xff\xff\xff"
			       "J\0\0\0\x7f"
			       "e");
	struct frag_pickle_list *l;
	int64_t v;

	(void)state;
	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_true(frag_pickle_i64(r.p, l->items[0], &v) && v == 0x7f7856341200);
	assert_true(frag_pickle_i64(r.p, l->items[1], &v) && v == -1);
	assert_true(frag_pickle_i64(r.p, l->items[2], &v) && v == 0x7f000000);
	frag_pickle_destroy(r.p);
}

static void test_memo(void **state)
{
	/* MEMOIZE, BINPUT and LONG_BINPUT; BINGET and LONG_BINGET: one object each */
	struct result r = READ("](]\x94]q\x01]r\x02\0\0\0h\x00h\x01j\x02\0\0\0"
			       "e");
	struct frag_pickle_list *l;

	(void)state;
	if (r.rc)
		fail_msg("%s", r.err.msg);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->count, 6);
	for (int i = 0; i < 3; i++)
		assert_int_equal(l->items[i], l->items[i + 3]);
	assert_int_not_equal(l->items[0], l->items[1]);
	frag_pickle_destroy(r.p);
	/* memo entries may be filled out of order, and a number may be remembered */
	r = READ("](K\x05q\x03K\x06q\x01h\x03h\x01"
		 "e");
	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->items[2], 5 << 3);
	assert_int_equal(l->items[3], 6 << 3);
	frag_pickle_destroy(r.p);
}

/* A dict may be remembered before it is filled, and fetched afterwards. */
static void test_filled_after_remembered(void **state)
{
	struct result r = READ("](}\x94\x8c\x01xK\x07sh\x00"
			       "e");
	struct frag_pickle_list *l;

	(void)state;
	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->items[0], l->items[1]);
	assert_int_equal(frag_pickle_node(r.p, l->items[1])->count, 1);
	frag_pickle_destroy(r.p);
}

static void test_cycles(void **state)
{
	/* x = []; x.append(x); and a dict that holds itself */
	struct result r = READ("]\x94h\x00"
			       "a");

	(void)state;
	assert_int_equal(r.rc, 0);
	assert_int_equal(frag_pickle_list(r.p, r.root)->items[0], r.root);
	frag_pickle_destroy(r.p);
	r = READ("}\x94\x8c\x01xh\x00s");
	assert_int_equal(r.rc, 0);
	assert_true(frag_pickle_node(r.p, r.root)->pairs[1] == r.root);
	frag_pickle_destroy(r.p);
}

/* ---- records ------------------------------------------------------------------------------ */

struct taken {
	size_t calls, pairs;
	uint32_t count;
	int answer;
};

static int take(void *ctx, const frag_pv *pairs, size_t n, uint32_t *record, struct frag_err *err)
{
	struct taken *t = ctx;

	(void)err;
	t->calls++;
	if (frag_pv_index(pairs[0]) != 1 && *record == UINT32_MAX)
		return 0; /* the first key is not "action" */
	t->pairs += n;
	if (t->answer == 1 && *record == UINT32_MAX)
		*record = t->count++;
	return t->answer;
}

static void test_records(void **state)
{
	static const char bytes[] = "\x80\x04](}\x94(\x8c\x06"
				    "actionK\x01\x8c\x04sizeK\x02u"
				    "}(\x8c\x04sizeK\x02u"
				    "}\x8c\x06"
				    "actionK\x01s(\x8c\x01xK\x03u"
				    "e.";
	struct taken t = { .answer = 1 };
	struct result r = read_with(bytes, sizeof(bytes) - 1, take, &t);
	struct frag_pickle_list *l;

	(void)state;
	if (r.rc)
		fail_msg("%s", r.err.msg);
	assert_int_equal(t.calls, 4);
	assert_int_equal(t.pairs, 4);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(frag_pickle_record(r.p, l->items[0]), 0);
	assert_int_equal(frag_pickle_record(r.p, l->items[1]), UINT32_MAX);
	assert_int_equal(frag_pickle_node(r.p, l->items[1])->count, 1);
	assert_int_equal(frag_pickle_record(r.p, l->items[2]), 1);
	assert_null(frag_pickle_node(r.p, l->items[2]));
	frag_pickle_destroy(r.p);
	/* a hook that fails ends the reading with its code */
	t = (struct taken){ .answer = FRAG_ENOMEM };
	r = read_with(bytes, sizeof(bytes) - 1, take, &t);
	assert_int_equal(r.rc, FRAG_ENOMEM);
	frag_pickle_destroy(r.p);
}

static void test_notes(void **state)
{
	struct result r = READ("](}\x8c\x01xK\x07s}"
			       "e");
	struct frag_pickle_list *l;

	(void)state;
	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(frag_pickle_note(r.p, l->items[0], 5), 0);
	assert_int_equal(frag_pickle_note(r.p, l->items[0], 6), 5);
	assert_int_equal(frag_pickle_node(r.p, l->items[0])->note, 6);
	assert_int_equal(frag_pickle_note(r.p, l->items[1], 5), 0);
	assert_int_equal(frag_pickle_note(r.p, r.root, 5), 0);
	frag_pickle_destroy(r.p);
}

/* The window of the input moves many times. */
static void test_long_file(void **state)
{
	struct pickle_bytes b = { 0 };
	struct frag_pickle_list *l;
	struct result r;
	const uint32_t n = 300000;

	(void)state;
	pb_begin(&b);
	pb_list(&b);
	for (uint32_t i = 0; i < n; i++) {
		if (i % 1000 == 999) {
			pb_close_list(&b);
			pb_op(&b, '(');
		}
		pb_int(&b, (int64_t)i << (i % 23));
	}
	pb_close_list(&b);
	pb_end(&b);
	r = read_bytes(b.bytes, b.len);
	if (r.rc)
		fail_msg("%s", r.err.msg);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(l->count, n);
	for (uint32_t i = 0; i < n; i++) {
		int64_t v = -1;

		assert_true(frag_pickle_i64(r.p, l->items[i], &v));
		assert_true(v == (int64_t)i << (i % 23));
	}
	frag_pickle_destroy(r.p);
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_big_integers),
		cmocka_unit_test(test_long4_across_the_window),
		cmocka_unit_test(test_floats_and_constants),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_binunicode8),
		cmocka_unit_test(test_texts_are_interned),
		cmocka_unit_test(test_tuples),
		cmocka_unit_test(test_lists_in_batches),
		cmocka_unit_test(test_dicts_in_batches),
		cmocka_unit_test(test_wide_integers_in_lists),
		cmocka_unit_test(test_memo),
		cmocka_unit_test(test_filled_after_remembered),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_long_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
