/* SPDX-License-Identifier: Apache-2.0 */
/* A zip of arrays; see npz_write.h. Formats: PKWARE's APPNOTE.TXT 4.3, 4.5.3, numpy.lib.format. */
#include "npz_write.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/grow.h"

#define BUFFER 65536u
#define LOCAL_BYTES 30u /* of the fixed part */
#define EXTRA_BYTES 20u /* of a member's sizes in zip64 */
#define ALIGN 64u
#define VERSION 45u	   /* of the format, with zip64 */
#define DAY (1u << 5 | 1u) /* 1 January 1980: same input, same bytes */

/* Little-endian, whatever the machine. */
static unsigned char *put(unsigned char *to, uint64_t v, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		*to++ = (unsigned char)(v >> 8 * i);
	return to;
}

static uint64_t start_of(const struct frag_npz_column *c)
{
	return c->offset + LOCAL_BYTES + strlen(c->name) + EXTRA_BYTES;
}

static int write_at(const struct frag_npz *w, const void *bytes, size_t n, uint64_t at,
		    struct frag_err *err)
{
	const char *from = bytes;

	while (n) {
		ssize_t done = pwrite(w->fd, from, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return frag_fail(err, FRAG_EOUTPUT, "cannot write the .npz: %s",
					 strerror(done ? errno : ENOSPC));
		from += done;
		at += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

int frag_npz_begin(struct frag_npz *w, FILE *to, struct frag_err *err)
{
	struct stat st;

	*w = (struct frag_npz){ .fd = fileno(to) };
	if (fstat(w->fd, &st) || !S_ISREG(st.st_mode))
		return frag_fail(err, FRAG_EUSAGE,
				 "npz is not written in one go, so it goes into a file: -o "
				 "FILE.npz");
	frag_gzip_check_init(&w->check);
	return 0;
}

static int flush(struct frag_npz *w, struct frag_npz_column *c, const void *bytes, size_t n,
		 struct frag_err *err)
{
	w->check.crc = c->crc;
	frag_gzip_check_plain(&w->check, bytes, n);
	c->crc = w->check.crc;
	c->at += n;
	return write_at(w, bytes, n, c->at - n, err);
}

/* What numpy.lib.format has before the values, filled up to a multiple of ALIGN. */
static int put_array_head(struct frag_npz *w, struct frag_npz_column *c, struct frag_err *err)
{
	char text[256];
	unsigned char head[512] = "\x93NUMPY\x01";
	int n = snprintf(text, sizeof(text),
			 "{'descr': '%su%u', 'fortran_order': False, 'shape': (%llu,), }",
			 c->width == 1 ? "|" : "<", c->width, (unsigned long long)c->count);
	size_t fixed = 10, len = fixed + (size_t)n + 1;

	len += (ALIGN - (c->at + len) % ALIGN) % ALIGN;
	put(head + 8, len - fixed, 2);
	memset(head + fixed, ' ', len - fixed);
	memcpy(head + fixed, text, (size_t)n);
	head[len - 1] = '\n';
	return flush(w, c, head, len, err);
}

int frag_npz_column(struct frag_npz *w, const char *name, unsigned width, uint64_t count,
		    struct frag_err *err)
{
	struct frag_npz_column *c;

	if (count > UINT64_MAX >> 8)
		return frag_fail(err, FRAG_EINPUT, "%llu rows are too many for an .npz",
				 (unsigned long long)count);
	FRAG_TRY(FRAG_GROW(w->columns, w->count, w->cap, "columns", err));
	c = &w->columns[w->count];
	*c = (struct frag_npz_column){ .width = width, .count = count, .offset = w->end };
	w->count++;
	snprintf(c->name, sizeof(c->name), "%s.npy", name);
	c->at = start_of(c);
	FRAG_TRY(put_array_head(w, c, err));
	w->end = c->at + width * count;
	c->bytes = w->end - start_of(c);
	return 0;
}

int frag_npz_add(struct frag_npz *w, size_t column, uint64_t value, struct frag_err *err)
{
	struct frag_npz_column *c = &w->columns[column];

	if (!c->buffer)
		FRAG_TRY_CALLOC(c->buffer, BUFFER, "columns", err);
	if (c->used + c->width > BUFFER) {
		if (c->at + c->used > start_of(c) + c->bytes)
			return frag_fail(err, FRAG_EINPUT, "there are more rows than announced");
		FRAG_TRY(flush(w, c, c->buffer, c->used, err));
		c->used = 0;
	}
	put(c->buffer + c->used, value, c->width);
	c->used += c->width;
	return 0;
}

int frag_npz_put(struct frag_npz *w, const char *name, unsigned width, const void *values,
		 uint64_t count, struct frag_err *err)
{
	struct frag_npz_column *c;

	FRAG_TRY(frag_npz_column(w, name, width, count, err));
	c = &w->columns[w->count - 1];
	return count ? flush(w, c, values, (size_t)(width * count), err) : 0;
}

/* Both heads of a member begin in the same way; that of the directory has its offset, too. */
static unsigned char *put_member(unsigned char *to, const struct frag_npz_column *c, bool directory)
{
	size_t name = strlen(c->name);

	to = put(to, directory ? 0x02014b50 : 0x04034b50, 4);
	if (directory)
		to = put(to, VERSION, 2);
	to = put(to, VERSION, 2);
	to = put(to, 0, 4); /* flags; stored */
	to = put(to, (uint64_t)DAY << 16, 4);
	to = put(to, c->crc, 4);
	to = put(to, UINT64_MAX, 8); /* both sizes: see the extra field */
	to = put(to, name, 2);
	to = put(to, directory ? EXTRA_BYTES + 8 : EXTRA_BYTES, 2);
	if (directory) {
		to = put(to, 0, 6); /* comment, disk, attributes */
		to = put(to, 0, 4);
		to = put(to, UINT32_MAX, 4);
	}
	memcpy(to, c->name, name);
	to = put(to + name, 1, 2);
	to = put(to, directory ? 24 : 16, 2);
	to = put(to, c->bytes, 8);
	to = put(to, c->bytes, 8);
	return directory ? put(to, c->offset, 8) : to;
}

static int end_column(struct frag_npz *w, struct frag_npz_column *c, uint64_t *end,
		      struct frag_err *err)
{
	unsigned char head[256], *to;

	if (c->used)
		FRAG_TRY(flush(w, c, c->buffer, c->used, err));
	c->used = 0;
	if (c->at != start_of(c) + c->bytes)
		return frag_fail(err, FRAG_EINPUT, "the rows are not as many as announced");
	to = put_member(head, c, false);
	FRAG_TRY(write_at(w, head, (size_t)(to - head), c->offset, err));
	to = put_member(head, c, true);
	*end += (uint64_t)(to - head);
	return write_at(w, head, (size_t)(to - head), *end - (uint64_t)(to - head), err);
}

int frag_npz_end(struct frag_npz *w, struct frag_err *err)
{
	unsigned char tail[128], *to = tail;
	uint64_t start = w->end, end = start;

	for (size_t i = 0; i < w->count; i++)
		FRAG_TRY(end_column(w, &w->columns[i], &end, err));
	to = put(to, 0x06064b50, 4); /* the end of the directory, in zip64 */
	to = put(to, 44, 8);
	to = put(to, VERSION, 2);
	to = put(to, VERSION, 2);
	to = put(to, 0, 8);
	to = put(to, w->count, 8);
	to = put(to, w->count, 8);
	to = put(to, end - start, 8);
	to = put(to, start, 8);
	to = put(to, 0x07064b50, 4); /* where that is */
	to = put(to, 0, 4);
	to = put(to, end, 8);
	to = put(to, 1, 4);
	to = put(to, 0x06054b50, 4); /* and the old one, which refers to it */
	to = put(to, 0, 4);
	to = put(to, UINT32_MAX, 4);
	to = put(to, UINT64_MAX, 8);
	to = put(to, 0, 2);
	return write_at(w, tail, (size_t)(to - tail), end, err);
}

void frag_npz_release(struct frag_npz *w)
{
	for (size_t i = 0; i < w->count; i++)
		frag_host_free(w->columns[i].buffer);
	frag_host_free(w->columns);
	*w = (struct frag_npz){ 0 };
}
