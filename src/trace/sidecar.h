/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a snapshot does not hold: the file NAME.meta.json beside it, written by record_torch.py,
 * with the card and the memory limit of each device. docs/trace-format.md has its members.
 */
#ifndef FRAG_TRACE_SIDECAR_H
#define FRAG_TRACE_SIDECAR_H

#include <frag/trace.h>

/*
 * Reads the one that belongs to the snapshot at `path` ("run.pickle.xz": run.pickle.xz.meta.json,
 * else run.pickle.meta.json) into the devices and settings of its trace. Returns 0 if there is no such file.
 * Errors: FRAG_EINPUT naming the file and the offset, FRAG_ENOMEM.
 */
int frag_sidecar_read(const char *path, struct frag_trace *trace, struct frag_err *err);
/* The same from memory. name: for messages. */
int frag_sidecar_parse(const char *name, const char *text, size_t len, struct frag_trace *trace,
		       struct frag_err *err);

#endif
