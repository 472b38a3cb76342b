/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays for NumPy: a value per event in each column, with stacks, frames and texts as numbers that
 * refer to each other; or the segments and blocks of one moment. docs/understand.md lists them.
 */
#include "export.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/grow.h"
#include "recording/recording.h"
#include "trace/input/unpack.h"
#include "trace/strings.h"

/* ---- a zip of arrays ----
 *
 * Not compressed, as NumPy's savez makes it. Arrays begin at multiples of 64 bytes, so that they can
 * be used where they lie (mapped), without a copy. Columns whose length is known beforehand are
 * written side by side, row by row, with a buffer each. Zip64 throughout: arrays may be longer than
 * 4 GiB. Formats: PKWARE's APPNOTE.TXT 4.3, 4.5.3, numpy.lib.format. */

struct column {
	char name[64]; /* in the zip, with .npy */
	unsigned width;
	uint64_t count;	 /* of its values */
	uint64_t offset; /* of its member in the zip */
	uint64_t bytes;	 /* of the member */
	uint64_t at;	 /* current offset */
	uint32_t crc;	 /* so far */
	size_t used;
	unsigned char *buffer;
};

struct zip {
	int fd;
	uint64_t end;
	struct column *columns;
	size_t count, cap;
	struct frag_gzip_check check; /* its tables */
};

#define BUFFER 65536u
#define LOCAL_BYTES 30u /* of the fixed part */
#define EXTRA_BYTES 20u /* of a member's sizes in zip64 */
#define ALIGN 64u
#define VERSION 45u	   /* of the format, with zip64 */
#define DAY (1u << 5 | 1u) /* 1 January 1980: same input, same bytes */

/* Little-endian, whatever the machine. */
static unsigned char *put_le(unsigned char *to, uint64_t v, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		*to++ = (unsigned char)(v >> 8 * i);
	return to;
}

static uint64_t start_of(const struct column *c)
{
	return c->offset + LOCAL_BYTES + strlen(c->name) + EXTRA_BYTES;
}

static int write_at(const struct zip *w, const void *bytes, size_t n, uint64_t at,
		    struct frag_err *err)
{
	const char *from = bytes;

