/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads ahead: output equals input, whichever thread is faster. */
#include "test.h"

#include "trace/ahead.h"
#include "trace/input/input.h"
#include "packed.h"

#define PLAIN_BYTES (5u << 20)

static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)((i * 0x9e3779b97f4a7c15ull >> 40) % 11 + i / 65536);
}

/* ---- the thread itself ------------------------------------------------------------- */

struct producer {
	uint64_t at, end;
	size_t piece; /* most bytes at a time */
	bool fails;   /* at the end */
};

#define BLOCK_BYTES 200000u
struct block {
	size_t got;
	unsigned char bytes[BLOCK_BYTES];
};

static int produce(void *ctx, void *slot, struct frag_err *err)
{
	struct producer *p = ctx;
	struct block *b = slot;
	size_t n = (size_t)FRAG_MIN((uint64_t)FRAG_MIN(BLOCK_BYTES, p->piece), p->end - p->at);

	if (!n && p->fails)
		return frag_fail_at(err, FRAG_EINPUT, p->at, "nothing comes any more");
	for (size_t i = 0; i < n; i++)
		b->bytes[i] = byte_at(p->at + i);
	p->at += n;
	b->got = n;
	return n > 0;
}

static void check_block(const struct block *b, uint64_t at)
{
	for (size_t i = 0; i < b->got; i++)
		if (b->bytes[i] != byte_at(at + i))
			fail_msg("byte %llu differs", (ull)(at + i));
}

static void run(struct producer p)
{
	struct frag_ahead *a = frag_ahead_start(produce, &p, sizeof(struct block), 2);
	const struct block *before = NULL;
	struct frag_err err = { 0 };
	uint64_t at = 0;
	void *slot;

	assert_non_null(a);
	while (frag_ahead_next(a, &slot, &err) == 1) {
		const struct block *b = slot;

		if (before) /* it is still there */
			check_block(before, at - before->got);
		check_block(b, at);
		at += b->got;
		before = b;
	}
	assert_true(at == p.end);
	for (int again = 0; again < 3; again++) {
		assert_int_equal(frag_ahead_next(a, &slot, &err), p.fails ? FRAG_EINPUT : 0);
		if (p.fails)
			assert_string_equal(err.msg, "nothing comes any more");
		else
			assert_int_equal(((struct block *)slot)->got, 0);
	}
	frag_ahead_stop(a);
}

TEST(test_thread)
{
	run((struct producer){ .end = 0, .piece = 1 });
	run((struct producer){ .end = 1, .piece = 1 });
	run((struct producer){ .end = 5000, .piece = 17 });
	run((struct producer){ .end = PLAIN_BYTES, .piece = SIZE_MAX });
	run((struct producer){ .end = PLAIN_BYTES + 3, .piece = 100000, .fails = true });
}

/* Whoever has seen enough may go. */
TEST(test_stop)
{
	for (int blocks = 0; blocks < 8; blocks++) {
		struct producer p = { .end = UINT64_MAX, .piece = SIZE_MAX };
		struct frag_ahead *a = frag_ahead_start(produce, &p, sizeof(struct block), 2);
		void *slot;

		assert_non_null(a);
		for (int i = 0; i < blocks; i++)
			assert_int_equal(frag_ahead_next(a, &slot, NULL), 1);
		frag_ahead_stop(a);
	}
	frag_ahead_stop(NULL);
	for (uint64_t nth = 1; nth <= 6; nth++) { /* host memory is short */
		frag_host_fail_after(nth);
		assert_null(frag_ahead_start(produce, NULL, 100, 2));
	}
	frag_host_fail_after(0);
}

/* ---- files --------------------------------------------------------------------------- */

static struct blob zipped(void)
{
	FRAG_AUTO(free_at) unsigned char *plain = malloc(PLAIN_BYTES);
	struct blob b;

	assert_non_null(plain);
	for (size_t i = 0; i < PLAIN_BYTES; i++)
		plain[i] = byte_at(i);
	b = packed(plain, PLAIN_BYTES, GZIP);
	return b;
}

/* All of it, in pieces that do not fit the blocks; `peeks` looks far ahead now and then. */
static int read_through(struct frag_input *in, uint64_t *at, bool peeks, struct frag_err *err)
{
	unsigned char bytes[70000];

	for (*at = 0;;) {
		const unsigned char *seen;
		size_t n = 1 + (size_t)(*at * 7919 % 69000), got;
		int rc = 0;

		if (peeks)
			rc = frag_input_peek(in, FRAG_INPUT_PEEK_MAX, &seen, &got, err);
		else
			rc = frag_input_peek(in, 1, &seen, &got, err);
		if (rc || !got)
			return rc;
		for (size_t i = 0; i < got; i += 333)
			assert_int_equal(seen[i], byte_at(*at + i));
		assert_true(frag_input_offset(in) == *at);
		n = FRAG_MIN(n, got);
		assert_int_equal(frag_input_read(in, bytes, n, err), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], byte_at(*at + i));
		*at += n;
	}
}

TEST(test_compressed_file)
{
	FRAG_AUTO(blob_release) struct blob b = zipped();
	const char *path = test_make_file("x.gz", b.bytes, b.len);
	struct frag_input *in = NULL;
	struct frag_err err = { 0 };
	uint64_t at;

	for (int peeks = 0; peeks < 2; peeks++) {
		assert_int_equal(frag_input_open(path, &in, &err), 0);
		assert_int_equal(read_through(in, &at, peeks, &err), 0);
		assert_int_equal(at, PLAIN_BYTES);
		assert_true(in->at_end);
		for (size_t i = 0; i < FRAG_INPUT_MARGIN; i++)
			assert_int_equal(in->end[i], 0);
		frag_input_close(in);
	}
	assert_int_equal(frag_input_open(path, &in, &err), 0);
	assert_int_equal(frag_input_skip(in, 3u << 20, &err), 0); /* and closed in the middle */
	frag_input_close(in);
}

/* Damage is found at the same place, with or without the thread. */
TEST(test_damaged_file)
{
	FRAG_AUTO(blob_release) struct blob b = zipped();
	struct frag_input *in = NULL;
	struct frag_err err = { 0 }, inline_err = { 0 };
	uint64_t at, inline_at;
	const char *path;

	b.bytes[b.len - 6] ^= 1; /* of the checksum */
	path = test_make_file("x.gz", b.bytes, b.len);
	assert_int_equal(frag_input_open(path, &in, &err), 0);
	assert_int_equal(read_through(in, &at, false, &err), FRAG_EINPUT);
	assert_int_equal(frag_input_fill(in, 1, &err), FRAG_EINPUT); /* for good */
	frag_input_close(in);
	assert_int_equal(frag_input_open_memory(path, b.bytes, b.len, &in, &inline_err), 0);
	assert_int_equal(read_through(in, &inline_at, false, &inline_err), FRAG_EINPUT);
	frag_input_close(in);
	assert_string_equal(err.msg, inline_err.msg);
	assert_true(err.offset == inline_err.offset);
	assert_true(at == inline_at);
}
