/* SPDX-License-Identifier: Apache-2.0 */
/* The input: plain and compressed bytes, windows, ends, damage; and interned strings. */
#include "test.h"

#include <unistd.h>

#include "base/appended_cft.h"
#include "trace/input/input.h"
#include "trace/strings.h"
#include "packed.h"

#define BIG 1000003u /* several windows, and no multiple of anything */

static const char *const pack_names[] = { "plain", "gzip", "xz", "zstd" };

/* Not random: compresses, but not to nothing. */
static unsigned char byte_at(size_t i)
{
	return (unsigned char)((i * 2654435761u >> 13) & 31);
}

static unsigned char *sample(size_t n)
{
	unsigned char *bytes = malloc(n + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(i);
	return bytes;
}

static struct frag_input *open_blob(const struct blob *b)
{
	struct frag_input *in = NULL;

	SUCCEEDS(frag_input_open_memory("blob", b->bytes, b->len, &in, &test_err));
	return in;
}

/* ---- sound files ------------------------------------------------------------------- */

TEST(test_bytes_one_by_one)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(BIG);

	for (int how = 0; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed(bytes, BIG, (enum pack)how);
		FRAG_AUTO(frag_input_close_at) struct frag_input *in = open_blob(&b);

		for (size_t i = 0; i < BIG; i++) {
			if (i % 1024 == 0)
				assert_int_equal(frag_input_offset(in), i);
			if (frag_input_get(in, NULL) != byte_at(i))
				fail_msg("%s: byte %zu differs", pack_names[how], i);
		}
		assert_int_equal(frag_input_get(in, NULL), FRAG_INPUT_EOF);
		assert_int_equal(frag_input_get(in, NULL), FRAG_INPUT_EOF);
		assert_int_equal(frag_input_offset(in), BIG);
	}
}

/* Looks, reads and skips of all sizes, mixed. */
TEST(test_windows)
{
	static const size_t steps[] = { 1, 7, 511, 512, 4096, 65535, 65536, 100000, 300001 };
	FRAG_AUTO(free_at) unsigned char *bytes = sample(BIG), *got = malloc(BIG);

	assert_non_null(got);
	for (int how = 0; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed(bytes, BIG, (enum pack)how);
		FRAG_AUTO(frag_input_close_at) struct frag_input *in = open_blob(&b);
		size_t at = 0;

		for (size_t k = 0; at < BIG; k++) {
			size_t n = FRAG_MIN(steps[k % FRAG_ARRAY_LEN(steps)], BIG - at), seen;
			size_t look = FRAG_MIN(n, FRAG_INPUT_PEEK_MAX);
			const unsigned char *p;

			SUCCEEDS(frag_input_peek(in, look, &p, &seen, NULL));
			assert_int_equal(seen, look);
			assert_memory_equal(p, bytes + at, look);
			if (k % 3 == 2) {
				SUCCEEDS(frag_input_skip(in, n, NULL));
			} else {
				SUCCEEDS(frag_input_read(in, got, n, NULL));
				assert_memory_equal(got, bytes + at, n);
			}
			at += n;
			assert_int_equal(frag_input_offset(in), at);
		}
	}
}

/* Bytes past the end read as zero. */
TEST(test_margin)
{
	for (size_t n = 1; n < 3000; n += 331) {
		FRAG_AUTO(free_at) unsigned char *bytes = sample(n);
		struct blob b = { bytes, n };
		FRAG_AUTO(frag_input_close_at) struct frag_input *in = open_blob(&b);

		SUCCEEDS(frag_input_fill(in, FRAG_INPUT_PEEK_MAX, NULL));
		assert_int_equal(frag_input_left(in), n);
		assert_true(in->at_end);
		for (size_t i = 0; i < FRAG_INPUT_MARGIN; i++)
			assert_int_equal(in->end[i], 0);
	}
}

