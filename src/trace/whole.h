/* SPDX-License-Identifier: Apache-2.0 */
/* Whole traces: options of reading, what stands beside a file, several as one, into files. */
#ifndef FRAG_TRACE_WHOLE_H
#define FRAG_TRACE_WHOLE_H

#include <frag/trace.h>

/* ---- options of frag_trace_read: "device=N", "conf=SETTINGS", or both with a ';' between ---- */

struct frag_trace_options {
	int64_t device;	  /* the only one to keep, -1 = all */
	const char *conf; /* settings that take the place of those in the file, NULL = none */
};

/* text may be NULL. Errors: FRAG_EUSAGE. */
int frag_trace_options_parse(const char *text, struct frag_trace_options *out,
			     struct frag_err *err);
/* Puts the settings into the trace, read by the rules of its release. conf NULL: nothing. */
int frag_trace_take_conf(struct frag_trace *trace, const char *conf, struct frag_err *err);
/* Files only tell some releases from others; `text` (or NULL) names one, where it can be it. */
void frag_trace_take_release(struct frag_trace *trace, const char *text);

/* ---- NAME.meta.json beside a snapshot, by record_torch.py: what the snapshot does not hold, such as
 * card and memory limit of each device. Its members: docs/trace-format.md ---- */

/*
 * Reads the file of the snapshot at `path` (for run.pickle.xz: run.pickle.xz.meta.json, else
 * run.pickle.meta.json) into the devices and settings of its trace. No such file: 0. Errors:
 * FRAG_EINPUT with the file and the offset, FRAG_ENOMEM.
 */
int frag_sidecar_read(const char *path, struct frag_trace *trace, struct frag_err *err);
/* The same from memory. name: for messages. */
int frag_sidecar_parse(const char *name, const char *text, size_t len, struct frag_trace *trace,
		       struct frag_err *err);

/* ---- several traces (the ranks of one job) as one trace with several devices ---- */

/*
 * The devices of all parts, in order, on one clock; renumbered from 0 if two have the same ordinal.
 * Settings come from the first part, the note of an estimate from the first part that has one.
 * Devices and settings are moved out: the parts remain the caller's, but can only be destroyed,
 * also after an error. Errors: FRAG_EINPUT if the parts lie too far apart in time; FRAG_ENOMEM.
 */
int frag_trace_merge(struct frag_trace *const *parts, size_t count, struct frag_trace **out,
		     struct frag_err *err);

/* Parts that are owned. */
struct frag_trace_parts {
	struct frag_trace **list;
	size_t count;
};
/* A single part is handed over as it is, several are merged. */
int frag_trace_parts_join(struct frag_trace_parts *p, struct frag_trace **out,
			  struct frag_err *err);
void frag_trace_parts_release(struct frag_trace_parts *p);

/* ---- into files ---- */

/*
 * The ending of the file says the format: .csv is a list of buffers for MiniMalloc, all else a
 * .cft; "-" = stdout. Errors: FRAG_EUSAGE for a .csv of several devices, FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_trace_write(const struct frag_trace *trace, const char *path, struct frag_err *err);
/*
 * MiniMalloc's CSV, a buffer per line: id (from 0), lower and upper (exclusive; indices of events),
 * size as requested. A block ends when its free completed, or at the end of the trace. The file
 * appears when it is complete. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err);
/* What the recorder saw of its own allocator goes; the requests stay. */
void frag_trace_drop_evidence(struct frag_trace *trace);

#endif
