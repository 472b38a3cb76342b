/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTML of a page and its files share. */
#ifndef FRAG_ANSWER_PAGE_H
#define FRAG_ANSWER_PAGE_H

#include "answer.h"

static inline const char *frag_chart_base(const struct frag_answer_chart *c)
{
	return c->base ? c->base : c->script;
}

/* The HTML. svgs: by part, those of charts; NULL: no pictures. */
void frag_page_render(const struct frag_answer *a, const struct frag_answer_page *page,
		      char *const *svgs, struct frag_text *out);

#endif