TEST(test_reading_over_the_end)
{
	static unsigned char bytes[10] = "abcdefghij";
	unsigned char got[11];
	struct blob b = { bytes, 10 };

	for (int skip = 0; skip < 2; skip++) {
		FRAG_AUTO(frag_input_close_at) struct frag_input *in = open_blob(&b);
		const unsigned char *p;
		size_t seen;

		assert_int_equal(frag_input_read(in, got, 3, &test_err), 0);
		assert_int_equal(frag_input_peek(in, 100, &p, &seen, &test_err), 0);
		assert_int_equal(seen, 7);
		assert_int_equal(skip ? frag_input_skip(in, 8, &test_err)
				      : frag_input_read(in, got, 8, &test_err),
				 FRAG_EINPUT);
		assert_int_equal(test_err.offset, 10);
		assert_non_null(strstr(test_err.msg, "truncated"));
	}
}

/* Plain bytes that begin like something else come through unchanged. */
TEST(test_plain_is_not_mangled)
{
	static const char *const starts[] = { "BZh91AY",
					      "PK\3\4",
					      "070701",
					      "ustar",
					      "\x1f\x8b\x07",
					      "#mtree\n",
					      "\x28\xb5\x2f",
					      "begin 644 x\n",
					      "LZIP\1",
					      "\x80\x04\x95",
					      "id,lower,upper,size\n" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(starts); i++) {
		struct blob b = { (unsigned char *)starts[i], strlen(starts[i]) };
		FRAG_AUTO(frag_input_close_at) struct frag_input *in = open_blob(&b);

		for (size_t k = 0; k < b.len; k++)
			assert_int_equal(frag_input_get(in, NULL), b.bytes[k]);
		assert_int_equal(frag_input_get(in, NULL), FRAG_INPUT_EOF);
	}
}

TEST(test_files)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(BIG), *got = malloc(BIG);
	const char *path = test_make_file("plain", bytes, BIG);
	struct frag_input *in = NULL;

	assert_non_null(got);
	FAILS(FRAG_EINPUT, "empty",
	      frag_input_open(test_make_file("empty", "", 0), &in, &test_err));
	assert_int_equal(frag_input_open(path, &in, &test_err), 0);
	assert_string_equal(frag_input_name(in), path);
	assert_int_equal(frag_input_read(in, got, BIG, &test_err), 0);
	assert_memory_equal(got, bytes, BIG);
	frag_input_close(in);
	FAILS(FRAG_EINPUT, "cannot open", frag_input_open(test_path("none"), &in, &test_err));
	FAILS(FRAG_EINPUT, "cannot read", frag_input_open("/tmp", &in, &test_err));
}

/* A pipe gives what it has, a few bytes at a time. */
TEST(test_pipe)
{
	static const char text[] = "\x80\x04hello";
	int ends[2], old = dup(STDIN_FILENO);
	struct frag_input *in = NULL;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, sizeof(text) - 1), sizeof(text) - 1);
	close(ends[1]);
	assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
	close(ends[0]);
	SUCCEEDS(frag_input_open("-", &in, NULL));
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		assert_int_equal(frag_input_get(in, NULL), (unsigned char)text[i]);
	assert_int_equal(frag_input_get(in, NULL), FRAG_INPUT_EOF);
	frag_input_close(in);
	assert_true(dup2(old, STDIN_FILENO) >= 0);
	close(old);
}

/* ---- damaged files ----------------------------------------------------------------- */

static int read_all(const void *bytes, size_t n, uint64_t *plain, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	int rc = frag_input_open_memory("blob", bytes, n, &in, err), c = 0;

	if (rc)
		return rc;
	while ((c = frag_input_get(in, err)) >= 0)
		;
	*plain = frag_input_offset(in);
	if (c != FRAG_INPUT_EOF) /* sticky */
		assert_int_equal(frag_input_get(in, err), c);
	return c == FRAG_INPUT_EOF ? 0 : c;
}

TEST(test_truncated_archives)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(5000);

	for (int how = GZIP; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed(bytes, 5000, (enum pack)how);

		/* from where it is an archive; the last bytes of gzip and zstd are checksums */
		for (size_t n = 6; n < b.len; n++) {
			uint64_t plain = 0;
			FRAG_AUTO(free_at) unsigned char *part = malloc(n);

			assert_non_null(part);
			memcpy(part, b.bytes, n);
			if (read_all(part, n, &plain, &test_err) != FRAG_EINPUT)
				fail_msg("%s cut to %zu of %zu reads %llu bytes", pack_names[how],
					 n, b.len, (ull)plain);
			assert_non_null(strstr(test_err.msg, "blob"));
		}
	}
}

