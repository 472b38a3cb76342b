/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that the text reports share. */
#ifndef FRAG_REPORT_INTERNAL_H
#define FRAG_REPORT_INTERNAL_H

#include "report.h"

/* Three lines with '#': trace, its size, card and settings. */
void frag_report_head(const struct frag_report *r, const struct frag_section *s,
		      struct frag_text *out);

#endif
