/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a log of allocations and frees, as tools write them, to a struct frag_trace: identifiers
 * (addresses mostly) become slots. Shared by all readers of logs. What a log does not say stays
 * unknown: the format's name in the trace then ends with FRAG_LOG_LACKS and a list, which .cft
 * keeps and cufrag info shows.
 *
 * - A free of something that was never allocated ends a block from before the log: it is live from the
 *   beginning if the free tells its size, else left out and counted (uncertain_blocks).
 * - A block that was allocated and freed in the log is not freed again: that is an error.
 * - Requests of 0 bytes, and frees of what they gave, are no events, whatever else lives there.
 * - A last line without its end that makes no sense is left out: the program was killed.
 * - Time never goes back: lines that several threads wrote out of order get the time of the line before.
 *
 * Ownership: frag_log_read frees all that the log holds; entries are values, copied. Memory: a
 * fixed size for each entry.
 */
#ifndef FRAG_TRACE_LOG_H
#define FRAG_TRACE_LOG_H

#include <frag/trace.h>

#include "trace/input/input.h"

#define FRAG_LOG_UNKNOWN UINT64_MAX
#define FRAG_LOG_DEVICES_MAX 64u
#define FRAG_LOG_LACKS " without "
/* "streams, beginning" of "kineto without streams, beginning"; NULL: the trace has all. */
const char *frag_log_lacks(const struct frag_trace *t);

enum frag_log_action {
	FRAG_LOG_ALLOC,
	FRAG_LOG_FREE,
	FRAG_LOG_REFUSED, /* a request that failed */
	FRAG_LOG_TRIM,
	FRAG_LOG_FREE_REQUESTED, /* freed, but another stream still uses it … */
	FRAG_LOG_FREE_COMPLETED, /* … until here */
};

struct frag_log_entry {
	enum frag_log_action action;
	uint32_t device; /* ordinal */
	uint64_t id;	 /* 0: the null pointer, whose frees are ignored, unless ids are numbers */
	/* from here on: FRAG_LOG_UNKNOWN is allowed, except for the bytes of a request */
	uint64_t bytes;
	uint64_t stream;
	uint64_t pool;	  /* private pool of a request or a trim; 0 or unknown: none */
	uint64_t time_us; /* any origin; Unix time from 2001 on is kept as that */
	uint64_t line;	  /* for messages; or an offset, see frag_log.place */
	uint32_t stack;	  /* of the log, below 1 << 24; 0 = none */
};

struct frag_log_lines {
	struct frag_input *in;
	uint64_t line; /* of the current one, from 1 */
	char *text;    /* without its end; zero-terminated */
	size_t len, cap;
	bool ends; /* the file ends in this line */
	bool cut;  /* and it was left out, see frag_log_line_read */
};

struct frag_log_dev;
struct frag_log_stacks;
struct frag_log {
	struct frag_log_lines lines;
	/* from the reader */
	const char *place;  /* what `line` counts: NULL = "line", or "offset", "row" */
	bool numbered;	    /* ids are numbers, which people count from 0, not addresses */
	const char *format; /* in place of what frag_log_read is told; NULL: that */
	bool complete;	    /* lacks nothing: the name of the trace's format stays as it is */
	/* inside */
	struct frag_log_dev *devs;
	size_t devs_count, devs_cap;
	struct frag_log_entry *later; /* see frag_log_later */
	size_t later_count, later_cap;
	struct frag_log_stacks *stacks; /* NULL: none so far */
	uint64_t first_us, last_us;	/* FRAG_LOG_UNKNOWN: none so far */
	bool times_seen, streams_seen;
	int64_t device; /* the only one to keep, -1 = all */
};

/* Reads a log: `fill` adds the entries of log->lines.in. format: the reader's name; options: as of
 * frag_trace_read. Errors: those of fill; FRAG_EINPUT if there were no events. */
int frag_log_read(struct frag_log *log, const char *format, const char *options,
		  int (*fill)(struct frag_log *log, struct frag_err *err), struct frag_trace **out,
		  struct frag_err *err);
/* Errors: FRAG_EINPUT with the line for an impossible entry, FRAG_ENOMEM. */
int frag_log_add(struct frag_log *log, const struct frag_log_entry *e, struct frag_err *err);
/* Of files that are in no order of time: kept until all are added by time, then by line; times are
 * divided by `unit` and shifted by `base_us` modulo 2^64. */
int frag_log_later(struct frag_log *log, const struct frag_log_entry *e, struct frag_err *err);
int frag_log_add_sorted(struct frag_log *log, uint64_t unit, uint64_t base_us,
			struct frag_err *err);
