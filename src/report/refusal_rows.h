/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that were refused when a trace was recorded: where memory stood, and what each
 * policy does with them. A report opens with them.
 */
#ifndef FRAG_REPORT_REFUSALS_H
#define FRAG_REPORT_REFUSALS_H

#include "answer/answer.h"
#include "report/report.h"

/* How many were refused when recorded. */
uint64_t frag_refusals_count(const struct frag_section *s);
/* The first FRAG_REFUSED_KEPT of them, as data. */
extern const struct frag_shape frag_refusal_shape;
struct frag_rows frag_refusals_rows(const struct frag_section *s, struct frag_answer *a);
/* "9 requests were refused when recorded; the first one wanted 40 MiB …" and, with `tables`, the
 * moment of each and what every policy did; nothing where nothing was refused. */
void frag_refusals_parts(const struct frag_section *s, bool tables, struct frag_answer *a);

#endif
