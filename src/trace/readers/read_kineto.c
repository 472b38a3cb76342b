/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome traces of PyTorch's profiler (Kineto) made with profile_memory=True: the instant events
 * "[memory]" of CUDA devices. Sizes are those of blocks (rounded up to 512 bytes); there are no streams, and a
 * free is noted when the program lets go. The file is not in order of time, and holds millions
 * of other events: it is passed over byte by byte, and only what names "[memory]" is parsed.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "trace/log/log.h"

#define OBJECT_MAX_BYTES 65536u /* of one event; longer ones are not [memory] events */
#define DEPTH_MAX 512u
#define DEVICE_CUDA 1

struct reader {
	struct frag_log log; /* first: see scan */
	uint64_t base_us;
	/* the scan */
	unsigned char nest[DEPTH_MAX]; /* '{' or '[' */
	unsigned depth;
	bool in_string, escaped;
	unsigned event_depth; /* of the object that is being collected, 0 = none */
	uint64_t event_offset;
	char *text;
	size_t len;    /* OBJECT_MAX_BYTES + 1: too long */
	char head[64]; /* the latest bytes of the top level, for baseTimeNanoseconds */
	size_t head_len;
};

static int read_numbers(const json_t *o, const json_t *args, struct frag_log_entry *e,
			json_int_t *bytes)
{
	const json_t *ts = json_object_get(o, "ts"), *size = json_object_get(args, "Bytes");
	double us = json_is_number(ts) ? json_number_value(ts) : -1;
	uint64_t device;

	if (!json_is_integer(size) || !(us >= 0) || us > 9e15 ||
	    !frag_log_json_number(args, "Addr", &e->id) || e->id == FRAG_LOG_UNKNOWN ||
	    !frag_log_json_number(args, "Device Id", &device) || device > UINT16_MAX)
		return -1;
	*bytes = json_integer_value(size);
	e->device = (uint32_t)device;
	e->time_us = (uint64_t)us;
	return 0;
}

/* Times in nanoseconds until they are sorted: several events share a microsecond. */
static uint64_t nanoseconds(const json_t *o)
{
	double us = json_number_value(json_object_get(o, "ts"));

	return (uint64_t)us * 1000 + (uint64_t)((us - floor(us)) * 1000 + 0.5);
}

static int take_event(struct reader *r, const json_t *o, struct frag_err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	const json_t *args = json_object_get(o, "args"), *type;
	struct frag_log_entry e = { .stream = FRAG_LOG_UNKNOWN, .line = r->event_offset };
	json_int_t bytes;

	if (!name || strcmp(name, "[memory]") != 0)
		return 0;
	type = json_object_get(args, "Device Type");
	if (!json_is_integer(type) || json_integer_value(type) != DEVICE_CUDA)
		return 0;
	if (read_numbers(o, args, &e, &bytes) || bytes > (json_int_t)FRAG_MAX_REQUEST ||
	    bytes < -(json_int_t)FRAG_MAX_REQUEST)
		return frag_log_fail(err, "offset", e.line,
				     "[memory] event without Bytes, Addr, Device Id or ts");
	if (!bytes)
		return 0;
	e.action = bytes > 0 ? FRAG_LOG_ALLOC : FRAG_LOG_FREE;
	e.bytes = (uint64_t)(bytes > 0 ? bytes : -bytes);
	e.time_us = nanoseconds(o);
	return frag_log_later(&r->log, &e, err);
}

static int end_event(struct reader *r, struct frag_err *err)
{
	json_error_t fault;
	json_auto_t *o = NULL;

	r->event_depth = 0;
	if (r->len > OBJECT_MAX_BYTES || !memmem(r->text, r->len, "\"[memory]\"", 10))
		return 0;
	o = json_loadb(r->text, r->len, 0, &fault);
	if (!o)
		return frag_log_fail(err, "offset", r->event_offset, "%.120s", fault.text);
	return take_event(r, o, err);
}

/* "baseTimeNanoseconds": 1790857026000000000, before or after the events. */
static void note_head(struct reader *r, unsigned char c)
{
	static const char key[] = "\"baseTimeNanoseconds\":";
	const char *at;

	if (isspace(c))
		return;
	if (c == ',' || c == '}') {
		r->head[r->head_len] = '\0';
		at = strstr(r->head, key);
		if (at && frag_log_number(at + sizeof(key) - 1, &r->base_us) &&
		    r->base_us != FRAG_LOG_UNKNOWN)
			r->base_us /= 1000;
		else if (at)
			r->base_us = 0;
		r->head_len = 0;
	} else if (r->head_len + 1 < sizeof(r->head)) {
		r->head[r->head_len++] = (char)c;
	}
}

