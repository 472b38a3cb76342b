/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that were refused when a trace was recorded: where memory stood, and what each
 * policy does with them. A report opens with them.
 */
#ifndef FRAG_REPORT_REFUSALS_H
#define FRAG_REPORT_REFUSALS_H

#include "report/report.h"
#include "answer/table.h"

/* How many were refused when recorded. */
uint64_t frag_refusals_count(const struct frag_section *s);
/* "9 requests were refused when recorded, the first one of 40 MiB …". */
void frag_refusals_sentence(const struct frag_section *s, struct frag_text *out);
/* The first of them, as many as `columns` (0 = any width) and one screen have room for: the moment
 * of each, and what every policy did. Release both. Errors: FRAG_ENOMEM. */
int frag_refusals_tables(const struct frag_section *s, size_t columns, struct frag_table *moments,
			 struct frag_table *outcomes, struct frag_err *err);
/* "And 57 more; JSON has the first 64.": a line where the tables do not have all. */
void frag_refusals_rest(const struct frag_section *s, struct frag_text *out);
/* The sentence and, with `tables`, these for a terminal; nothing where nothing was refused. */
int frag_refusals_text(const struct frag_report *r, const struct frag_section *s, bool tables,
		       struct frag_text *out, struct frag_err *err);

#endif
