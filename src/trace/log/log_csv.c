/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of one allocation or free per line, as CSV or JSON; see log.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "log.h"

#define LINE_MAX_BYTES 65536u
#define DAY_US 86400000000ull

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
	MOMENT, /* time of day, or a number */
	BLOCK,	/* size of it, should the request not be known */
	CALL,	/* of the driver, see docs/record.md */
	COLUMN_COUNT,
	OTHER = COLUMN_COUNT
};

static const char *const column_names[COLUMN_COUNT][FRAG_LOG_NAMES] = {
	{ "action", "hook" }, { "id", "address", "addr", "pointer", "ptr", "mem_ptr" },
	{ "size", "bytes" },  { "stream" },
	{ "time_us" },	      { "device", "device_id" },
	{ "stack" },	      { "pool" },
	{ "time_s" },	      { "time", "timestamp", "t" },
	{ "mem_size" },	      { "call" },
};

struct reader {
	struct frag_log log; /* first: see read_lines */
	const struct frag_log_csv *how;
	struct frag_log_columns columns;
	unsigned seen; /* a bit for each column */
	uint64_t last_us, midnights_us;
	uint64_t calls, ordered; /* requests of the driver; those in the order of a stream */
	bool apart;		 /* a library's own were left out: the others are a framework's */
};

static bool read_header(struct reader *r, char *text)
{
	r->columns =
		(struct frag_log_columns){ .names = column_names, .names_count = COLUMN_COUNT };
	r->seen = frag_log_header(&r->columns, text);
	r->log.numbered = r->columns.by_first >> ID & 1;
	/* without actions, the sign of the size is that */
	return r->seen >> ID & 1 &&
	       (r->seen >> ACTION & 1 || (r->seen >> SIZE & 1 && !r->log.numbered));
}

