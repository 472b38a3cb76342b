/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in a log, as libcufrag_record.so writes them between the lines (docs/record.md): a stack is a list of
 * addresses, and what an address is called is told anywhere in the file, so that both become
 * a trace's stacks only at the end.
 *
 * Ownership: create/destroy.
 */
#ifndef FRAG_TRACE_LOG_STACKS_H
#define FRAG_TRACE_LOG_STACKS_H

#include <frag/trace.h>

struct frag_log_stacks;

/* A remark of a log: takes it if it is of stacks, cuts it up. Errors: FRAG_EINPUT. *s may be NULL: made when
 * the first one comes. */
int frag_log_stacks_line(struct frag_log_stacks **s, char *text, uint64_t line,
			 struct frag_err *err);
/* How many there are so far; a number from 1 to this is good. */
uint32_t frag_log_stacks_count(const struct frag_log_stacks *s);
/* Into the trace, whose events have the log's numbers. The frames of the recorder, CUPTI and the driver that
 * are innermost are left out. s: NULL is allowed. */
int frag_log_stacks_finish(const struct frag_log_stacks *s, struct frag_trace *trace,
			   struct frag_err *err);
void frag_log_stacks_destroy(struct frag_log_stacks *s);

#endif