/* Fails with FRAG_EINPUT and "PLACE AT: message". */
int frag_log_fail(struct frag_err *err, const char *place, uint64_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- lines ------------------------------------------------------------------------ */

/* 1 and the next line that is not blank, 0 at the end, or an error. max_bytes: of a line. */
int frag_log_next_line(struct frag_log_lines *l, size_t max_bytes, struct frag_err *err);
void frag_log_lines_release(struct frag_log_lines *l);
/* rc of reading the current line; 0 if that failed because the file was cut off within it. */
int frag_log_line_read(struct frag_log_lines *l, int rc);

/* Cuts off the next field, without the blanks around it; NULL at the end of the line. part: what
 * parts fields, one of these bytes; if the first is a blank, any number of them. */
char *frag_log_cut(char **at, const char *part);
char *frag_log_next_field(char **at); /* of CSV */
/*
 * Columns by their names: row c of names are those of column c, in any case of letters. Reads the
 * header `text`, which it cuts up; at most FRAG_LOG_COLUMNS of its fields count. Returns a bit for
 * each column that is there; the first one of a name counts.
 */
#define FRAG_LOG_COLUMNS 32u
#define FRAG_LOG_NAMES 6u
struct frag_log_columns {
	const char *const (*names)[FRAG_LOG_NAMES];
	unsigned names_count;
	uint8_t list[FRAG_LOG_COLUMNS]; /* of the fields of a line; names_count: another one */
	unsigned count;
	unsigned by_first; /* a bit for each column that has the first of its names */
};
unsigned frag_log_header(struct frag_log_columns *c, char *text);
/* "123" or "0x7f"; "(nil)" is 0. "" and NULL are FRAG_LOG_UNKNOWN. False: not a number. */
bool frag_log_number(const char *text, uint64_t *out);

/*
 * The first line within the bytes that a probe gets: copied into buf (cut to cap), trimmed. False
 * if no line ends within the bytes.
 */
bool frag_log_first_line(const unsigned char *bytes, size_t len, char *buf, size_t cap);

/* ---- rows (log_csv.c): the columns of read_csv.c ---------------------------------------- */

struct frag_log_csv {
	const char *format;
	const char *columns; /* of files without a header; NULL: lines are JSON objects */
	const char *tag;     /* lines count from behind it, others are passed over; NULL: all do */
	bool whole;	     /* each line has all columns */
};
int frag_log_csv_read(struct frag_input *in, const struct frag_log_csv *how, const char *options,
		      struct frag_trace **out, struct frag_err *err);
/* Is it a header of such a file? Cuts it up. */
bool frag_log_csv_header(char *line);

/* ---- JSON (json_t of jansson) ------------------------------------------------------ */

struct json_t;
typedef int (*frag_log_object_fn)(struct frag_log *log, const struct json_t *object, uint64_t line,
				  struct frag_err *err);
/* One object per line, handed to fn in order. */
int frag_log_json_lines(struct frag_log *log, frag_log_object_fn fn, struct frag_err *err);
/* An integer, or a text with one; absent: FRAG_LOG_UNKNOWN. False: something else. */
bool frag_log_json_number(const struct json_t *object, const char *key, uint64_t *out);
/* The first line as an object, or NULL if it is something else; the caller's (json_decref). */
struct json_t *frag_log_first_object(const unsigned char *bytes, size_t len);

/* The word for an action ("alloc", "malloc", "allocate", …); false for any other word. */
bool frag_log_word(const char *word, enum frag_log_action *out);

/* ---- stacks (log_stacks.c) -----------------------------------------------------------
 *
 * As libcufrag_record.so writes them between the lines (docs/record.md): a stack is a list of
 * addresses, and the name of an address may stand anywhere in the file, so both become a trace's
 * stacks only at the end. */

/* Takes the current line, a comment, if it describes a stack or a frame. Errors: FRAG_EINPUT. */
int frag_log_stacks_line(struct frag_log *log, struct frag_err *err);
/* How many stacks there are so far; valid numbers are 1 to this. */
uint32_t frag_log_stacks_count(const struct frag_log_stacks *s);
/* Hands the stacks to the trace, whose events hold the log's stack numbers. Innermost frames of the
 * recorder, CUPTI and the driver are left out. s: NULL is allowed. */
int frag_log_stacks_finish(struct frag_log_stacks *s, struct frag_trace *trace,
			   struct frag_err *err);
void frag_log_stacks_destroy(struct frag_log_stacks *s);

#endif
