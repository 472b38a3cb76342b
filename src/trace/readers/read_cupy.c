/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CuPy's log (cupy.cuda.memory_hooks.DebugPrintHook): JSON lines of what the program asked of its
 * pool ("malloc", "free") and the pool of the driver ("alloc", left out here).
 */
#include <string.h>

#include <jansson.h>

#include "trace/log/log.h"

static int read_object(struct frag_log *log, const json_t *o, uint64_t line, struct frag_err *err)
{
	const char *hook = json_string_value(json_object_get(o, "hook"));
	struct frag_log_entry e = { .line = line, .stream = FRAG_LOG_UNKNOWN };
	uint64_t device, bytes;

	e.pool = e.time_us = FRAG_LOG_UNKNOWN;
	if (!hook || !frag_log_json_number(o, "mem_ptr", &e.id) || e.id == FRAG_LOG_UNKNOWN ||
	    !frag_log_json_number(o, "size", &e.bytes) ||
	    !frag_log_json_number(o, "mem_size", &bytes) ||
	    !frag_log_json_number(o, "device_id", &device) || device > UINT16_MAX)
		return frag_log_fail(err, "line", line, "not a line of CuPy's DebugPrintHook");
	e.device = (uint32_t)device;
	e.action = strcmp(hook, "free") != 0 ? FRAG_LOG_ALLOC : FRAG_LOG_FREE;
	if (e.action == FRAG_LOG_FREE)
		e.bytes = bytes; /* of the block, should it be older than the log */
	return !strcmp(hook, "alloc") ? 0 : frag_log_add(log, &e, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	return frag_log_json_lines(log, read_object, err);
}

static int read_cupy(struct frag_input *in, const char *options, struct frag_trace **out,
		     struct frag_err *err)
{
	struct frag_log log = { .lines.in = in };

	return frag_log_read(&log, "cupy", options, read_lines, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	json_auto_t *o = frag_log_first_object(bytes, len);

	return json_object_get(o, "hook") && json_object_get(o, "mem_ptr") ? 80 : 0;
}

const struct frag_reader_ops frag_reader_cupy = {
	.name = "cupy",
	.summary = "CuPy's DebugPrintHook, what the program asked of its pool: no streams, no "
		   "times",
	.probe = probe,
	.read = read_cupy,
};
