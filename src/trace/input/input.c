/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a trace file. Plain files bypass libarchive: read(2) goes straight into the window, but
 * for the first bytes, which were read to tell what the file is. libarchive gets those, too; it
 * uses its raw format with three filters only (others would run programs, or guess).
 *
 * Files above a certain size are read by a thread (trace/ahead.h) if there are enough processors;
 * the window then lies in its blocks.
 *
 * Invariants: buffer <= cur <= end <= buffer + BUFFER_BYTES; only zeros are written to the margin
 * after BUFFER_BYTES.
 */
#include "input.h"

#include <frag/opt.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/ahead.h"
#include "unpack.h"

#define BUFFER_BYTES (256u * 1024u) /* fits the second-level cache beside the reader's own data */
#define RAW_BYTES (64u * 1024u)	    /* compressed bytes handed over at a time */
#define MAGIC_BYTES FRAG_APPENDED_PREAMBLE /* the longest */
#define UNPACK_RATIO 500u
#define AHEAD_FROM (1u << 20) /* plain bytes after which a thread reads ahead */

struct frag_input_source {
	char *name;
	int fd; /* -1: from memory */
	bool own_fd;
	const unsigned char *mem;
	size_t mem_left;

	const struct frag_archive_lib *lib;
	struct archive *archive;      /* NULL: plain */
	unsigned char *raw;	      /* [RAW_BYTES]: the first bytes; later compressed ones */
	size_t raw_at, raw_end;	      /* first bytes that were not read yet */
	struct frag_gzip_check *gzip; /* NULL: not gzip */
	struct frag_appended_read *growing; /* NULL: no recording that grows */
	bool wide, little;		    /* UTF-16, as PowerShell writes texts */
	unsigned char half;		    /* the byte of a character that is not complete … */
	bool odd;			    /* … if there is one */

	uint64_t plain;	 /* bytes that came out so far */
	uint64_t stored; /* bytes that went in */
	bool may_read_ahead;
	struct frag_ahead *ahead; /* NULL: read in line */

	int failed; /* sticky code, text in fault */
	struct frag_err fault;
};

/* A piece of the file as the thread reads it: the rest of the one before goes in front of it. */
struct block {
	size_t got;
	unsigned char bytes[FRAG_INPUT_PEEK_MAX + BUFFER_BYTES + FRAG_INPUT_MARGIN];
};

/* Up to cap bytes as stored in the file; 0 at its end, -1 with errno. */
static ssize_t stored_read(void *ctx, void *dst, size_t cap)
{
	struct frag_input_source *src = ctx;
	bool first = src->raw_at < src->raw_end;
	ssize_t n;

	if (first || src->fd < 0) {
		n = (ssize_t)FRAG_MIN(cap, first ? src->raw_end - src->raw_at : src->mem_left);
		if (!n)
			return 0;
		memcpy(dst, first ? src->raw + src->raw_at : src->mem, (size_t)n);
		if (first) {
			src->raw_at += (size_t)n;
		} else {
			src->mem += n;
			src->mem_left -= (size_t)n;
		}
		return n;
	}
	do
		n = read(src->fd, dst, cap);
	while (n < 0 && errno == EINTR);
	return n;
}

