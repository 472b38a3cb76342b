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

#include "lib/grow.h"
#include "trace/input/input.h"
#include "trace/log/log.h"

#define COLUMNS_MAX 32u
#define LINE_MAX_BYTES 4096u

enum column { ID, LOWER, UPPER, SIZE, COLUMN_COUNT, OTHER = COLUMN_COUNT };

static const char *const column_names[COLUMN_COUNT][3] = {
	{ "id", "buffer", "buffer_id" },
	{ "lower", "start", "begin" },
	{ "upper", NULL, NULL },
	{ "size", NULL, NULL },
};

struct reader {
	struct frag_log_lines lines;
	unsigned columns[COLUMNS_MAX]; /* enum column, in the order of the file */
	unsigned columns_count;
	struct buffer {
		uint64_t lower, upper, bytes;
	} * list;
	size_t count, cap;
};

/* ---- lines ----------------------------------------------------------------------- */

static unsigned column_of(const char *name)
{
	for (unsigned c = 0; c < COLUMN_COUNT; c++)
		for (unsigned k = 0; k < 3 && column_names[c][k]; k++)
			if (!strcasecmp(name, column_names[c][k]))
				return c;
	return OTHER;
}

/* Names the columns; says which of those needed is missing. */
static unsigned read_header(struct reader *r)
{
	char *at = r->lines.text, *field;
	unsigned seen = 0;

	while ((field = frag_log_next_field(&at)) && r->columns_count < COLUMNS_MAX) {
		unsigned c = column_of(field);

		if (c != OTHER && !(seen >> c & 1))
			seen |= 1u << c;
		else
			c = OTHER;
		r->columns[r->columns_count++] = c;
	}
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
		return frag_log_fail(err, "line", r->lines.line,
				     "column '%s': '%.40s' is not a number", column_names[c][0],
				     field);
	return 0;
}

static int read_buffer(struct reader *r, struct frag_err *err)
{
	uint64_t value[COLUMN_COUNT] = { 0 };
	unsigned seen = 0;
	char *at = r->lines.text;

	for (unsigned k = 0; k < r->columns_count; k++) {
		char *field = frag_log_next_field(&at);
		unsigned c = r->columns[k];

		if (!field)
			break;
		if (c == OTHER)
			continue;
		seen |= 1u << c;
		if (c != ID) /* any text */
			FRAG_TRY(read_number(r, field, c, &value[c], err));
	}
	if (seen != (1u << COLUMN_COUNT) - 1)
		return frag_log_fail(err, "line", r->lines.line, "too few columns");
	if (value[LOWER] >= value[UPPER] || !value[SIZE] || value[SIZE] > FRAG_MAX_REQUEST)
		return frag_log_fail(err, "line", r->lines.line,
				     "a buffer needs a size above 0, and an upper above its lower");
	FRAG_TRY(FRAG_GROW(r->list, r->count, r->cap, "buffers", err));
	r->list[r->count++] = (struct buffer){ value[LOWER], value[UPPER], value[SIZE] };
	return 0;
}

/* ---- events ---------------------------------------------------------------------- */

struct edge {
	uint64_t when;
	uint32_t buffer;
	bool begins;
};

/* Ends before beginnings; beginnings in the order of the file. */
FRAG_COMPARE(compare_edges, struct edge, FRAG_ORDER(x->when, y->when),
	     (int)x->begins - (int)y->begins, FRAG_ORDER(x->buffer, y->buffer))

static struct edge *make_edges(const struct reader *r)
{
	struct edge *edges = frag_host_calloc(2 * r->count + 1, sizeof(*edges));

	if (!edges)
		return NULL;
	for (uint32_t i = 0; i < r->count; i++) {
		edges[2 * i] = (struct edge){ r->list[i].lower, i, true };
		edges[2 * i + 1] = (struct edge){ r->list[i].upper, i, false };
	}
	qsort(edges, 2 * r->count, sizeof(*edges), compare_edges);
	return edges;
}

/* Buffers are known by their number: as if it were an address. */
static int hand_over(const struct reader *r, struct frag_log *log, struct frag_err *err)
{
	FRAG_AUTO_FREE struct edge *edges = make_edges(r);

	FRAG_CHECK_ALLOC(edges, "events", err);
	for (size_t i = 0; i < 2 * r->count; i++) {
		const struct edge *e = &edges[i];

		FRAG_TRY(frag_log_add(log,
				      &(struct frag_log_entry){
					      .action = e->begins ? FRAG_LOG_ALLOC : FRAG_LOG_FREE,
					      .id = e->buffer + 1,
					      .bytes = r->list[e->buffer].bytes,
					      .time_us = e->when - edges[0].when,
				      },
				      err));
	}
	return 0;
}

/* ---- the format ------------------------------------------------------------------ */

static int probe(const unsigned char *bytes, size_t len)
{
	char text[LINE_MAX_BYTES];
	struct reader r = { .lines.text = text };

	return frag_log_first_line(bytes, len, text, sizeof(text)) &&
			       read_header(&r) == COLUMN_COUNT
		       ? 60
		       : 0;
}

static int read_buffers(struct reader *r, struct frag_err *err)
{
	unsigned missing;
	int rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err);

	if (rc < 0)
		return rc;
	missing = read_header(r);
	if (missing != COLUMN_COUNT)
		return frag_fail(err, FRAG_EINPUT, "'%s' has no column '%s'",
				 frag_input_name(r->lines.in), column_names[missing][0]);
	while ((rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err)) > 0)
		FRAG_TRY(read_buffer(r, err));
	if (!rc && (!r->count || r->count > UINT32_MAX / 2))
		return frag_fail(err, FRAG_EINPUT, "'%s' has %s buffers",
				 frag_input_name(r->lines.in), r->count ? "too many" : "no");
	return rc;
}

static int read_minimalloc(struct frag_input *in, const char *options, struct frag_trace **out,
			   struct frag_err *err)
{
	FRAG_AUTO(frag_log_release) struct frag_log log = { 0 };
	struct reader r = { .lines.in = in };
	int rc;

	(void)options; /* one device, 0 */
	FRAG_TRY(frag_log_init(&log, "line", NULL, err));
	log.complete = true;
	rc = read_buffers(&r, err) ?: hand_over(&r, &log, err)
				   ?: frag_log_finish(&log, "minimalloc", out, err);
	frag_log_lines_release(&r.lines);
	frag_host_free(r.list);
	return rc;
}

const struct frag_reader_ops frag_reader_minimalloc = {
	.name = "minimalloc",
	.summary = "MiniMalloc's CSV of buffers: id,lower,upper,size",
	.probe = probe,
	.read = read_minimalloc,
};
