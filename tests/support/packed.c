/* SPDX-License-Identifier: Apache-2.0 */
#include "packed.h"

#include <archive.h>
#include <archive_entry.h>
#include <zstd.h>

#include "test.h"

#include "trace/cft/cft_write.h"
#include "trace/input/input.h"

/* As the zstd program does it: with a checksum. */
static struct blob packed_zstd(const void *bytes, size_t n)
{
	struct blob b = { malloc(n + 65536), 0 };
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	assert_true(b.bytes && ctx);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	b.len = ZSTD_compress2(ctx, b.bytes, n + 65536, bytes, n);
	assert_false(ZSTD_isError(b.len));
	ZSTD_freeCCtx(ctx);
	return b;
}

struct blob packed(const void *bytes, size_t n, enum pack how)
{
	struct blob b = { NULL, 0 };
	struct archive_entry *e;
	struct archive *a;

	if (how == ZSTD)
		return packed_zstd(bytes, n);
	a = archive_write_new();
	e = archive_entry_new();
	b.bytes = malloc(n + 65536);
	assert_non_null(b.bytes);
	if (how == GZIP)
		archive_write_add_filter_gzip(a);
	else if (how == XZ)
		archive_write_add_filter_xz(a);
	archive_write_set_format_raw(a);
	archive_write_set_bytes_in_last_block(a, 1);
	assert_int_equal(archive_write_open_memory(a, b.bytes, n + 65536, &b.len), ARCHIVE_OK);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, bytes, n), n);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_entry_free(e);
	archive_write_free(a);
	return b;
}

extern const struct frag_reader_ops frag_reader_cft;

struct blob cft_image_of(const struct frag_trace *t)
{
	struct blob im = { 0 };
	struct frag_err err = { 0 };
	FILE *to = open_memstream((char **)&im.bytes, &im.len);

	if (!to || frag_cft_write_stream(t, to, &err))
		FRAG_BUG(err.msg);
	fclose(to);
	return im;
}

int cft_image_read(const void *bytes, size_t len, const char *options, struct frag_trace **out,
		   struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	int rc = frag_input_open_memory("image", bytes, len, &in, err);

	*out = NULL;
	return rc ? rc : frag_reader_cft.read(in, options, out, err);
}