static la_ssize_t archive_pull(struct archive *a, void *ctx, const void **block)
{
	struct frag_input_source *src = ctx;
	ssize_t n = (ssize_t)(src->raw_end - src->raw_at);

	*block = src->raw;
	src->raw_at = src->raw_end;
	if (!n)
		n = stored_read(src, src->raw, RAW_BYTES);
	if (n < 0) {
		src->lib->archive_set_error(a, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	__atomic_fetch_add(&src->stored, (uint64_t)n, __ATOMIC_RELAXED);
	if (src->gzip)
		frag_gzip_check_stored(src->gzip, src->raw, (size_t)n);
	return n;
}

static int fault(const struct frag_input_source *src, const char *what, const char *why,
		 struct frag_err *err)
{
	return frag_fail_at(err, FRAG_EINPUT, src->plain, "cannot %s '%s' at byte %llu: %s", what,
			    src->name, (unsigned long long)src->plain, why);
}

static int archive_fault(const struct frag_input_source *src, struct frag_err *err)
{
	const char *why = src->lib->archive_error_string(src->archive);

	return fault(src, "decompress", why ? why : "damaged data", err);
}

static uint64_t unpack_max; /* 0: by the size of the file; set before anything is read */

void frag_input_set_unpack_max(uint64_t bytes)
{
	unpack_max = bytes;
}

/* A few bytes can unpack to all the memory there is. */
static int check_unpacked(const struct frag_input_source *src, uint64_t bytes, uint64_t floor,
			  uint64_t stored, struct frag_err *err)
{
	uint64_t most = unpack_max ? unpack_max : floor + UNPACK_RATIO * stored;

	if (bytes <= most)
		return 0;
	return frag_fail_at(err, FRAG_EINPUT, src->plain,
			    "'%s' unpacks to more than %s, the decompression limit; "
			    "--unpack-max SIZE raises the limit",
			    src->name, FRAG_BYTES(most));
}

int frag_input_check_unpacked(const struct frag_input *in, uint64_t bytes, struct frag_err *err)
{
	const struct frag_input_source *src = in->source;

	return check_unpacked(src, bytes, FRAG_INPUT_UNPACK_OWN,
			      src->archive ? __atomic_load_n(&src->stored, __ATOMIC_RELAXED)
					   : frag_input_offset(in),
			      err);
}

static int growing_fault(const struct frag_input_source *src, struct frag_err *err)
{
	const struct frag_appended_read *g = src->growing;

	return frag_fail_at(err, FRAG_EINPUT, g->offset,
			    "'%s' is damaged: block %llu at byte %llu: %s", src->name,
			    (unsigned long long)g->number, (unsigned long long)g->offset,
			    g->wrong ? g->wrong : strerror(errno));
}

/* UTF-16 in place to bytes; what is not ASCII becomes '?'. Returns their number. */
static size_t narrow(struct frag_input_source *src, unsigned char *b, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++, src->odd = !src->odd) {
		if (src->odd) {
			unsigned c = src->little ? src->half | b[i] << 8 : src->half << 8 | b[i];

			b[out++] = c < 0x80 ? (unsigned char)c : '?';
		} else {
			src->half = b[i];
		}
	}
	return out;
}

/* Up to `room` plain bytes. */
static int plain_read(struct frag_input_source *src, unsigned char *dst, size_t room, size_t *got,
		      struct frag_err *err)
{
	la_ssize_t n;

	*got = 0;
	if (src->archive) {
		do
			n = src->lib->archive_read_data(src->archive, dst, room);
		while (n == ARCHIVE_RETRY);
		if (n < 0)
			return archive_fault(src, err);
		if (src->gzip && n)
			frag_gzip_check_plain(src->gzip, dst, (size_t)n);
		else if (src->gzip && !frag_gzip_check_good(src->gzip))
			return fault(src, "decompress", "gzip checksum differs", err);
	} else if (src->growing) {
		n = frag_appended_read(src->growing, dst, room);
		if (n < 0)
			return growing_fault(src, err);
	} else {
		do {
			n = stored_read(src, dst, room);
			if (n < 0)
				return fault(src, "read", strerror(errno), err);
			*got = src->wide ? narrow(src, dst, (size_t)n) : (size_t)n;
		} while (n && !*got);
		n = (la_ssize_t)*got;
	}
	src->plain += (uint64_t)n;
	*got = (size_t)n;
	return src->archive
		       ? check_unpacked(src, src->plain, FRAG_INPUT_UNPACK_FREE, src->stored, err)
		       : 0;
}

static int make_block(void *ctx, void *slot, struct frag_err *err)
{
	struct block *b = slot;
	unsigned char *to = b->bytes + FRAG_INPUT_PEEK_MAX;

	FRAG_TRY(plain_read(ctx, to, BUFFER_BYTES, &b->got, err));
	memset(to + b->got, 0, FRAG_INPUT_MARGIN); /* readable from the start: see input.h */
	return b->got > 0;
}

/* Larger files are read by a thread. Copying a plain file takes a fifth of the time of parsing it;
 * decompressing takes longer than parsing. */
static void consider_ahead(struct frag_input *in)
{
	struct frag_input_source *src = in->source;
	cpu_set_t set;

	if (FRAG_LIKELY(!src->may_read_ahead || in->end_offset < AHEAD_FROM))
		return;
	src->may_read_ahead = false;
	if (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1)
		src->ahead = frag_ahead_start(make_block, src, sizeof(struct block));
}

/* The window moves to the next block, with the unread rest before it. */
static int more_ahead(struct frag_input *in, size_t *got)
{
	struct frag_input_source *src = in->source;
	size_t left = frag_input_left(in);
	struct block *b;
	unsigned char *data;
	void *slot;
	int rc = frag_ahead_next(src->ahead, &slot, &src->fault);

	if (rc < 0)
		return src->failed = rc;
	b = slot;
	*got = b->got;
	if (!rc)
		return 0;
	data = b->bytes + FRAG_INPUT_PEEK_MAX;
	memcpy(data - left, in->cur, left);
	in->cur = data - left;
	in->end = data;
	return 0;
}

/* Appends at least one byte at end, unless the file has ended. */
static int more(struct frag_input *in)
{
	struct frag_input_source *src = in->source;
	size_t n;

	if (src->ahead) {
		FRAG_TRY(more_ahead(in, &n));
	} else {
		src->failed =
			plain_read(src, (unsigned char *)in->end,
				   BUFFER_BYTES - (size_t)(in->end - in->buffer), &n, &src->fault);
		if (src->failed)
			return src->failed;
	}
	in->end += n;
	in->end_offset += n;
	if (!n) {
		in->at_end = true;
		memset((unsigned char *)in->end, 0, FRAG_INPUT_MARGIN);
	}
	return 0;
}

int frag_input_fill(struct frag_input *in, size_t want, struct frag_err *err)
{
	size_t left = frag_input_left(in);

	FRAG_ASSERT(want <= FRAG_INPUT_PEEK_MAX);
	if (left >= want || in->at_end)
		return 0;
	consider_ahead(in);
	if (!in->source->ahead && in->cur != in->buffer) {
		memmove(in->buffer, in->cur, left);
		in->cur = in->buffer;
		in->end = in->buffer + left;
	}
	while (frag_input_left(in) < want && !in->at_end) {
		if (in->source->failed || more(in)) {
			if (err)
				*err = in->source->fault;
			return in->source->failed;
		}
	}
	return 0;
}

int frag_input_peek(struct frag_input *in, size_t n, const unsigned char **bytes, size_t *got,
		    struct frag_err *err)
{
	FRAG_TRY(frag_input_ensure(in, n, err));
	*bytes = in->cur;
	*got = FRAG_MIN(n, frag_input_left(in));
	return 0;
}

static int truncated(struct frag_input *in, struct frag_err *err)
{
	return frag_fail_at(err, FRAG_EINPUT, in->end_offset,
			    "'%s' is truncated: it ends at byte %llu", in->source->name,
			    (unsigned long long)in->end_offset);
}

/* The next n bytes; to NULL: they are skipped. */
static int pass(struct frag_input *in, unsigned char *to, uint64_t n, struct frag_err *err)
{
	while (n) {
		size_t part;

		FRAG_TRY(frag_input_ensure(in, 1, err));
		part = (size_t)FRAG_MIN(n, (uint64_t)frag_input_left(in));
		if (!part)
			return truncated(in, err);
		if (to)
			to = (unsigned char *)memcpy(to, in->cur, part) + part;
		in->cur += part;
		n -= part;
	}
	return 0;
}

int frag_input_read(struct frag_input *in, void *dst, size_t n, struct frag_err *err)
{
	return pass(in, dst, n, err);
}

int frag_input_skip(struct frag_input *in, uint64_t n, struct frag_err *err)
{
	return pass(in, NULL, n, err);
}

static bool is_compressed(const unsigned char *b, size_t n)
{
	static const unsigned char xz[6] = { 0xfd, '7', 'z', 'X', 'Z', 0 };
	static const unsigned char zstd[4] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (n >= 3 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8)
		return true; /* gzip, deflate */
	if (n >= sizeof(xz) && !memcmp(b, xz, sizeof(xz)))
		return true;
	return n >= sizeof(zstd) && !memcmp(b, zstd, sizeof(zstd));
}

static int open_growing(struct frag_input_source *src, struct frag_err *err)
{
	FRAG_TRY_CALLOC(src->growing, 1, "input buffer", err);
	if (frag_appended_read_init(src->growing, stored_read, src))
		return frag_fail_nomem(err, "input buffer");
	return 0;
}

static int open_archive(struct frag_input *in, struct frag_err *err)
{
	struct frag_input_source *src = in->source;
	const char *why;
	const struct frag_archive_lib *lib = src->lib = frag_archive_lib(&why);
	struct archive_entry *entry;
	struct archive *a;
	int rc;

	if (!lib)
		return FRAG_INPUT(err,
				  "cannot decompress '%s': libarchive cannot be loaded: %s (or "
				  "decompress the file first)",
				  src->name, why);
	a = src->archive = lib->archive_read_new();
	if (src->raw[0] == 0x1f)
		src->gzip = frag_host_alloc(sizeof(*src->gzip));
	FRAG_CHECK_ALLOC(a && (src->gzip || src->raw[0] != 0x1f), "input buffer", err);
	if (src->gzip)
		frag_gzip_check_init(src->gzip);
	if (lib->archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    lib->archive_read_support_filter_xz(a) != ARCHIVE_OK ||
	    lib->archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    lib->archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    lib->archive_read_support_format_empty(a) != ARCHIVE_OK ||
	    lib->archive_read_open(a, src, NULL, archive_pull, NULL) != ARCHIVE_OK)
		return archive_fault(src, err);
	if (lib->archive_filter_code(a, 0) == ARCHIVE_FILTER_NONE)
		return fault(src, "decompress", "damaged or truncated header", err);
	rc = lib->archive_read_next_header(a, &entry);
	in->at_end = rc == ARCHIVE_EOF;
	return in->at_end || rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 0 : archive_fault(src, err);
}

static int start(struct frag_input *in, struct frag_err *err)
{
	struct frag_input_source *src = in->source;
	size_t have = 0;
	bool growing;
	ssize_t n = 1;

	while (have < MAGIC_BYTES && n > 0) {
		n = stored_read(src, src->raw + have, RAW_BYTES - have);
		have += (size_t)FRAG_MAX(n, 0);
	}
	if (n < 0)
		return frag_fail(
			err, FRAG_EINPUT, "cannot read '%s': %s%s", src->name, strerror(errno),
			errno == EISDIR ? " (cufrag sweep replays all recordings in it)" : "");
	if (!have)
		return FRAG_INPUT(err, "'%s' is empty", src->name);
	src->raw_end = have;
	growing = frag_appended_is(src->raw, have);
	if (growing)
		FRAG_TRY(open_growing(src, err));
	else if (is_compressed(src->raw, have))
		FRAG_TRY(open_archive(in, err));
	src->little = have > 1 && src->raw[0] == 0xff && src->raw[1] == 0xfe;
	src->wide = src->little || (have > 1 && src->raw[0] == 0xfe && src->raw[1] == 0xff);
	src->raw_at = src->wide ? 2 : src->raw_at;
	FRAG_TRY(frag_input_fill(in, 9, err));
	/* what editors put before a text, and nothing else begins with */
	for (int i = 0; i < 3 && frag_input_left(in) >= 3; i++)
		in->cur += memcmp(in->cur, "\xef\xbb\xbf", 3) ? 0 : 3;
	if (frag_input_left(in) == 0)
		return FRAG_INPUT(err,
				  growing ? "'%s' contains no request yet"
					  : "'%s' is empty when decompressed",
				  src->name);
	return 0;
}

static int create(const char *name, struct frag_input **out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;

	FRAG_TRY_CALLOC(in, 1, "input", err);
	in->source = frag_host_calloc(1, sizeof(*in->source));
	/* zeros: the margin after the window can be read before the end is reached */
	in->buffer = frag_host_calloc(1, BUFFER_BYTES + FRAG_INPUT_MARGIN);
	if (in->source) {
		in->source->fd = -1;
		in->source->name = frag_host_strdup(name);
		in->source->raw = frag_host_alloc(RAW_BYTES);
	}
	FRAG_CHECK_ALLOC(in->buffer && in->source && in->source->name && in->source->raw,
			 "input buffer", err);
	in->cur = in->end = in->buffer;
	*out = FRAG_GIVE(in);
	return 0;
}

int frag_input_open(const char *path, struct frag_input **out, struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	struct frag_input_source *src;
	struct stat st;

	FRAG_TRY(create(path, &in, err));
	src = in->source;
	src->own_fd = strcmp(path, "-") != 0;
	src->fd = src->own_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (src->fd < 0)
		return FRAG_INPUT(err, "cannot open '%s': %s", path, strerror(errno));
	/* a pipe may be slow, and closing would wait for the thread: no thread then */
	src->may_read_ahead = src->own_fd && !fstat(src->fd, &st) && S_ISREG(st.st_mode);
	FRAG_TRY(start(in, err));
	*out = FRAG_GIVE(in);
	return 0;
}

int frag_input_open_memory(const char *name, const void *bytes, size_t len, struct frag_input **out,
			   struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;

	FRAG_TRY(create(name, &in, err));
	in->source->mem = bytes;
	in->source->mem_left = len;
	FRAG_TRY(start(in, err));
	*out = FRAG_GIVE(in);
	return 0;
}

void frag_input_close(struct frag_input *in)
{
	struct frag_input_source *src = in ? in->source : NULL;

	if (src) {
		frag_ahead_stop(src->ahead);
		if (src->archive)
			src->lib->archive_read_free(src->archive);
		if (src->own_fd && src->fd >= 0)
			close(src->fd);
		if (src->growing)
			frag_appended_read_release(src->growing);
		FRAG_FREE(src->raw, src->gzip, src->growing, src->name, src);
	}
	if (in)
		FRAG_FREE(in->buffer, in);
}

const char *frag_input_name(const struct frag_input *in)
{
	return in->source->name;
}
