/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MiniMalloc's CSV (google/minimalloc): a header that names the columns, then
 * one buffer per line. Needed are id (or buffer), lower (or start), upper and size,
 * in any order; other columns are ignored. A buffer lives from lower up to, not
 * including, upper. Moments become times in microseconds where they fit, and at
 * one moment the frees come before the allocations.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/log/log.h"

#define LINE_MAX_BYTES 4096u
#define BUFFERS_MAX (UINT32_MAX / 2)

enum column { ID, LOWER, UPPER, SIZE, COLUMN_COUNT, OTHER = COLUMN_COUNT };

static const char *const column_names[COLUMN_COUNT][FRAG_LOG_NAMES] = {
	{ "id", "buffer", "buffer_id" },
	{ "lower", "start", "begin" },
	{ "upper", NULL, NULL },
	{ "size", NULL, NULL },
};

struct reader {
	struct frag_log log; /* first: see read_buffers; later: the beginnings and ends */
	struct frag_log_columns columns;
	uint64_t first; /* the earliest beginning */
};

/* Names the columns; says which of those needed is missing. */
static unsigned read_header(struct reader *r)
{
	unsigned seen;

	r->columns =
		(struct frag_log_columns){ .names = column_names, .names_count = COLUMN_COUNT };
	seen = frag_log_header(&r->columns, r->log.lines.text);
	for (unsigned c = 0; c < COLUMN_COUNT; c++)
		if (!(seen >> c & 1))
			return c;
	return COLUMN_COUNT;
}

static int read_number(const struct reader *r, const char *field, enum column c, uint64_t *out,
		       struct frag_err *err)
{
	char *end;

	*out = strtoull(field, &end, 10);
	if (!isdigit((unsigned char)*field) || *end || *out > INT64_MAX)
		return frag_log_fail(err, "line", r->log.lines.line,
				     "column '%s': '%.40s' is not a number", column_names[c][0],
				     field);
	return 0;
}

/* A buffer is known by its number, as if it were an address. At one moment ends come before
 * beginnings, which are in the order of the file. */
static int add_buffer(struct reader *r, const uint64_t *value, struct frag_err *err)
{
	uint64_t number = r->log.later_count / 2;
	struct frag_log_entry e = { .action = FRAG_LOG_FREE,
				    .id = number + 1,
				    .bytes = value[SIZE],
				    .time_us = value[UPPER],
				    .line = number };

	FRAG_TRY(frag_log_later(&r->log, &e, err));
	e.action = FRAG_LOG_ALLOC;
	e.time_us = value[LOWER];
	e.line += 1ull << 32;
	r->first = FRAG_MIN(r->first, e.time_us);
	return frag_log_later(&r->log, &e, err);
}

static int read_buffer(struct reader *r, struct frag_err *err)
{
	uint64_t value[COLUMN_COUNT] = { 0 };
	unsigned seen = 0;
	char *at = r->log.lines.text;

	for (unsigned k = 0; k < r->columns.count; k++) {
		char *field = frag_log_next_field(&at);
		unsigned c = r->columns.list[k];

		if (!field)
			break;
		if (c == OTHER)
			continue;
		seen |= 1u << c;
		if (c != ID) /* any text */
			FRAG_TRY(read_number(r, field, c, &value[c], err));
	}
	if (seen != (1u << COLUMN_COUNT) - 1)
		return frag_log_fail(err, "line", r->log.lines.line, "too few columns");
	if (value[LOWER] >= value[UPPER] || !value[SIZE] || value[SIZE] > FRAG_MAX_REQUEST)
		return frag_log_fail(err, "line", r->log.lines.line,
				     "a buffer needs a size above 0, and an upper above its lower");
	return add_buffer(r, value, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	char text[LINE_MAX_BYTES];
	struct reader r = { .log.lines.text = text };

	return frag_log_first_line(bytes, len, text, sizeof(text)) &&
			       read_header(&r) == COLUMN_COUNT
		       ? 60
		       : 0;
}

static int read_buffers(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	unsigned missing;
	int rc = frag_log_next_line(&r->log.lines, LINE_MAX_BYTES, err);

	if (rc < 0)
		return rc;
	missing = read_header(r);
	if (missing != COLUMN_COUNT)
		return FRAG_INPUT(err, "'%s' has no column '%s'", frag_input_name(r->log.lines.in),
				  column_names[missing][0]);
	while ((rc = frag_log_next_line(&r->log.lines, LINE_MAX_BYTES, err)) > 0)
		FRAG_TRY(read_buffer(r, err));
	if (!rc && (!r->log.later_count || r->log.later_count / 2 > BUFFERS_MAX))
		return FRAG_INPUT(err, "'%s' has %s buffers", frag_input_name(r->log.lines.in),
				  r->log.later_count ? "too many" : "no");
	return rc ? rc : frag_log_add_sorted(log, 1, 0 - r->first, err);
}

static int read_minimalloc(struct frag_input *in, const char *options, struct frag_trace **out,
			   struct frag_err *err)
{
	struct reader r = { .log = { .lines.in = in, .complete = true }, .first = UINT64_MAX };

	(void)options; /* one device, 0 */
	return frag_log_read(&r.log, "minimalloc", NULL, read_buffers, out, err);
}

const struct frag_reader_ops frag_reader_minimalloc = {
	.name = "minimalloc",
	.summary = "MiniMalloc's CSV of buffers: id,lower,upper,size",
	.probe = probe,
	.read = read_minimalloc,
};