/* A .cft that grows: three blocks of lines. */
static struct blob growing(void)
{
	static const char *const texts[] = { "action,id,size\nalloc,1,512\n",
					     "free,1\nalloc,2,64\n", "free,2\n" };
	struct blob b = { malloc(4096), FRAG_APPENDED_PREAMBLE };

	assert_non_null(b.bytes);
	frag_appended_preamble(b.bytes);
	for (uint64_t i = 0; i < 3; i++) {
		size_t n = strlen(texts[i]);
		struct frag_appended_block head = frag_appended_head(texts[i], n, i);

		memcpy(b.bytes + b.len, &head, sizeof(head));
		memcpy(b.bytes + b.len + sizeof(head), texts[i], n);
		b.len += sizeof(head) + n;
	}
	return b;
}

/* It can be read in the middle of a write: whole blocks count, from the first request on. */
TEST(test_growing_is_read_at_any_length)
{
	static const size_t lines[] = { 27, 45, 52 };
	FRAG_AUTO(blob_release) struct blob b = growing();
	size_t ends[3], at = FRAG_APPENDED_PREAMBLE;

	for (int i = 0; i < 3; i++) {
		at += sizeof(struct frag_appended_block) + lines[i] - (i ? lines[i - 1] : 0);
		ends[i] = at;
	}
	assert_int_equal(at, b.len);
	for (size_t n = FRAG_APPENDED_PREAMBLE; n <= b.len; n++) {
		int whole = (n >= ends[0]) + (n >= ends[1]) + (n >= ends[2]);
		uint64_t plain = 0;
		int rc = read_all(b.bytes, n, &plain, &test_err);

		assert_int_equal(rc, whole ? 0 : FRAG_EINPUT);
		if (whole)
			assert_int_equal(plain, lines[whole - 1]);
		else
			assert_non_null(strstr(test_err.msg, "contains no request yet"));
	}
}

/* Blocks that changed, moved or claim the impossible are an error that says where. */
TEST(test_growing_damage)
{
	FRAG_AUTO(blob_release) struct blob b = growing();
	size_t second = FRAG_APPENDED_PREAMBLE + sizeof(struct frag_appended_block) + 27;
	uint64_t plain = 0;

	for (size_t n = FRAG_APPENDED_PREAMBLE; n < b.len; n++) {
		b.bytes[n] ^= 0x40;
		/* a greater length is a block that is not whole */
		if (read_all(b.bytes, b.len, &plain, &test_err) == FRAG_EINPUT)
			assert_true(strstr(test_err.msg, "is damaged: block") ||
				    strstr(test_err.msg, "contains no request yet"));
		else
			assert_true(plain < 52);
		b.bytes[n] ^= 0x40;
	}
	b.bytes[second + sizeof(struct frag_appended_block)] ^= 1;
	assert_int_equal(read_all(b.bytes, b.len, &plain, &test_err), FRAG_EINPUT);
	assert_string_equal(test_err.msg, "'blob' is damaged: block 1 at byte 67: checksum "
					  "differs");
}

TEST(test_damaged_archives)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(20000);

	for (int how = GZIP; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed(bytes, 20000, (enum pack)how);
		uint64_t plain = 0;

		memset(b.bytes + b.len / 2, 0x5a, 40);
		FAILS(FRAG_EINPUT, "decompress", read_all(b.bytes, b.len, &plain, &test_err));
	}
}

