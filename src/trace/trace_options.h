/* SPDX-License-Identifier: Apache-2.0 */
/* Options of frag_trace_read: "device=N", "conf=SETTINGS", or both with a ';' between. */
#ifndef FRAG_TRACE_OPTIONS_H
#define FRAG_TRACE_OPTIONS_H

#include <frag/trace.h>

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

#endif
