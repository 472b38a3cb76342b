/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pickle machine: opcodes (unpickle.cases), and pickles that are long or deep. Cuts everywhere, flipped
 * bytes and failing allocations: "!attack" in readers/torch.cases.
 */
#include "test.h"

#include "trace/torch/unpickle.h"
#include "pickle_text.h"

struct result {
	struct frag_pickle *p;
	frag_pv root;
	struct frag_err err;
	int rc;
};

/* With the words "action" and "size". The caller destroys r.p. */
static struct result read_with(const void *bytes, size_t n, frag_record_fn fn, void *ctx)
{
	static const char *const words[] = { "action", "size" };
	struct result r = { 0 };
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;

	r.rc = frag_input_open_memory("test", bytes, n, &in, &r.err);
	if (!r.rc)
		r.rc = frag_pickle_create(words, 2, fn, ctx, &r.p, &r.err);
	if (!r.rc)
		r.rc = frag_pickle_read(r.p, in, &r.root, &r.err);
	return r;
}

static struct result read_pickle(const struct pickle_bytes *b)
{
	return read_with(b->bytes, b->len, NULL, NULL);
}

static void expect_fail(struct result r, uint64_t offset, const char *says)
{
	assert_int_equal(r.rc, FRAG_EINPUT);
	assert_int_equal(r.err.code, FRAG_EINPUT);
	if (!strstr(r.err.msg, says))
		fail_msg("'%s' does not say '%s'", r.err.msg, says);
	assert_int_equal(r.err.offset, offset);
	frag_pickle_destroy(r.p);
}

/* ---- values as text ------------------------------------------------------------------- */

static void say_value(struct frag_pickle *p, frag_pv v, FILE *out);

static void say_items(struct frag_pickle *p, struct frag_pickle_list *l, const char *ends,
		      uint32_t index, FILE *out)
{
	if (l->note) {
		fprintf(out, "list %u", index);
		return;
	}
	l->note = 1;
	fputc(ends[0], out);
	for (uint32_t i = 0; i < l->count; i++) {
		fputs(i ? ", " : "", out);
		say_value(p, l->items[i], out);
	}
	fputc(ends[1], out);
}

static void say_dict(struct frag_pickle *p, frag_pv v, FILE *out)
{
	const struct frag_pickle_node *n = frag_pickle_node(p, v);

	assert_non_null(n);
	if (frag_pickle_note(p, v, 1)) {
		fprintf(out, "dict %u", frag_pv_index(v));
		return;
	}
	fputc('{', out);
	for (uint32_t i = 0; i < n->count; i++) {
		fputs(i ? ", " : "", out);
		say_value(p, n->pairs[2 * i], out);
		fputs(": ", out);
		say_value(p, frag_node_get(n, frag_pv_index(n->pairs[2 * i])), out);
	}
	assert_int_equal(frag_node_get(n, 12345), FRAG_PV_HOLE);
	fputc('}', out);
}

static void say_number(struct frag_pickle *p, frag_pv v, FILE *out)
{
	int64_t i;
	uint64_t u;
	double d;

	if (frag_pickle_i64(p, v, &i))
		fprintf(out, "%lld%s", (long long)i,
			frag_pickle_u64(p, v, &u) == (i >= 0) ? "" : "?");
	else if (frag_pickle_u64(p, v, &u))
		fprintf(out, "%llu (unsigned)", (ull)u);
	else if (frag_pickle_f64(p, v, &d))
		fprintf(out, "%g", d);
	else
		fputs(v == FRAG_PV_NONE ? "None" : "too wide", out);
}

static void say_value(struct frag_pickle *p, frag_pv v, FILE *out)
{
	const char *text = frag_pickle_text(p, v, NULL);
	struct frag_pickle_list *list = frag_pickle_list(p, v), *tuple = frag_pickle_tuple(p, v);

	assert_true((!!text + !!list + !!tuple) <= 1);
	if (text)
		fprintf(out, "%s (%u)", text, frag_pv_index(v));
	else if (list)
		say_items(p, list, "[]", frag_pv_index(v), out);
	else if (tuple)
		say_items(p, tuple, "()", frag_pv_index(v), out);
	else if (frag_pv_tag(v) == FRAG_PV_DICT)
		say_dict(p, v, out);
	else
		say_number(p, v, out);
}

static void answer(char *call, FILE *out)
{
	bool whole = *call == '|';
	FRAG_AUTO(pb_release) struct pickle_bytes b = { 0 };
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(call + whole, &n);
	struct result r;

	if (!whole)
		pb_raw(&b, "\x80\x04", 2);
	pb_raw(&b, bytes, n);
	if (!whole)
		pb_op(&b, '.');
	r = read_pickle(&b);
	if (r.rc)
		cases_error(out, &r.err);
	else
		say_value(r.p, r.root, out);
	frag_pickle_destroy(r.p);
}

CASES_IN_LINES("tests/unit/trace/unpickle.cases", answer)

/* After the protocol and two lists: the error, and its byte. */
static void refuses_opcode(unsigned char opcode, const char *says)
{
	unsigned char bytes[] = "\x80\x04]]?x\ny\n.";
	struct result r;

	bytes[4] = opcode;
	r = read_with(bytes, sizeof(bytes) - 1, NULL, NULL);
	assert_string_equal(r.err.msg, says);
	expect_fail(r, 4, says);
}

