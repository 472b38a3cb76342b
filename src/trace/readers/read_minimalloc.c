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

#include "trace/build/build.h"
#include "trace/input/input.h"
#include "trace/log/log.h"

#define COLUMNS_MAX 32u
#define LINE_MAX_BYTES 4096u
#define TIME_MAX ((1ull << 40) - 1)

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
		return frag_fail_at(err, FRAG_EINPUT, r->lines.line,
				    "line %llu: '%.40s' is no number of column '%s'",
				    (unsigned long long)r->lines.line, field, column_names[c][0]);
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
		return frag_fail_at(err, FRAG_EINPUT, r->lines.line,
				    "line %llu has too few columns",
				    (unsigned long long)r->lines.line);
	if (value[LOWER] >= value[UPPER] || !value[SIZE] || value[SIZE] > FRAG_MAX_REQUEST)
		return frag_fail_at(err, FRAG_EINPUT, r->lines.line,
				    "line %llu: a buffer needs a size, and an upper above its "
				    "lower",
				    (unsigned long long)r->lines.line);
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
static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	int order = FRAG_ORDER(x->when, y->when) ?: (int)x->begins - (int)y->begins;

	return order ?: FRAG_ORDER(x->buffer, y->buffer);
}

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

/* The slot freed last is reused first. free_slots, slots: scratch of r->count numbers. */
static void fill_events(const struct reader *r, const struct edge *edges, uint32_t *slots,
			uint32_t *free_slots, struct frag_trace_dev *dev)
{
	uint32_t free_count = 0;

	for (size_t i = 0; i < 2 * r->count; i++) {
		const struct edge *e = &edges[i];
		uint32_t slot;

		if (e->begins)
			slot = free_count ? free_slots[--free_count] : dev->slots_count++;
		else
			free_slots[free_count++] = slot = slots[e->buffer];
		slots[e->buffer] = slot;
		dev->events[i] = (struct frag_event){
			.bytes = r->list[e->buffer].bytes,
			.time_us = FRAG_MIN(e->when - edges[0].when, TIME_MAX),
			.slot = slot,
			.kind = e->begins ? FRAG_EV_ALLOC : FRAG_EV_FREE,
		};
	}
	dev->events_count = 2 * r->count;
	dev->recorded_count = dev->events_count;
}

static int fill_device(const struct reader *r, struct frag_trace_dev *dev, struct frag_err *err)
{
	FRAG_AUTO_FREE struct edge *edges = make_edges(r);
	FRAG_AUTO_FREE uint32_t *scratch = frag_host_calloc(2 * r->count + 1, sizeof(*scratch));

	dev->events = frag_host_calloc(2 * r->count + 1, sizeof(*dev->events));
	dev->streams = frag_host_calloc(1, sizeof(*dev->streams));
	dev->pools = frag_host_calloc(1, sizeof(*dev->pools));
	dev->streams_count = dev->pools_count = 1;
	if (edges && scratch && dev->events && dev->streams && dev->pools)
		fill_events(r, edges, scratch, scratch + r->count, dev);
	else
		frag_fail_nomem(err, "events");
	return dev->events_count ? 0 : FRAG_ENOMEM;
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

static int read_csv(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	struct reader *r = frag_host_calloc(1, sizeof(*r));
	struct frag_trace *trace = frag_host_calloc(1, sizeof(*trace));
	int rc = r && trace ? 0 : frag_fail_nomem(err, "trace");

	(void)options; /* one device, 0 */
	if (!rc) {
		r->lines.in = in;
		trace->settings.max_split_bytes = trace->settings.limit_bytes = UINT64_MAX;
		rc = read_buffers(r, err);
	}
	if (!rc) {
		trace->devs = frag_host_calloc(1, sizeof(*trace->devs));
		trace->settings.conf = frag_host_strdup("");
		trace->devs_count = trace->devs != NULL;
		if (!trace->devs || !trace->settings.conf)
			rc = frag_fail_nomem(err, "trace");
	}
	if (!rc)
		rc = fill_device(r, trace->devs, err);
	if (r) {
		frag_log_lines_release(&r->lines);
		frag_host_free(r->list);
	}
	frag_host_free(r);
	if (rc)
		frag_trace_destroy(trace);
	else
		*out = trace;
	return rc;
}

const struct frag_reader_ops frag_reader_minimalloc = {
	.name = "minimalloc",
	.summary = "MiniMalloc's CSV of buffers: id,lower,upper,size",
	.probe = probe,
	.read = read_csv,
};
