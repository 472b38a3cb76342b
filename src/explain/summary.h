/* SPDX-License-Identifier: Apache-2.0 */
/* Three sentences about a recording: how much it took, what is wrong, what to type next. */
#ifndef FRAG_EXPLAIN_SUMMARY_H
#define FRAG_EXPLAIN_SUMMARY_H

#include "explain/diagnose/diagnose.h"

/*
 * findings: answered (frag_findings_answer); borrowed. files: of the recordings, as a shell takes
 * them. Errors: FRAG_ENOMEM.
 */
extern const struct frag_shape frag_summary_shape;
int frag_summary_answer(const struct frag_findings *findings, const char *files,
			struct frag_answer *a, struct frag_err *err);

#endif