bool frag_log_csv_header(char *line)
{
	struct reader r = { 0 };

	return read_header(&r, line);
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

/* HH:MM:SS.micros, local; older documents of RMM have a colon before the micros, and hours may
 * exceed a day. A step back of more than half a day is midnight; a small one is another thread. */
static bool read_clock(struct reader *r, const char *field, uint64_t *out)
{
	unsigned long h, m, s;
	char micros[7] = "";
	int n = 0;

	if (sscanf(field, "%6lu:%2lu:%2lu%*[.:]%n%6[0-9]", &h, &m, &s, &n, micros) < 3 || !n ||
	    m > 59 || s > 60 || field[n + (int)strspn(field + n, "0123456789")])
		return false;
	*out = ((h * 60 + m) * 60 + s) * 1000000 + r->midnights_us;
	*out += strtoul(micros, NULL, 10) *
		(uint64_t[]){ 0, 100000, 10000, 1000, 100, 10, 1 }[strlen(micros)];
	if (*out + DAY_US / 2 < r->last_us) {
		r->midnights_us += DAY_US;
		*out += DAY_US;
	}
	r->last_us = FRAG_MAX(r->last_us, *out);
	return true;
}

/* "0", "GPU_0_bfc", "cuda:0". Host memory is no device: *skip. */
static bool read_device(const char *field, bool *skip, uint64_t *out)
{
	const char *number = field + strcspn(field, "0123456789");

	if (!strncmp(field, "GPU_", 4) || !strncmp(field, "cuda:", 5)) {
		*out = strtoul(number, NULL, 10) & UINT16_MAX;
		*skip |= number > field + 5 || !*number;
		return true;
	}
	if (!strcasecmp(field, "cpu") || strstr(field, "host"))
		*skip = true;
	return *skip || frag_log_number(field, out);
}

static bool read_value(struct reader *r, enum column c, const char *field, uint64_t *out)
{
	if (c == MOMENT && strchr(field, ':'))
		return read_clock(r, field, out);
	return c == TIME_S || c == MOMENT ? read_seconds(field, out) : frag_log_number(field, out);
}

struct row {
	uint64_t value[COLUMN_COUNT];
	struct frag_log_entry e;
	bool acts, skip; /* its action is known; it is not about a request on a device */
};

static int take_field(struct reader *r, struct row *row, enum column c, const char *field,
		      struct frag_err *err)
{
	bool fine = true;

	if (c == ACTION) {
		row->skip |= !strcasecmp(field, "mark"); /* a remark about the program */
		row->acts = frag_log_word(field, &row->e.action);
		return row->acts || row->skip ? 0 : fail_line(r, "unknown action", field, err);
	}
	if (c == SIZE && !(r->seen >> ACTION & 1)) {
		row->acts = true;
		row->e.action =
			*field == '-' || !strtod(field, NULL) ? FRAG_LOG_FREE : FRAG_LOG_ALLOC;
		field += *field == '-';
	}
	if (c == CALL && row->e.action == FRAG_LOG_ALLOC) {
		r->calls++;
		r->ordered += strstr(field, "Async") != NULL;
	}
	if (c == DEVICE)
		fine = read_device(field, &row->skip, &row->value[c]);
	else if (c < CALL)
		fine = read_value(r, c, field, &row->value[c]) ||
		       (c == MOMENT && !r->how->whole); /* in a form that is not known */
	return fine ? 0 : fail_line(r, "not a number:", field, err);
}

static struct row empty_row(const struct reader *r)
{
	struct row row = { .e.line = r->log.lines.line };

	for (unsigned c = 0; c < COLUMN_COUNT; c++)
		row.value[c] = FRAG_LOG_UNKNOWN;
	return row;
}

static int add_row(struct reader *r, struct row *row, struct frag_err *err)
{
	struct frag_log_entry *e = &row->e;
	const uint64_t *value = row->value;

	if (row->skip)
		return 0;
	if (!row->acts || (value[ID] == FRAG_LOG_UNKNOWN && e->action <= FRAG_LOG_FREE))
		return fail_line(r, "action or id missing in", r->log.lines.text, err);
	e->id = value[ID];
	e->bytes = value[value[SIZE] == FRAG_LOG_UNKNOWN ? BLOCK : SIZE];
	e->stream = value[STREAM];
	e->pool = value[POOL];
	e->time_us = value[TIME] != FRAG_LOG_UNKNOWN	 ? value[TIME]
		     : value[TIME_S] != FRAG_LOG_UNKNOWN ? value[TIME_S]
							 : value[MOMENT];
	e->device = value[DEVICE] == FRAG_LOG_UNKNOWN ? 0 : (uint32_t)value[DEVICE];
	if (value[DEVICE] != FRAG_LOG_UNKNOWN && value[DEVICE] > UINT16_MAX)
		return fail_line(r, "device number out of range in", r->log.lines.text, err);
	if (value[STACK] <= frag_log_stacks_count(r->log.stacks))
		e->stack = (uint32_t)value[STACK];
	/* a request that was refused names no block */
	if (e->action == FRAG_LOG_ALLOC && !e->id && r->how->tag)
		e->action = FRAG_LOG_REFUSED;
	return frag_log_add(&r->log, e, err);
}

static int read_line(struct reader *r, char *at, struct frag_err *err)
{
	struct row row = empty_row(r);

	for (unsigned k = 0; k < r->columns.count && !row.skip; k++) {
		const char *field = frag_log_next_field(&at);

		if (!field && r->how->whole)
			return fail_line(r, "fewer fields than", r->how->columns, err);
		if (!field)
			break;
		FRAG_TRY(take_field(r, &row, r->columns.list[k], field, err));
	}
	return add_row(r, &row, err);
}

static int read_object(struct frag_log *log, const json_t *o, uint64_t line, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	struct row row = empty_row(r);
	const char *key;
	json_t *v;

	(void)line;
	json_object_foreach((json_t *)o, key, v)
	{
		char name[32], number[24];
		const char *field = json_string_value(v);

		snprintf(name, sizeof(name), "%.31s", key);
		frag_log_header(&r->columns, name);
		if (r->columns.list[0] == OTHER || json_is_null(v))
			continue;
		r->log.numbered |= !strcmp(key, "id");
		/* of CuPy's hook, what its pool asked the driver for */
		row.skip |= !strcmp(key, "hook") && field && !strcmp(field, "alloc");
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		FRAG_TRY(take_field(r, &row, r->columns.list[0],
				    field		 ? field
				    : json_is_integer(v) ? number
							 : "(no whole number)",
				    err));
	}
	return add_row(r, &row, err);
}

static int read_objects(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;

	r->seen = 1u << ACTION;
	r->columns.names = column_names;
	r->columns.names_count = COLUMN_COUNT;
	return frag_log_json_lines(log, read_object, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	const char *columns = r->how->columns;
	char first[LINE_MAX_BYTES + 1];
	bool begun = false;
	int rc;

	while ((rc = frag_log_next_line(&log->lines, LINE_MAX_BYTES, err)) > 0) {
		char *at = log->lines.text;

		if (at[0] == '#') {
			r->apart |= !strncmp(at, "#apart ", 7);
			FRAG_TRY(frag_log_line_read(&log->lines, frag_log_stacks_line(log, err)));
			continue;
		}
		if (!begun) {
			begun = true;
			if (!r->how->tag && read_header(r, memcpy(first, at, strlen(at) + 1)))
				continue;
			read_header(r, memcpy(first, columns, strlen(columns) + 1));
		}
		at = r->how->tag ? strstr(at, r->how->tag) : at;
		if (at)
			FRAG_TRY(frag_log_line_read(
				&log->lines, read_line(r, at + strlen(r->how->tag ?: ""), err)));
	}
	if (r->calls && !r->apart) /* its allocator is the driver's */
		log->format = 2 * r->ordered > r->calls ? "stream-ordered calls" : "driver calls";
	return rc;
}

int frag_log_csv_read(struct frag_input *in, const struct frag_log_csv *how, const char *options,
		      struct frag_trace **out, struct frag_err *err)
{
	struct reader r = { .log.lines.in = in, .how = how };

	return frag_log_read(&r.log, how->format, options, how->columns ? read_lines : read_objects,
			     out, err);
}
