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

static int read_jsonl(struct frag_input *in, const char *options, struct frag_trace **out,
		      struct frag_err *err)
{
	static const struct frag_log_csv how = { .format = "jsonl" };

	return frag_log_csv_read(in, &how, options, out, err);
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