/* gzip files of two members, as `cat a.gz b.gz` makes them, have two checksums. */
TEST(test_gzip_members)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(6000), *both = NULL, *got = malloc(6000);
	FRAG_AUTO(blob_release)
	struct blob a = packed(bytes, 2500, GZIP), b = packed(bytes + 2500, 3500, GZIP);
	struct blob joined;
	struct frag_input *in;

	both = malloc(a.len + b.len);
	assert_true(both && got);
	memcpy(both, a.bytes, a.len);
	memcpy(both + a.len, b.bytes, b.len);
	joined = (struct blob){ both, a.len + b.len };
	in = open_blob(&joined);
	SUCCEEDS(frag_input_read(in, got, 6000, NULL));
	assert_memory_equal(got, bytes, 6000);
	assert_int_equal(frag_input_get(in, NULL), FRAG_INPUT_EOF);
	frag_input_close(in);
}

TEST(test_empty_inside)
{
	for (int how = PLAIN; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed("", 0, (enum pack)how);
		struct frag_input *in = NULL;

		FAILS(FRAG_EINPUT, "empty",
		      frag_input_open_memory("void", b.bytes, b.len, &in, &test_err));
	}
}

TEST(test_out_of_memory)
{
	FRAG_AUTO(free_at) unsigned char *bytes = sample(3000);

	for (int how = PLAIN; how < PACKS; how++) {
		FRAG_AUTO(blob_release) struct blob b = packed(bytes, 3000, (enum pack)how);
		uint64_t plain = 0;

		FAIL_ALLOCATIONS(read_all(b.bytes, b.len, &plain, NULL))
		plain = 0;
		assert_int_equal(plain, 3000);
	}
}

/* ---- strings ----------------------------------------------------------------------- */

static uint32_t intern_number(struct frag_strings *s, unsigned number, char *text)
{
	size_t n = (size_t)sprintf(text, "string %u", number);
	uint32_t index;

	SUCCEEDS(frag_strings_intern(s, text, n, &index, NULL));
	assert_int_equal(frag_strings_len(s, index), n);
	return index;
}

TEST(test_strings)
{
	struct frag_strings *s = NULL;
	const char *first;
	char text[32], *zeros;
	uint32_t index;

	SUCCEEDS(frag_strings_create(&s, NULL));
	assert_int_equal(frag_strings_count(s), 1);
	assert_string_equal(frag_strings_get(s, 0), "");
	assert_string_equal(frag_strings_get(s, 77), "");
	SUCCEEDS(frag_strings_intern(s, "", 0, &index, NULL));
	assert_int_equal(index, 0);
	SUCCEEDS(frag_strings_intern(s, "first", 5, &index, NULL));
	first = frag_strings_get(s, index);
	for (uint32_t i = 0; i < 20000; i++)
		assert_int_equal(intern_number(s, i, text), i + 2);
	for (uint32_t i = 0; i < 20000; i += 7) {
		assert_int_equal(intern_number(s, i, text), i + 2);
		assert_string_equal(frag_strings_get(s, i + 2), text);
	}
	assert_ptr_equal(frag_strings_get(s, 1), first);
	assert_string_equal(first, "first");
	/* a long one, with zeros in it */
	zeros = calloc(1, 200000);
	SUCCEEDS(frag_strings_intern(s, zeros, 200000, &index, NULL));
	assert_int_equal(frag_strings_len(s, index), 200000);
	free(zeros);
	frag_strings_destroy(s);
	frag_strings_destroy(NULL);
}

TEST(test_strings_out_of_memory)
{
	FRAG_AUTO(frag_strings_destroy_at) struct frag_strings *s = NULL;
	uint32_t index;
	int failed = 0;

	frag_host_fail_after(1);
	assert_int_equal(frag_strings_create(&s, NULL), FRAG_ENOMEM);
	frag_host_fail_after(0);
	SUCCEEDS(frag_strings_create(&s, NULL));
	for (uint32_t i = 0; i < 1000; i++) {
		char text[16];
		int n = snprintf(text, sizeof(text), "%u", i), rc;

		frag_host_fail_after(1);
		rc = frag_strings_intern(s, text, (size_t)n, &index, NULL);
		frag_host_fail_after(0);
		failed += rc == FRAG_ENOMEM;
		if (rc)
			SUCCEEDS(frag_strings_intern(s, text, (size_t)n, &index, NULL));
		assert_int_equal(index, i + 1);
	}
	assert_in_range(failed, 3, 100);
}
