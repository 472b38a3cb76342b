/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source (frag/trace.h) knows besides its head. In the head of a .cft, events_count and
 * slots_count are final from the start; evidence is skipped, but counted.
 */
#ifndef FRAG_TRACE_SOURCE_H
#define FRAG_TRACE_SOURCE_H

#include <frag/trace.h>

/* The middle of frag_trace_read: from the bytes of an open file to a trace. path: for the trace's
 * name. Errors as frag_trace_read. */
int frag_trace_read_input(struct frag_input *in, const char *path, const char *options,
			  struct frag_trace **out, struct frag_err *err);

/* "dir/serve.default.pickle.xz" -> "serve.default"; only known endings go. In new memory (free);
 * NULL: memory is short. */
char *frag_trace_short_name(const char *path);

/* Did it refuse a file that summary answers for, as the text of an error? */
bool frag_trace_is_text(const struct frag_err *err);

/* As frag_source_open, but if the file is not a .cft, *out is NULL and the file stays unread. */
int frag_source_open_cft(const char *path, struct frag_source **out, struct frag_err *err);
/* A thread reads the next batches ahead of time: the source must not be used until frag_ahead_stop.
 * Batches that were read but not fetched are lost. Errors: FRAG_ENOMEM. */
struct frag_ahead;
int frag_source_ahead(struct frag_source *src, struct frag_ahead **out, struct frag_err *err);
/* As frag_source_next. */
int frag_source_ahead_next(struct frag_ahead *a, struct frag_batch *out, struct frag_err *err);

/*
 * Skips to device `dev` (an index; the number of devices skips everything and checks the end of the
 * file): blocks are read and their checksums verified, but not unpacked. pre: that device has not
 * begun. Errors as frag_source_next.
 */
int frag_source_pass(struct frag_source *src, uint32_t dev, struct frag_err *err);
/*
 * The evidence of device `dev` in pieces: 1, 0 at the end, <0. Skips everything before it, so its
 * events can no longer be read. .cft only; a piece belongs to the source until the next call.
 */
int frag_source_seen(struct frag_source *src, uint32_t dev, const struct frag_evidence **seen,
		     size_t *count, struct frag_err *err);

/* A device (by index, not ordinal) as the file declares it: numbers of evidence and of the final
 * snapshot, which are not read. */
const struct frag_trace_dev *frag_source_declared(const struct frag_source *src, uint32_t dev);

#endif