	while (n) {
		ssize_t done = pwrite(w->fd, from, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return FRAG_OUTPUT(err, "cannot write the .npz: %s",
					   strerror(done ? errno : ENOSPC));
		from += done;
		at += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

static int begin(struct zip *w, FILE *to, struct frag_err *err)
{
	struct stat st;

	*w = (struct zip){ .fd = fileno(to) };
	if (fstat(w->fd, &st) || !S_ISREG(st.st_mode))
		return FRAG_USAGE(err, "npz is not written in one go, so it goes into a file: -o "
				       "FILE.npz");
	frag_gzip_check_init(&w->check);
	return 0;
}

static int flush(struct zip *w, struct column *c, const void *bytes, size_t n, struct frag_err *err)
{
	w->check.crc = c->crc;
	frag_gzip_check_plain(&w->check, bytes, n);
	c->crc = w->check.crc;
	c->at += n;
	return write_at(w, bytes, n, c->at - n, err);
}

/* What numpy.lib.format has before the values, filled up to a multiple of ALIGN. */
static int put_head(struct zip *w, struct column *c, struct frag_err *err)
{
	char text[256];
	unsigned char head[512] = "\x93NUMPY\x01";
	int n = snprintf(text, sizeof(text),
			 "{'descr': '%su%u', 'fortran_order': False, 'shape': (%llu,), }",
			 c->width == 1 ? "|" : "<", c->width, (unsigned long long)c->count);
	size_t fixed = 10, len = fixed + (size_t)n + 1;

	len += (ALIGN - (c->at + len) % ALIGN) % ALIGN;
	put_le(head + 8, len - fixed, 2);
	memset(head + fixed, ' ', len - fixed);
	memcpy(head + fixed, text, (size_t)n);
	head[len - 1] = '\n';
	return flush(w, c, head, len, err);
}

/* `count` unsigned numbers of `width` bytes; its number is w->count - 1 after that. */
static int add_array(struct zip *w, const char *name, unsigned width, uint64_t count,
		     struct frag_err *err)
{
	struct column *c;

	if (count > UINT64_MAX >> 8)
		return FRAG_INPUT(err, "%llu rows are too many for an .npz",
				  (unsigned long long)count);
	FRAG_TRY(FRAG_GROW(w->columns, w->count, w->cap, "columns", err));
	c = &w->columns[w->count];
	*c = (struct column){ .width = width, .count = count, .offset = w->end };
	w->count++;
	snprintf(c->name, sizeof(c->name), "%.59s.npy", name);
	c->at = start_of(c);
	FRAG_TRY(put_head(w, c, err));
	w->end = c->at + width * count;
	c->bytes = w->end - start_of(c);
	return 0;
}

/* The next value of a column. */
static int add_value(struct zip *w, size_t column, uint64_t value, struct frag_err *err)
{
	struct column *c = &w->columns[column];

	if (!c->buffer)
		FRAG_TRY_CALLOC(c->buffer, BUFFER, "columns", err);
	if (c->used + c->width > BUFFER) {
		if (c->at + c->used > start_of(c) + c->bytes)
			return FRAG_INPUT(err, "there are more rows than announced");
		FRAG_TRY(flush(w, c, c->buffer, c->used, err));
		c->used = 0;
	}
	put_le(c->buffer + c->used, value, c->width);
	c->used += c->width;
	return 0;
}

/* A whole array of unsigned numbers of this machine's order. */
static int put_array(struct zip *w, const char *name, unsigned width, const void *values,
		     uint64_t count, struct frag_err *err)
{
	struct column *c;

	FRAG_TRY(add_array(w, name, width, count, err));
	c = &w->columns[w->count - 1];
	return count ? flush(w, c, values, (size_t)(width * count), err) : 0;
}

/* Both heads of a member begin in the same way; that of the directory has its offset, too. */
static unsigned char *put_member(unsigned char *to, const struct column *c, bool directory)
{
	size_t name = strlen(c->name);

	to = put_le(to, directory ? 0x02014b50 : 0x04034b50, 4);
	if (directory)
		to = put_le(to, VERSION, 2);
	to = put_le(to, VERSION, 2);
	to = put_le(to, 0, 4); /* flags; stored */
	to = put_le(to, (uint64_t)DAY << 16, 4);
	to = put_le(to, c->crc, 4);
	to = put_le(to, UINT64_MAX, 8); /* both sizes: see the extra field */
	to = put_le(to, name, 2);
	to = put_le(to, directory ? EXTRA_BYTES + 8 : EXTRA_BYTES, 2);
	if (directory) {
		to = put_le(to, 0, 6); /* comment, disk, attributes */
		to = put_le(to, 0, 4);
		to = put_le(to, UINT32_MAX, 4);
	}
	memcpy(to, c->name, name);
	to = put_le(to + name, 1, 2);
	to = put_le(to, directory ? 24 : 16, 2);
	to = put_le(to, c->bytes, 8);
	to = put_le(to, c->bytes, 8);
	return directory ? put_le(to, c->offset, 8) : to;
}

static int end_column(struct zip *w, struct column *c, uint64_t *end, struct frag_err *err)
{
	unsigned char head[256], *to;

	if (c->used)
		FRAG_TRY(flush(w, c, c->buffer, c->used, err));
	c->used = 0;
	if (c->at != start_of(c) + c->bytes)
		return FRAG_INPUT(err, "the rows are not as many as announced");
	to = put_member(head, c, false);
	FRAG_TRY(write_at(w, head, (size_t)(to - head), c->offset, err));
	to = put_member(head, c, true);
	*end += (uint64_t)(to - head);
	return write_at(w, head, (size_t)(to - head), *end - (uint64_t)(to - head), err);
}

/* The directory. */
static int end_zip(struct zip *w, struct frag_err *err)
{
	unsigned char tail[128], *to = tail;
	uint64_t start = w->end, end = start;

	for (size_t i = 0; i < w->count; i++)
		FRAG_TRY(end_column(w, &w->columns[i], &end, err));
	to = put_le(to, 0x06064b50, 4); /* the end of the directory, in zip64 */
	to = put_le(to, 44, 8);
	to = put_le(to, VERSION, 2);
	to = put_le(to, VERSION, 2);
	to = put_le(to, 0, 8);
	to = put_le(to, w->count, 8);
	to = put_le(to, w->count, 8);
	to = put_le(to, end - start, 8);
	to = put_le(to, start, 8);
	to = put_le(to, 0x07064b50, 4); /* where that is */
	to = put_le(to, 0, 4);
	to = put_le(to, end, 8);
	to = put_le(to, 1, 4);
	to = put_le(to, 0x06054b50, 4); /* and the old one, which refers to it */
	to = put_le(to, 0, 4);
	to = put_le(to, UINT32_MAX, 4);
	to = put_le(to, UINT64_MAX, 8);
	to = put_le(to, 0, 2);
	return write_at(w, tail, (size_t)(to - tail), end, err);
}

static void release(struct zip *w)
{
	for (size_t i = 0; i < w->count; i++)
		frag_host_free(w->columns[i].buffer);
	frag_host_free(w->columns);
	*w = (struct zip){ 0 };
}

/* ---- tables -------------------------------------------------------------------------------- */

/* name, bytes of a value, what it is of a struct frag_told *t and its event *e */
#define EVENT_COLUMNS(X) \
	X(time_us, 8, e->time_us) \
	X(bytes, 8, e->kind == FRAG_EV_MARK ? 0 : e->bytes) \
	X(address, 8, t->addr) \
	X(requested_bytes, 8, t->requested) \
	X(allocated_bytes, 8, t->allocated) \
	X(active_bytes, 8, t->active) \
	X(reserved_bytes, 8, t->reserved) \
	X(slot, 4, e->slot) \
	X(stack, 4, e->stack) \
	X(stream, 2, e->stream) \
	X(pool, 2, e->pool) \
	X(kind, 1, t->refused ? FRAG_EV_REFUSED : e->kind) \
	X(flags, 1, e->flags)
/* of a struct frag_listed_segment *s */
#define SEGMENT_COLUMNS(X) \
	X(address, 8, s->addr) \
	X(bytes, 8, s->bytes) \
	X(first_block, 8, s->first_block) \
	X(blocks_count, 8, s->blocks_count) \
	X(stream, 4, s->stream)
/* of a struct frag_listed_block *b, and the event that asked for it */
#define BLOCK_COLUMNS(X) \
	X(address, 8, b->addr) \
	X(bytes, 8, b->bytes) \
	X(requested_bytes, 8, b->slot == FRAG_NO_SLOT ? 0 : b->requested) \
	X(event, 8, birth ? birth->event : UINT64_MAX) \
	X(stack, 4, birth ? birth->stack : FRAG_NO_STACK) \
	X(state, 1, b->state)

struct birth {
	uint64_t event;
	uint32_t stack;
};

struct npz {
	const struct frag_export_job *job;
	struct zip w;
	size_t first;	      /* column of the device in hand */
	struct birth *births; /* [slots] */
	uint32_t ordinal;
};

static int add_column(struct npz *n, const char *table, const char *name, unsigned width,
		      uint64_t count, struct frag_err *err)
{
	char text[64];

	snprintf(text, sizeof(text), "device%u.%s.%s", n->ordinal, table, name);
	return add_array(&n->w, text, width, count, err);
}

/* ---- events -------------------------------------------------------------------------------- */

static int on_event(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct npz *n = ctx;
	const struct frag_event *e = t->e;
	size_t column = n->first;

#define X(name, width, value) FRAG_TRY(add_value(&n->w, column++, (uint64_t)(value), err));
	EVENT_COLUMNS(X)
#undef X
	return 0;
}

static int put_events(struct npz *n, uint32_t dev, struct frag_err *err)
{
	uint64_t count = n->job->trace->devs[dev].events_count;

	n->first = n->w.count;
#define X(name, width, value) FRAG_TRY(add_column(n, "events", #name, width, count, err));
	EVENT_COLUMNS(X)
#undef X
	return frag_export_walk(n->job, dev, on_event, NULL, n, err);
}

/* ---- a moment ------------------------------------------------------------------------------ */

static int note_birth(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct npz *n = ctx;

	(void)err;
	if (t->e->kind == FRAG_EV_ALLOC && !t->refused)
		n->births[t->e->slot] = (struct birth){ t->index, t->e->stack };
	return t->index >= n->job->after;
}

static int put_heap(struct npz *n, const struct frag_heap_list *l, struct frag_err *err)
{
	size_t column = n->w.count;

#define X(name, width, value) \
	FRAG_TRY(add_column(n, "segments", #name, width, l->segments_count, err));
	SEGMENT_COLUMNS(X)
#undef X
	for (const struct frag_listed_segment *s = l->segments; s < l->segments + l->segments_count;
	     s++) {
		size_t c = column;
#define X(name, width, value) FRAG_TRY(add_value(&n->w, c++, value, err));
		SEGMENT_COLUMNS(X)
#undef X
	}
	column = n->w.count;
#define X(name, width, value) FRAG_TRY(add_column(n, "blocks", #name, width, l->blocks_count, err));
	BLOCK_COLUMNS(X)
#undef X
	for (const struct frag_listed_block *b = l->blocks; b < l->blocks + l->blocks_count; b++) {
		const struct birth *birth = b->slot == FRAG_NO_SLOT ? NULL : &n->births[b->slot];
		size_t c = column;
#define X(name, width, value) FRAG_TRY(add_value(&n->w, c++, value, err));
		BLOCK_COLUMNS(X)
#undef X
	}
	return 0;
}

static int on_moment(void *ctx, struct frag_run *run, struct frag_err *err)
{
	FRAG_AUTO(frag_heap_list_release) struct frag_heap_list list = { 0 };

	FRAG_TRY(frag_heap_list_take(&list, run, err));
	return put_heap(ctx, &list, err);
}

static int put_moment(struct npz *n, uint32_t dev, struct frag_err *err)
{
	int rc;

	FRAG_TRY_CALLOC(n->births, (size_t)n->job->trace->devs[dev].slots_count + 1, "export", err);
	rc = frag_export_walk(n->job, dev, note_birth, on_moment, n, err);
	FRAG_FREE(n->births);
	return rc;
}

/* ---- what all devices share ---------------------------------------------------------------- */

static int put_texts(struct npz *n, struct frag_err *err)
{
	const struct frag_strings *s = n->job->trace->strings;
	uint32_t count = s ? frag_strings_count(s) : 0;
	uint64_t bytes = 0;
	size_t column = n->w.count;

	for (uint32_t i = 0; i < count; i++)
		bytes += frag_strings_len(s, i);
	FRAG_TRY(add_array(&n->w, "texts.first", 8, count + 1ull, err));
	FRAG_TRY(add_array(&n->w, "texts.bytes", 1, bytes, err));
	bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		const char *text = frag_strings_get(s, i);

		FRAG_TRY(add_value(&n->w, column, bytes, err));
		for (size_t k = 0; k < frag_strings_len(s, i); k++, bytes++)
			FRAG_TRY(add_value(&n->w, column + 1, (unsigned char)text[k], err));
	}
	return add_value(&n->w, column, bytes, err);
}

static int put_stacks(struct npz *n, struct frag_err *err)
{
	static const uint64_t none = 0;
	const struct frag_stacks *s = &n->job->trace->stacks;
	size_t column;

	FRAG_TRY(put_array(&n->w, "stacks.first", 8, s->count ? s->first : &none, s->count + 1,
			   err));
	FRAG_TRY(put_array(&n->w, "stacks.frames", 4, s->index, s->index_count, err));
	column = n->w.count;
	FRAG_TRY(add_array(&n->w, "frames.name", 4, s->frames_count, err));
	FRAG_TRY(add_array(&n->w, "frames.file", 4, s->frames_count, err));
	FRAG_TRY(add_array(&n->w, "frames.line", 4, s->frames_count, err));
	for (size_t i = 0; i < s->frames_count; i++)
		FRAG_TRY(add_value(&n->w, column, s->frames[i].name, err)
				 ?: add_value(&n->w, column + 1, s->frames[i].file, err)
				 ?: add_value(&n->w, column + 2, s->frames[i].line, err));
	return 0;
}

static int put_all(struct npz *n, struct frag_err *err)
{
	const struct frag_trace *t = n->job->trace;
	bool moment = n->job->after != UINT64_MAX;

	for (uint32_t d = 0; d < t->devs_count; d++) {
		uint64_t peak = n->job->as_recorded
					? frag_target_recorded_peak(&n->job->target, &t->devs[d])
					: 0;

		n->ordinal = t->devs[d].ordinal;
		if (!moment)
			FRAG_TRY(add_column(n, "recorded", "peak_bytes", 8, 1, err)
					 ?: add_value(&n->w, n->w.count - 1, peak, err));
		FRAG_TRY(moment ? put_moment(n, d, err) : put_events(n, d, err));
	}
	if (moment)
		return 0;
	FRAG_TRY(put_array(&n->w, "start_us", 8, &t->start_us, 1, err));
	FRAG_TRY(put_texts(n, err));
	return put_stacks(n, err);
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	struct npz n = { .job = job };
	int rc;

	FRAG_TRY(begin(&n.w, job->to, err));
	rc = put_all(&n, err) ?: end_zip(&n.w, err);
	release(&n.w);
	return rc;
}

const struct frag_export_format frag_export_npz = { .takes_moment = true, .write = put };
