/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share: a broken promise ends the run, and a reader is fed from memory. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdlib.h>

#include "trace/input/input.h"

static inline void must(int is_good)
{
	if (!is_good)
		abort();
}

/* The trace, or NULL where the reader refuses it, which has to say why. */
static inline struct frag_trace *read_memory(const struct frag_reader_ops *reader,
					     const void *bytes, size_t size)
{
	struct frag_trace *t = NULL;
	struct frag_input *in;
	struct frag_err err = { 0 };

	if (frag_input_open_memory("fuzz", bytes, size, &in, &err)) {
		must(err.code == FRAG_EINPUT && err.msg[0]);
		return NULL;
	}
	if (reader->read(in, NULL, &t, &err))
		must(err.code == FRAG_EINPUT && err.msg[0] && !t);
	frag_input_close(in);
	return t;
}

#endif
