/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a section, for text and HTML: one row per policy, best first,
 * and a last row with the lower bound.
 */
#ifndef FRAG_REPORT_SUMMARY_H
#define FRAG_REPORT_SUMMARY_H

#include "report/report.h"
#include "table.h"

/* wide: all columns (HTML), else those that fit a terminal. Release the table. Errors: FRAG_ENOMEM. */
int frag_summary_table(const struct frag_section *s, bool wide, struct frag_table *out,
		       struct frag_err *err);

#endif
