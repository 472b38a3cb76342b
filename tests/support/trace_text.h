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
/* t: for the names of marks, NULL = numbers. */
void trace_text_dev(const struct frag_trace_dev *dev, const struct frag_trace *t, FILE *out);
/* State before the first event. */
void trace_text_initial(const struct frag_initial_state *s, FILE *out);

#endif
