/* SPDX-License-Identifier: Apache-2.0 */
/* Traces and pickles as text, all fields but those with their ordinary value, for tests to compare. */
#ifndef TESTS_SUPPORT_TRACE_TEXT_H
#define TESTS_SUPPORT_TRACE_TEXT_H

#include <stdio.h>

#include <frag/trace.h>

/* whole: also name and size of the file, every text, settings even if there are none. */
void trace_text(const struct frag_trace *t, bool whole, FILE *out);
/* The same on the heap (free). */
char *trace_text_of(const struct frag_trace *t, bool whole);

/* The value that a pickle of the words "action" and "size" holds, in a line; or the error, in test_err. */
int pickle_text(const void *bytes, size_t count, FILE *out);

#endif
