/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA's and TensorFlow's log of their allocator (TF_CPP_VMODULE=bfc_allocator=4, docs/record.md),
 * among other lines:
 *
 *	… bfc_allocator.cc:296] [mem-debug] AllocateRaw,GPU_0_bfc,1024,0x7f3a40000000,…
 *	… bfc_allocator.cc:608] [mem-debug] DeallocateRaw,GPU_0_bfc,1024,0x7f3a40000000,…
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/log/log.h"

#define LINE_MAX_BYTES 65536u
#define TAG "[mem-debug] "

static int read_entry(struct frag_log *log, char *at, struct frag_err *err)
{
	struct frag_log_entry e = { .line = log->lines.line, .stream = FRAG_LOG_UNKNOWN };
	char *action = frag_log_next_field(&at), *name = frag_log_next_field(&at);
	char *size = frag_log_next_field(&at), *pointer = frag_log_next_field(&at);

	e.pool = e.time_us = FRAG_LOG_UNKNOWN;
	if (!name || strncmp(name, "GPU_", 4) != 0 || !isdigit((unsigned char)name[4]))
		return 0; /* host memory */
	if (!frag_log_number(size, &e.bytes) || !frag_log_number(pointer, &e.id) ||
	    e.id == FRAG_LOG_UNKNOWN)
		return frag_log_fail(err, "line", e.line, "size or address missing");
	e.device = (uint32_t)strtoul(name + 4, NULL, 10) & UINT16_MAX;
	e.action = strcmp(action, "AllocateRaw") != 0 ? FRAG_LOG_FREE
		   : e.id			      ? FRAG_LOG_ALLOC
						      : FRAG_LOG_REFUSED;
	return frag_log_add(log, &e, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	int rc;

	while ((rc = frag_log_next_line(&log->lines, LINE_MAX_BYTES, err)) > 0) {
		char *at = strstr(log->lines.text, TAG);

		if (at)
			FRAG_TRY(frag_log_line_read(&log->lines,
						    read_entry(log, at + strlen(TAG), err)));
	}
	return rc;
}

static int read_bfc(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	struct frag_log log = { .lines.in = in };

	return frag_log_read(&log, "bfc", options, read_lines, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	return memmem(bytes, len, TAG "AllocateRaw,", strlen(TAG "AllocateRaw,")) ? 85 : 0;
}

const struct frag_reader_ops frag_reader_bfc = {
	.name = "bfc",
	.summary = "the log of JAX's and TensorFlow's allocator (bfc_allocator=4): no streams, no "
		   "times",
	.probe = probe,
	.read = read_bfc,
};
