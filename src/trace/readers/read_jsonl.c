/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of one's own as JSON lines, with the keys of read_csv.c:
 *
 *	{"action": "alloc", "id": 7, "size": 1048576, "stream": 0, "time_us": 1200}
 *	{"action": "free", "id": 7}
 */
#include <ctype.h>
#include <string.h>

#include <jansson.h>

#include "trace/log/log.h"

static int read_object(struct frag_log *log, const json_t *o, uint64_t line, struct frag_err *err)
{
	struct frag_log_entry e = { .line = line };
	const char *action = json_string_value(json_object_get(o, "action"));
	uint64_t device;

	if (!action || !frag_log_word(action, &e.action))
		return frag_log_fail(err, "line", line, "missing or unknown action '%.40s'",
				     action ? action : "");
	if (!frag_log_json_number(o, "id", &e.id) || !frag_log_json_number(o, "size", &e.bytes) ||
	    !frag_log_json_number(o, "stream", &e.stream) ||
	    !frag_log_json_number(o, "time_us", &e.time_us) ||
	    !frag_log_json_number(o, "pool", &e.pool) ||
	    !frag_log_json_number(o, "device", &device) ||
	    (device > UINT16_MAX && device != FRAG_LOG_UNKNOWN))
		return frag_log_fail(err, "line", line,
				     "id, size, stream, time_us, pool and device must be whole "
				     "numbers, 0 or more");
	if (e.id == FRAG_LOG_UNKNOWN && e.action <= FRAG_LOG_FREE)
		return frag_log_fail(err, "line", line, "no id");
	e.device = device == FRAG_LOG_UNKNOWN ? 0 : (uint32_t)device;
	return frag_log_add(log, &e, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	return frag_log_json_lines(log, read_object, err);
}

static int read_jsonl(struct frag_input *in, const char *options, struct frag_trace **out,
		      struct frag_err *err)
{
	struct frag_log log = { .lines.in = in, .numbered = true };

	return frag_log_read(&log, "jsonl", options, read_lines, out, err);
}

/* A first line that is broken or too long to probe is accepted: the reader says what is wrong. */
static bool begins_as_ours(const unsigned char *bytes, size_t len)
{
	static const char key[] = "\"action\"";

	while (len && (isspace(*bytes) || *bytes == '{')) {
		bytes++;
		len--;
	}
	return len >= sizeof(key) && !memcmp(bytes, key, sizeof(key) - 1);
}

static int probe(const unsigned char *bytes, size_t len)
{
	json_auto_t *o = frag_log_first_object(bytes, len);

	if (json_is_string(json_object_get(o, "action")))
		return 55;
	return !o && begins_as_ours(bytes, len) ? 45 : 0;
}

const struct frag_reader_ops frag_reader_jsonl = {
	.name = "jsonl",
	.summary = "a log as JSON lines with the keys action, id, size, stream, time_us, device; "
		   "what is missing is unknown",
	.probe = probe,
	.read = read_jsonl,
};
