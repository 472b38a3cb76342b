/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in a log, as libcufrag_record.so writes them between the lines (docs/record.md): a stack
 * is a list of addresses, and the name of an address may stand anywhere in the file, so both become
 * a trace's stacks only at the end.
 *
 * Ownership: create/destroy.
 */
#ifndef FRAG_TRACE_LOG_STACKS_H
#define FRAG_TRACE_LOG_STACKS_H

#include <frag/trace.h>

struct frag_log_stacks;

/* Takes a comment line of a log if it describes a stack or a frame; modifies it. *s may be NULL: it
 * is created with the first such line. Errors: FRAG_EINPUT. */
int frag_log_stacks_line(struct frag_log_stacks **s, char *text, uint64_t line,
			 struct frag_err *err);
/* How many stacks there are so far; valid numbers are 1 to this. */
uint32_t frag_log_stacks_count(const struct frag_log_stacks *s);
/* Adds the stacks to the trace, whose events hold the log's stack numbers. Innermost frames of the
 * recorder, CUPTI and the driver are left out. s: NULL is allowed. */
int frag_log_stacks_finish(const struct frag_log_stacks *s, struct frag_trace *trace,
			   struct frag_err *err);
void frag_log_stacks_destroy(struct frag_log_stacks *s);

#endif
