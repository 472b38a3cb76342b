/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a trace file: a path, "-" (standard input) or memory. gzip, xz and zstd are
 * recognised by content and decompressed (libarchive); everything else is read as it is. One
 * buffer, whatever the size of the file.
 *
 * Window. [cur, end) are decompressed bytes in the buffer. FRAG_INPUT_MARGIN more bytes after `end`
 * can be read safely (zero at the end of the file): a parser may decode an item of up to that size
 * after one frag_input_ensure and check afterwards whether it went past the end.
 *
 * Ownership: the input is the caller's; bytes from peek are valid until the next call. Errors are
 * sticky: after one, every later call that needs more bytes fails with it. Their offset is that in
 * the decompressed bytes.
 */
#ifndef FRAG_TRACE_INPUT_H
#define FRAG_TRACE_INPUT_H

#include <frag/base.h>
#include <frag/error.h>

/* How far a reader may read past the end, and peek ahead. */
#define FRAG_INPUT_MARGIN 1024u
#define FRAG_INPUT_PEEK_MAX 65536u

struct frag_input_source;

/* The reader may advance cur, up to end; the rest is read-only outside input.c. */
struct frag_input {
	const unsigned char *cur, *end;
	uint64_t end_offset; /* offset of `end` in the decompressed bytes */
	bool at_end;	     /* nothing comes after `end` */
	unsigned char *buffer;
	struct frag_input_source *source;
};

/* Errors: FRAG_EINPUT, also for an empty file; FRAG_ENOMEM. */
int frag_input_open(const char *path, struct frag_input **out, struct frag_err *err);
/* `bytes` must stay while the input is open. name: for messages. */
int frag_input_open_memory(const char *name, const void *bytes, size_t len, struct frag_input **out,
			   struct frag_err *err);
void frag_input_close(struct frag_input *in); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_input *, frag_input_close)

/* How much a compressed file may decompress to, for all inputs of the process; 0: the default, 64
 * MiB plus 500 times its size (PyTorch's recordings reach 30 times). */
void frag_input_set_unpack_max(uint64_t bytes);
/* Traces of these files get names with a folder where two files have the same name. */
void frag_trace_tell_apart(char *const *paths, size_t count);
#define FRAG_INPUT_UNPACK_FREE (64u << 20)
/* The same for a format with compression of its own, whose arrays have `bytes` so far; the larger
 * allowance is that of a repeated recording. FRAG_EINPUT: too much. */
#define FRAG_INPUT_UNPACK_OWN (256u << 20)
int frag_input_check_unpacked(const struct frag_input *in, uint64_t bytes, struct frag_err *err);

/* The path as given, or the name; the input's. */
const char *frag_input_name(const struct frag_input *in);

/* Reads until the window has at least `want` bytes; fewer only at the end of the file. pre: want <=
 * FRAG_INPUT_PEEK_MAX. */
int frag_input_fill(struct frag_input *in, size_t want, struct frag_err *err);

static inline size_t frag_input_left(const struct frag_input *in)
{
	return (size_t)(in->end - in->cur);
}

/* Offset of the next byte in the decompressed bytes. */
static inline uint64_t frag_input_offset(const struct frag_input *in)
{
	return in->end_offset - frag_input_left(in);
}

static inline int frag_input_ensure(struct frag_input *in, size_t want, struct frag_err *err)
{
	if (FRAG_LIKELY(frag_input_left(in) >= want))
		return 0;
	return frag_input_fill(in, want, err);
}

/* The next bytes, without consuming them: *got <= n, fewer only at the end. */
int frag_input_peek(struct frag_input *in, size_t n, const unsigned char **bytes, size_t *got,
		    struct frag_err *err);
/* Consumes exactly n bytes, any n; FRAG_EINPUT "truncated" if the file ends before. */
int frag_input_read(struct frag_input *in, void *dst, size_t n, struct frag_err *err);
int frag_input_skip(struct frag_input *in, uint64_t n, struct frag_err *err);

#define FRAG_INPUT_EOF (-1)
/* Next byte (0..255), FRAG_INPUT_EOF, or an error code. */
static inline int frag_input_get(struct frag_input *in, struct frag_err *err)
{
	if (FRAG_UNLIKELY(in->cur == in->end)) {
		int rc = frag_input_fill(in, 1, err);

		if (rc)
			return rc;
		if (in->cur == in->end)
			return FRAG_INPUT_EOF;
	}
	return *in->cur++;
}

#endif
