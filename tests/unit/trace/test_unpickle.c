/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle machine: hooks for records, notes on values. What it reads: readers.py. */
#include "test.h"

#include "trace/torch/unpickle.h"

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
	static const char bytes[] = "\x80\x04](}(\x8c\x01xK\x07u}e.";
	struct result r = read_with(bytes, sizeof(bytes) - 1, NULL, NULL);
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
