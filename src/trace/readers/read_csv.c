/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of one's own as CSV: one allocation or free per line. A header may name the columns, in any
 * order, others are passed over; without one they are action,id,size,stream,time_us. What is
 * missing at the end of a line, or empty, is unknown. Lines that begin with # are remarks, some of
 * which tell stacks (log_stacks.c), whose numbers are in a column of that name.
 *
 *	alloc,7,1048576,0,1200
 *	free,7
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trace/log/log.h"

#define LINE_MAX_BYTES 4096u

enum column {
	ACTION,
	ID,
	SIZE,
	STREAM,
	TIME,
	DEVICE,
	STACK,
	POOL,
	TIME_S, /* as `export --to csv` writes it */
	COLUMN_COUNT,
	OTHER = COLUMN_COUNT
};

static const char *const column_names[COLUMN_COUNT][FRAG_LOG_NAMES] = {
	{ "action" },	     { "id", "address", "addr", "pointer" },
	{ "size", "bytes" }, { "stream" },
	{ "time_us" },	     { "device" },
	{ "stack" },	     { "pool" },
	{ "time_s" },
};

struct reader {
	struct frag_log log; /* first: see read_lines */
	struct frag_log_columns columns;
};

/* Is it a header? Then the columns are its. Cuts the text up. */
static bool read_header(struct reader *r, char *text)
{
	unsigned seen;

	r->columns =
		(struct frag_log_columns){ .names = column_names, .names_count = COLUMN_COUNT };
	seen = frag_log_header(&r->columns, text);
	r->log.numbered = r->columns.by_first >> ID & 1;
	return (seen >> ACTION & 1) && (seen >> ID & 1);
}

static void columns_without_header(struct reader *r)
{
	r->log.numbered = true;
	for (unsigned c = ACTION; c <= TIME; c++)
		r->columns.list[c] = (uint8_t)c;
	r->columns.count = TIME + 1;
}

static int fail_line(const struct reader *r, const char *what, const char *field,
		     struct frag_err *err)
{
	return frag_log_fail(err, "line", r->log.lines.line, "%s '%.40s'", what, field);
}

/* Decimal seconds to microseconds. */
static bool read_seconds(const char *field, uint64_t *out)
{
	char *end;
	double seconds = strtod(field, &end);

	*out = FRAG_LOG_UNKNOWN;
	if (!*field)
		return true;
	if (*end || !isdigit((unsigned char)*field) || strpbrk(field, "xX") || !(seconds < 1e12))
		return false;
	*out = (uint64_t)(seconds * 1e6 + 0.5);
	return true;
}

static bool read_value(enum column c, const char *field, uint64_t *out)
{
	return c == TIME_S ? read_seconds(field, out) : frag_log_number(field, out);
}

/* A line about the program, not about a request; no part of the history. */
static bool is_remark(const char *action)
{
	return !strcasecmp(action, "mark");
}

static int read_entry(struct reader *r, struct frag_err *err)
{
	uint64_t value[COLUMN_COUNT] = { 0 };
	struct frag_log_entry e = { .line = r->log.lines.line };
	char *at = r->log.lines.text;
	bool known = false;

	for (unsigned c = ID; c < COLUMN_COUNT; c++)
		value[c] = FRAG_LOG_UNKNOWN;
	for (unsigned k = 0; k < r->columns.count; k++) {
		enum column c = r->columns.list[k];
		char *field = frag_log_next_field(&at);

		if (!field)
			break;
		if (c == ACTION && is_remark(field))
			return 0;
		if (c == ACTION && !(known = frag_log_word(field, &e.action)))
			return fail_line(r, "unknown action", field, err);
		if (c != ACTION && c != OTHER && !read_value(c, field, &value[c]))
			return fail_line(r, "not a number:", field, err);
	}
	if (!known || (value[ID] == FRAG_LOG_UNKNOWN && e.action <= FRAG_LOG_FREE))
		return fail_line(r, "action or id missing in", r->log.lines.text, err);
	e.id = value[ID];
	e.bytes = value[SIZE];
	e.stream = value[STREAM];
	e.pool = value[POOL];
	e.time_us = value[TIME] == FRAG_LOG_UNKNOWN ? value[TIME_S] : value[TIME];
	e.device = value[DEVICE] == FRAG_LOG_UNKNOWN ? 0 : (uint32_t)value[DEVICE];
	if (value[DEVICE] != FRAG_LOG_UNKNOWN && value[DEVICE] > UINT16_MAX)
		return fail_line(r, "device number out of range in", r->log.lines.text, err);
	if (value[STACK] != FRAG_LOG_UNKNOWN &&
	    value[STACK] <= frag_log_stacks_count(r->log.stacks))
		e.stack = (uint32_t)value[STACK];
	return frag_log_add(&r->log, &e, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	char first[LINE_MAX_BYTES + 1];
	bool begun = false;
	int rc;

	while ((rc = frag_log_next_line(&log->lines, LINE_MAX_BYTES, err)) > 0) {
		if (log->lines.text[0] == '#') {
			FRAG_TRY(frag_log_line_read(&log->lines, frag_log_stacks_line(log, err)));
			continue;
		}
		if (!begun) {
			begun = true;
			memcpy(first, log->lines.text, log->lines.len + 1);
			if (read_header(r, first))
				continue;
			columns_without_header(r);
		}
		FRAG_TRY(frag_log_line_read(&log->lines, read_entry(r, err)));
	}
	return rc;
}

static int read_csv(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	struct reader r = { .log.lines.in = in };

	return frag_log_read(&r.log, "csv", options, read_lines, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	struct reader r = { 0 };
	enum frag_log_action action;
	char line[LINE_MAX_BYTES], *at = line, *field;

	while (len && (*bytes == '#' || *bytes == '\n')) {
		const unsigned char *end = memchr(bytes, '\n', len);

		if (!end)
			return 0;
		len -= (size_t)(end + 1 - bytes);
		bytes = end + 1;
	}
	if (!frag_log_first_line(bytes, len, line, sizeof(line)))
		return 0;
	field = frag_log_next_field(&at);
	if (frag_log_word(field, &action) && at) /* the reader reports a bad id with its line */
		return 55;
	return frag_log_first_line(bytes, len, line, sizeof(line)) && read_header(&r, line) ? 55
											    : 0;
}

const struct frag_reader_ops frag_reader_csv = {
	.name = "csv",
	.summary = "a log as CSV: action,id,size,stream,time_us (a header may order them, and add "
		   "device); what is missing is unknown",
	.probe = probe,
	.read = read_csv,
};
