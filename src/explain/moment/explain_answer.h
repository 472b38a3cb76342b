/* SPDX-License-Identifier: Apache-2.0 */
/* What explain says of a moment, and its stacks for other viewers (export/stacks.h). */
#ifndef FRAG_EXPLAIN_EXPLAIN_ANSWER_H
#define FRAG_EXPLAIN_EXPLAIN_ANSWER_H

#include "answer/answer.h"
#include "explain.h"

/* Borrowed by the answer. */
struct frag_explain_names {
	const char *trace, *policy;
};

extern const struct frag_shape frag_explanation_shape;
/* The answer borrows x. Charts where it has curves. Errors: FRAG_ENOMEM. */
int frag_explained_answer(const struct frag_explained *x, const struct frag_explain_names *names,
			  struct frag_answer *a, struct frag_err *err);

#endif
