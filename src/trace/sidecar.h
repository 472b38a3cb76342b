/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.meta.json beside a snapshot, written by record_torch.py: what the snapshot does not hold,
 * such as the card and the memory limit of each device. Its members: docs/trace-format.md. */
#ifndef FRAG_TRACE_SIDECAR_H
#define FRAG_TRACE_SIDECAR_H

#include <frag/trace.h>

/*
 * Reads the file of the snapshot at `path` (for run.pickle.xz: run.pickle.xz.meta.json, else
 * run.pickle.meta.json) into the devices and settings of its trace. No such file: 0. Errors:
 * FRAG_EINPUT with the file and the offset, FRAG_ENOMEM.
 */
int frag_sidecar_read(const char *path, struct frag_trace *trace, struct frag_err *err);
/* The same from memory. name: for messages. */
int frag_sidecar_parse(const char *name, const char *text, size_t len, struct frag_trace *trace,
		       struct frag_err *err);

#endif
