/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_bytes.h"

#include <zstd.h>

#include "test.h"

#include "trace/input/input.h"

/* A file may be read ahead by a thread. */
static int open_input(const void *bytes, size_t count, struct frag_input **in)
{
	return bytes ? frag_input_open_memory("input", bytes, count, in, &test_err)
		     : frag_input_open("input", in, &test_err);
}

/* One by one. */
static int read_all(const void *bytes, size_t count, FILE *to)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	int c = open_input(bytes, count, &in);

	if (c)
		return c;
	while ((c = frag_input_get(in, &test_err)) >= 0)
		fputc(c, to);
	assert_int_equal(frag_input_get(in, &test_err), c); /* for good */
	for (size_t i = 0; c == FRAG_INPUT_EOF && i < FRAG_INPUT_MARGIN; i++)
		assert_int_equal(in->end[i], 0);
	return c == FRAG_INPUT_EOF ? 0 : c;
}

/* Looks, reads and skips of all sizes. */
static void read_pieces(struct frag_input *in, const char *plain, size_t count)
{
	static const size_t steps[] = { 1, 7, 511, 512, 4096, 65535, 65536, 100000, 300001 };
	FRAG_AUTO(free_at) char *got = malloc(count + 1);
	const unsigned char *p;

	for (size_t k = 0, at = 0, n, seen; at < count; k++, at += n) {
		n = FRAG_MIN(steps[k % FRAG_ARRAY_LEN(steps)], count - at);
		assert_int_equal(frag_input_offset(in), at);
		SUCCEEDS(frag_input_peek(in, FRAG_INPUT_PEEK_MAX, &p, &seen, NULL));
		assert_int_equal(seen, FRAG_MIN(count - at, FRAG_INPUT_PEEK_MAX));
		assert_memory_equal(p, plain + at, seen);
		if (k % 3 == 2) {
			SUCCEEDS(frag_input_skip(in, n, NULL));
		} else {
			SUCCEEDS(frag_input_read(in, got, n, NULL));
			assert_memory_equal(got, plain + at, n);
		}
		if (k == 40) /* and may be closed in the middle */
			return;
	}
	FAILS(FRAG_EINPUT, "truncated",
	      count % 2 ? frag_input_skip(in, 1, &test_err)
			: frag_input_read(in, got, 1, &test_err));
	assert_int_equal(test_err.offset, count);
}

int plain_bytes(const void *bytes, size_t count, FILE *to)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	FRAG_AUTO(free_at) char *plain = NULL;
	size_t plain_count;
	FILE *whole = open_memstream(&plain, &plain_count);
	int rc = read_all(bytes, count, whole);

	fclose(whole);
	assert_int_equal(fwrite(plain, 1, plain_count, to), plain_count);
	if (rc)
		return rc;
	SUCCEEDS(open_input(bytes, count, &in));
	read_pieces(in, plain, plain_count);
	return 0;
}

void plain_bytes_short_of_memory(const void *bytes, size_t count)
{
	FRAG_AUTO(fclose_at) FILE *to = fopen("/dev/null", "w");

	FAIL_ALLOCATIONS(read_all(bytes, count, to));
}

void pack_zstd(const void *bytes, size_t count, FILE *to)
{
	FRAG_AUTO(free_at) char *packed = malloc(ZSTD_compressBound(count));
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t n;

	assert_true(packed && ctx);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(ctx, packed, ZSTD_compressBound(count), bytes, count);
	assert_true(!ZSTD_isError(n) && fwrite(packed, 1, n, to) == n);
	ZSTD_freeCCtx(ctx);
}
