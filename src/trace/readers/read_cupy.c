/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CuPy's log (cupy.cuda.memory_hooks.DebugPrintHook): JSON lines of what the program asked of its
 * pool ("malloc", "free") and the pool of the driver ("alloc", left out here).
 */
#include <jansson.h>

#include "trace/log/log.h"

static int read_cupy(struct frag_input *in, const char *options, struct frag_trace **out,
		     struct frag_err *err)
{
	static const struct frag_log_csv how = { .format = "cupy" };

	return frag_log_csv_read(in, &how, options, out, err);
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
