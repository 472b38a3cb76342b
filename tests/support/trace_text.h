/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as text, all fields but those with their ordinary value, for tests to compare. */
#ifndef TESTS_SUPPORT_TRACE_TEXT_H
#define TESTS_SUPPORT_TRACE_TEXT_H

#include <stdio.h>

#include <frag/trace.h>

/* whole: also name and size of the file, every text, settings even if there are none. */
void trace_text(const struct frag_trace *t, bool whole, FILE *out);
/* The same on the heap (free). */
char *trace_text_of(const struct frag_trace *t, bool whole);

#endif