TEST(opcodes_that_name_build_or_call)
{
	static const struct {
		unsigned char opcode;
		const char *name;
	} rows[] = {
		{ 'c', "GLOBAL" },    { 0x93, "STACK_GLOBAL" }, { 'R', "REDUCE" },
		{ 'b', "BUILD" },     { 'i', "INST" },		{ 'o', "OBJ" },
		{ 0x81, "NEWOBJ" },   { 0x92, "NEWOBJ_EX" },	{ 'P', "PERSID" },
		{ 'Q', "BINPERSID" }, { 0x82, "EXT1" },		{ 0x83, "EXT2" },
		{ 0x84, "EXT4" },     { 0x96, "BYTEARRAY8" },	{ 0x97, "NEXT_BUFFER" },
	};
	char says[120];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		snprintf(says, sizeof(says),
			 "'test' holds the pickle opcode %s at byte 4; a snapshot is plain data, "
			 "and only that is read",
			 rows[i].name);
		refuses_opcode(rows[i].opcode, says);
	}
}

TEST(opcodes_of_other_protocols_and_values)
{
	static const unsigned char unknown[] = "\xff\x98STUVILFgp012dlBC\x8e\x8f\x90\x91";
	char says[60];

	for (size_t i = 0; i < sizeof(unknown); i++) { /* with the 0 at its end */
		snprintf(says, sizeof(says),
			 "'test' holds the unknown pickle opcode 0x%02x at byte 4", unknown[i]);
		refuses_opcode(unknown[i], says);
	}
}

/* ---- long ones --------------------------------------------------------------------------- */

/* [huge, 7]: the huge one is longer than any buffer. */
TEST(test_long4_across_the_window)
{
	FRAG_AUTO(pb_release) struct pickle_bytes b = { 0 };
	struct result r;
	int64_t v = 0;

	pickle_text(&b, "!\\x80\\x04 [ !\\x8b");
	pb_le(&b, 700000, 4);
	for (int i = 0; i < 700000; i++)
		pb_op(&b, i & 0xff);
	pickle_text(&b, "7 ] !.");
	r = read_pickle(&b);
	assert_int_equal(r.rc, 0);
	assert_int_equal(frag_pickle_list(r.p, r.root)->count, 2);
	assert_true(frag_pickle_i64(r.p, frag_pickle_list(r.p, r.root)->items[1], &v) && v == 7);
	frag_pickle_destroy(r.p);
}

TEST(test_texts)
{
	static const size_t lengths[] = { 0, 1, 7, 8, 9, 255, 256, 65000, 65536, 300000, 1000000 };

	for (size_t i = 0; i < 3 * FRAG_ARRAY_LEN(lengths); i++) {
		FRAG_AUTO(pb_release)
		struct pickle_bytes b = { .dialect = (enum pickle_dialect)(i % 3) };
		size_t n = lengths[i / 3], len = 0;
		FRAG_AUTO(free_at) char *text = calloc(1, n + 1);
		struct result r;

		assert_non_null(text);
		memset(text, 'a' + (int)i / 3, n);
		pb_begin(&b);
		pb_text(&b, text);
		pb_op(&b, '.');
		r = read_pickle(&b);
		if (r.rc)
			fail_msg("%s", r.err.msg);
		assert_string_equal(frag_pickle_text(r.p, r.root, &len), text);
		assert_int_equal(len, n);
		frag_pickle_destroy(r.p);
	}
}

/* The window of the input moves many times. */
TEST(test_long_file)
{
	FRAG_AUTO(pb_release) struct pickle_bytes b = { 0 };
	struct frag_pickle_list *l;
	struct result r;
	const uint32_t n = 300000;

	pb_begin(&b);
	pickle_text(&b, "[");
	for (uint32_t i = 0; i < n; i++) {
		if (i % 1000 == 999)
			pickle_text(&b, "] !(");
		pickle_textf(&b, "%lld", (long long)i << (i % 23));
	}
	pickle_text(&b, "] !.");
	r = read_pickle(&b);
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

	t->calls++;
	if (frag_pv_index(pairs[0]) != 1 && *record == UINT32_MAX)
		return 0; /* the first key is not "action" */
	t->pairs += n;
	if (t->answer == 1 && *record == UINT32_MAX)
		*record = t->count++;
	return t->answer;
}

TEST(test_records)
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

TEST(test_notes)
{
	FRAG_AUTO(pb_release) struct pickle_bytes b = pickle_of(PICKLE_PYTHON, "[ { x 7 } { } ]");
	struct result r = read_pickle(&b);
	struct frag_pickle_list *l;

	assert_int_equal(r.rc, 0);
	l = frag_pickle_list(r.p, r.root);
	assert_int_equal(frag_pickle_note(r.p, l->items[0], 5), 0);
	assert_int_equal(frag_pickle_note(r.p, l->items[0], 6), 5);
	assert_int_equal(frag_pickle_node(r.p, l->items[0])->note, 6);
	assert_int_equal(frag_pickle_note(r.p, l->items[1], 5), 0);
	assert_int_equal(frag_pickle_note(r.p, r.root, 5), 0);
	frag_pickle_destroy(r.p);
}

/* ---- hostile ones -------------------------------------------------------------------------- */

TEST(test_deep_nesting)
{
	static const size_t depths[] = { 100, 900, 2000, 100000 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(depths); i++) {
		struct pickle_bytes b = { 0 };
		struct result r;

		pb_begin(&b);
		for (size_t k = 0; k < depths[i]; k++)
			pickle_text(&b, "[");
		for (size_t k = 0; k < depths[i]; k++)
			pickle_text(&b, "]");
		pb_op(&b, '.');
		r = read_pickle(&b);
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
		pb_op(&b, '.');
		r = read_pickle(&b);
		assert_int_equal(r.rc, 0);
		frag_pickle_destroy(r.p);
		pb_release(&b);
	}
}
