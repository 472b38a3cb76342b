/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of tune: the order of settings. */
#ifndef FRAG_PLAN_TUNE_ORDER_H
#define FRAG_PLAN_TUNE_ORDER_H

#include <frag/plan.h>

/* < 0: a is better. */
int frag_tune_compare(const struct frag_tune_try *a, const struct frag_tune_try *b,
		      enum frag_tune_objective objective);
/* Fills out->front from out->tries: ascending by reserved bytes, each with less driver time than
 * all before it. Errors: FRAG_ENOMEM. */
int frag_tune_front(struct frag_tune *out, struct frag_err *err);

#endif
