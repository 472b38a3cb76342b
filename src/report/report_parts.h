/* SPDX-License-Identifier: Apache-2.0 */
/* What text and page of a report share. */
#ifndef FRAG_REPORT_PARTS_H
#define FRAG_REPORT_PARTS_H

#include "answer/answer.h"
#include "report/report.h"

/* "varlen.default, device 0" */
const char *frag_section_title_text(const struct frag_section *s, struct frag_answer *a);
/* Trace, its size, card, settings, what it turned out to be. who: "cufrag 0.2.0 compare: " or "". */
void frag_section_remarks(const struct frag_report *r, const struct frag_section *s,
			  const char *who, struct frag_answer *a);
/* The policies, best first, then what is possible; and what was left out. */
void frag_section_table(const struct frag_report *r, const struct frag_section *s,
			struct frag_answer *a);
/* The sentence, and the lines that set what it advises. */
void frag_section_conclusion(const struct frag_section *s, struct frag_answer *a);

#endif
