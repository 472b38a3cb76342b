/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a section, for text and HTML: one row per policy, best first,
 * and a last row with the lower bound.
 */
#ifndef FRAG_REPORT_SUMMARY_H
#define FRAG_REPORT_SUMMARY_H

#include "report/report.h"
#include "answer/table.h"

/* wide: all columns (HTML), else those of a terminal. columns: of the terminal, 0 = as wide as it
 * gets. Release the table. Errors: FRAG_ENOMEM. */
int frag_summary_table(const struct frag_section *s, bool wide, size_t columns,
		       struct frag_table *out, struct frag_err *err);

#endif