static int fail_scan(const struct reader *r, const char *what, struct frag_err *err)
{
	return frag_log_fail(err, "offset", frag_input_offset(r->log.lines.in), "%s", what);
}

static int opens(struct reader *r, unsigned char c, struct frag_err *err)
{
	if (r->depth == DEPTH_MAX)
		return fail_scan(r, "nested too deeply", err);
	/* events are objects in an array of the top level, or in one that is the file */
	if (c == '{' && !r->event_depth && r->depth && r->depth <= 2 &&
	    r->nest[r->depth - 1] == '[') {
		r->event_depth = r->depth + 1;
		r->event_offset = frag_input_offset(r->log.lines.in) - 1;
		r->len = 0;
	}
	r->nest[r->depth++] = c;
	return 0;
}

static int closes(struct reader *r, unsigned char c, struct frag_err *err)
{
	if (!r->depth || r->nest[r->depth - 1] != (c == '}' ? '{' : '['))
		return fail_scan(r, "unmatched closing bracket", err);
	r->depth--;
	return 0;
}

static int scan_byte(struct reader *r, unsigned char c, struct frag_err *err)
{
	bool plain = !r->in_string;

	if (r->in_string) {
		if (r->escaped)
			r->escaped = false;
		else if (c == '\\')
			r->escaped = true;
		else if (c == '"')
			r->in_string = false;
	} else if (c == '"') {
		r->in_string = true;
	} else if (c == '{' || c == '[') {
		FRAG_TRY(opens(r, c, err));
	}
	if (r->depth == 1 && !r->event_depth)
		note_head(r, c);
	if (r->event_depth && r->len <= OBJECT_MAX_BYTES) {
		r->text[r->len] = (char)c;
		r->len++;
	}
	if (plain && (c == '}' || c == ']')) {
		FRAG_TRY(closes(r, c, err));
		if (r->event_depth && r->depth < r->event_depth)
			return end_event(r, err);
	}
	return 0;
}

static int scan(struct frag_log *log, struct frag_err *err)
{
	struct reader *r = (struct reader *)log;
	int c;

	while ((c = frag_input_get(log->lines.in, err)) >= 0)
		FRAG_TRY(scan_byte(r, (unsigned char)c, err));
	if (c != FRAG_INPUT_EOF)
		return c;
	if (r->depth || r->in_string)
		return fail_scan(r, "the file is truncated", err);
	if (!log->later_count)
		return FRAG_INPUT(err, "a Chrome trace without [memory] events of a CUDA device; "
				       "record it with profile_memory=True");
	return frag_log_add_sorted(log, 1000, FRAG_MIN(r->base_us, UINT64_MAX / 2000), err);
}

static int read_kineto(struct frag_input *in, const char *options, struct frag_trace **out,
		       struct frag_err *err)
{
	struct reader r = { .log = { .lines.in = in, .place = "offset" } };
	FRAG_AUTO_FREE char *text = r.text = frag_host_alloc(OBJECT_MAX_BYTES + 1);

	FRAG_CHECK_ALLOC(text, "event", err);
	return frag_log_read(&r.log, "kineto", options, scan, out, err);
}

/* The beginning names the events, or the profiler's own keys; a bare array begins with an event. */
static int probe(const unsigned char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && isspace(bytes[i]))
		i++;
	if (i == len || (bytes[i] != '{' && bytes[i] != '['))
		return 0;
	if (bytes[i] == '[')
		return memmem(bytes, len, "\"ph\"", 4) ? 40 : 0;
	return memmem(bytes, len, "\"traceEvents\"", 13) ||
			       (memmem(bytes, len, "\"schemaVersion\"", 15) &&
				memmem(bytes, len, "\"deviceProperties\"", 18))
		       ? 50
		       : 0;
}

const struct frag_reader_ops frag_reader_kineto = {
	.name = "kineto",
	.summary = "Chrome trace of PyTorch's profiler with memory: times, devices, block sizes; "
		   "no streams",
	.probe = probe,
	.read = read_kineto,
};
