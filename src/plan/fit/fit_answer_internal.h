/* SPDX-License-Identifier: Apache-2.0 */
/* What fit_sentences.c says for fit_answer.c. */
#ifndef FRAG_PLAN_FIT_ANSWER_INTERNAL_H
#define FRAG_PLAN_FIT_ANSWER_INTERNAL_H

#include "fit_cards.h"

const char *frag_fit_row_name(const struct frag_fit_row *row);
void frag_fit_remarks(const struct frag_fit_cards *f, struct frag_answer *a);
/* What the smallest card costs, and what a limit that is a fraction of it leaves to the process. */
void frag_fit_say_price(const struct frag_fit_cards *f, const struct frag_fit_row *row,
			struct frag_answer *a);
/* How far smallest cards are apart, what fails on all, and sizes above the smallest that fail. */
void frag_fit_say_rows(const struct frag_fit_cards *f, struct frag_answer *a);

#endif
